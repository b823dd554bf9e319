import { Type } from 'typebox';
import { type Queryable, type SqlFragment, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';

const Text = Nullable(Type.String());
const PageRow = Type.Object({
  states: Type.Number(),
  journals: Type.Number(),
  events: Type.Number(),
  stacks: Type.Integer(),
  /** The key of the last stack. */
  first: Text,
  second: Text,
});

/** Bytes that stacks keep, as stored. */
export type KeptBytes = Readonly<Record<'states' | 'journals' | 'events', number>>;

/** Deleted stacks count for as long as they can be restored. */
export type KeptKind = 'live' | 'restorable';

/** A position among the stacks of a kind: project and name, or time of the deletion and id. */
export type KeptPosition = readonly [string, string];

const stacksAtOnce = 500;

/** Whether a measurement is wrong by more than 2 % and a KiB. */
export const isMismeasured = (measured: number, kept: number): boolean =>
  Math.abs(kept - measured) > Math.max(1024, kept / 50);

/**
 * Bytes that stacks keep, as stored: of states, journal entries and engine events. A chunk is counted once, however many versions share it, and
 * also if no version but only other chunks need it. Reads sizes only, not the contents.
 */
function storedSizes(stacks: SqlFragment): Readonly<Record<'states' | 'journals' | 'events', SqlFragment>> {
  return {
    states: sql.fragment`(
      coalesce((select sum(c.stored_bytes) from checkpoints c where c.codec <> 'chunks' and c.stack_id in (${stacks})), 0)
      + coalesce((select sum(p.stored_bytes) from version_chunks p where p.stack_id in (${stacks})), 0))`,
    journals: sql.fragment`coalesce((
      select sum(pg_column_size(e.entry)) from journals j join journal_entries e on e.update_id = j.update_id
      where j.stack_id in (${stacks})), 0)`,
    events: sql.fragment`(
      coalesce((select sum(pg_column_size(e.event)) from updates u join engine_events e on e.update_id = u.id
        where u.stack_id in (${stacks})), 0)
      + coalesce((select sum(g.stored_bytes) from updates u join event_segments g on g.update_id = u.id
        where u.stack_id in (${stacks})), 0))`,
  };
}

/** What the stacks of an organization keep. */
export function createKeptBytesRepository(db: Queryable) {
  const pageOf = (organizationId: string, kind: KeptKind, after: KeptPosition | null, limit: number): SqlFragment => {
    const [first, second] = after ?? [null, null];
    return kind === 'live'
      ? sql.fragment`
          select stack_id as id, project_name as first, stack_name as second from stack_listings
          where organization_id = ${organizationId} and tag_name = ''
            and ${after === null ? sql.fragment`true` : sql.fragment`(project_name, stack_name) > (${first}, ${second})`}
          order by project_name, stack_name limit ${limit}`
      : sql.fragment`
          select id, deleted_at::text as first, id::text as second from stacks
          where restorable_in = ${organizationId} and restorable_until is not null
            and ${after === null ? sql.fragment`true` : sql.fragment`(deleted_at, id) < (${first}::timestamptz, ${second}::uuid)`}
          order by deleted_at desc, stacks.id desc limit ${limit}`;
  };
  const repository = {
    /** What a page of the stacks keeps, and its last stack. */
    sumPage: (organizationId: string, kind: KeptKind, after: KeptPosition | null, limit: number) => {
      const { events, journals, states } = storedSizes(sql.fragment`select id from page`);
      return db.one(sql.rows(PageRow)`
        /* keptBytes.sumPage */
        with page as materialized (select row_number() over () as at, p.* from (${pageOf(organizationId, kind, after, limit)}) p)
        select ${states}::float8 as states, ${journals}::float8 as journals, ${events}::float8 as events,
          (select count(*)::integer from page) as stacks, l.first, l.second
        from (select 1) one left join lateral (select * from page order by at desc limit 1) l on true`);
    },

    /**
     * What all of them keep. Reads a page at a time, so that no statement is long, however many stacks there are. Throws the reason of
     * `signal`.
     */
    sum: async (organizationId: string, signal?: AbortSignal): Promise<KeptBytes> => {
      const kept = { states: 0, journals: 0, events: 0 };
      for (const kind of ['live', 'restorable'] as const) {
        let after: KeptPosition | null = null;
        do {
          signal?.throwIfAborted();
          const page: Awaited<ReturnType<typeof repository.sumPage>> = await repository.sumPage(
            organizationId,
            kind,
            after,
            stacksAtOnce,
          );
          kept.states += page.states;
          kept.journals += page.journals;
          kept.events += page.events;
          after =
            page.stacks === stacksAtOnce && page.first !== null && page.second !== null
              ? [page.first, page.second]
              : null;
        } while (after !== null);
      }
      return kept;
    },
  };
  return repository;
}
