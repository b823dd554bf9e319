import { Type } from 'typebox';
import { type Queryable, type SqlFragment, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import { createStoredSizeRepository, type StoredSize } from './stored-size-repository.ts';

const Text = Nullable(Type.String());
const PageRow = Type.Object({
  id: Type.String(),
  /** The stack's KeptPosition, together with `second`. */
  first: Type.String(),
  second: Type.String(),
});

/** Bytes in their stored form. */
export type KeptBytes = Readonly<Record<'states' | 'journals' | 'events', number>>;

/** Deleted stacks count while they can be restored. */
export type KeptKind = 'live' | 'restorable';

/** Project and name, or time of the deletion and id. */
export type KeptPosition = readonly [string, string];

const ChangedRow = Type.Object({ id: Type.String(), changedAt: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const SumRow = Type.Object({ states: Type.Number(), journals: Type.Number(), events: Type.Number() });
const TimeRow = Type.Object({ at: Type.String(), last: Text });

export interface Measurement {
  readonly kept: KeptBytes;
  /** The beginning: the measurement may lack later changes. */
  readonly at: string;
  /** An estimate for the next measurement; null if this one read all stacks. */
  readonly tookMs: number | null;
}

const stacksAtOnce = 500;
const measuredAtOnce = 50;
/** For this long after a change, journals are deleted, events archived and versions encoded. */
export const settlingSeconds = 2 * 3600;

/** The tolerance is 2 % and a KiB. */
export const isMismeasured = (measured: number, kept: number): boolean =>
  Math.abs(kept - measured) > Math.max(1024, kept / 50);

/** Reads the bytes now, or as last measured. */
export function createKeptBytesRepository(db: Queryable) {
  const sizes = createStoredSizeRepository(db);
  /** Skips stacks whose measurement was recorded or marked in the meantime. */
  const note = async (rows: readonly StoredSize[]): Promise<number> => {
    const { rowCount } = await db.query(sql.nothing`
      /* keptBytes.note */
      insert into stack_storage (stack_id, organization_id, state_bytes, journal_bytes, event_bytes, measured_at)
      select n.id, p.organization_id, n.states, n.journals, n.events, clock_timestamp()
      from ${sql.unnest(
        rows.map(({ events: e, id, journals: j, states: s }) => [id, s, j, e]),
        ['uuid', 'int8', 'int8', 'int8'],
      )} as n (id, states, journals, events)
      cross join lateral (
        select s.project_id from stacks s where s.id = n.id and (s.deleted_at is null or s.restorable_until is not null)
        for key share skip locked) s
      join projects p on p.id = s.project_id
      on conflict (stack_id) do update set state_bytes = excluded.state_bytes, journal_bytes = excluded.journal_bytes,
        event_bytes = excluded.event_bytes, measured_at = excluded.measured_at
      where stack_storage.xmin::text = (
        select v.version from ${sql.unnest(
          rows.map(({ id, version }) => [id, version]),
          ['uuid', 'text'],
        )} as v (id, version) where v.id = stack_storage.stack_id)`);
    return rowCount;
  };
  const repository = {
    listPage: (organizationId: string, kind: KeptKind, after: KeptPosition | null, limit: number) => {
      const [first, second] = after ?? [null, null];
      return db.any(
        kind === 'live'
          ? sql.rows(PageRow)`
            /* keptBytes.listLive */
            select stack_id as id, project_name as first, stack_name as second from stack_listings
            where organization_id = ${organizationId} and tag_name = ''
              and ${after === null ? sql.fragment`true` : sql.fragment`(project_name, stack_name) > (${first}, ${second})`}
            order by project_name, stack_name limit ${limit}`
          : sql.rows(PageRow)`
            /* keptBytes.listRestorable */
            select id, deleted_at::text as first, id::text as second from stacks
            where restorable_in = ${organizationId} and restorable_until is not null
              and ${after === null ? sql.fragment`true` : sql.fragment`(deleted_at, id) < (${first}::timestamptz, ${second}::uuid)`}
            order by deleted_at desc, stacks.id desc limit ${limit}`,
      );
    },

    /** Throws the reason of `signal`. */
    sum: async (organizationId: string, signal?: AbortSignal): Promise<KeptBytes> => {
      const kept = { states: 0, journals: 0, events: 0 };
      for (const kind of ['live', 'restorable'] as const) {
        let after: KeptPosition | null = null;
        do {
          signal?.throwIfAborted();
          const page: Awaited<ReturnType<typeof repository.listPage>> = await repository.listPage(
            organizationId,
            kind,
            after,
            measuredAtOnce,
          );
          for (const { events, journals, states } of await sizes.read(page.map(({ id }) => id))) {
            kept.states += states;
            kept.journals += journals;
            kept.events += events;
          }
          const last = page.length === measuredAtOnce ? page.at(-1) : undefined;
          after = last === undefined ? null : [last.first, last.second];
        } while (after !== null);
      }
      return kept;
    },

    /** Stacks changed since shortly before `since` (null for all live stacks), the last changed first. */
    listChanged: (organizationId: string, since: SqlFragment, before: { changedAt: string; id: string } | null) =>
      db.any(sql.rows(ChangedRow)`
        /* keptBytes.listChanged */
        select c.stack_id as id, c.changed_at::text as "changedAt" from stack_changes c
        where c.organization_id = ${organizationId}
          and c.changed_at > coalesce(${since} - make_interval(secs => ${settlingSeconds}::int), '-infinity')
          and ${before === null ? sql.fragment`true` : sql.fragment`(c.changed_at, c.stack_id) < (${before.changedAt}::timestamptz, ${before.id}::uuid)`}
        order by c.changed_at desc, c.stack_id desc limit ${stacksAtOnce}`),

    /** Includes stacks without a measurement. */
    listOldest: async (organizationId: string, onlyUnmeasured: boolean): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* keptBytes.listOldest */
        select stack_id as id from stack_storage
        where organization_id = ${organizationId} and ${onlyUnmeasured ? sql.fragment`measured_at = '-infinity'` : sql.fragment`true`}
        order by measured_at limit ${stacksAtOnce}`);
      return rows.map(({ id }) => id);
    },

    /**
     * Returns the number of measured stacks. Holds no lock while it reads. Skips a stack that another transaction has locked, or has marked
     * or measured in the meantime. Concurrent measurements write in the same order.
     */
    measureStacks: async (stackIds: readonly string[]): Promise<number> => {
      const sorted = stackIds.toSorted();
      let measured = 0;
      for (let at = 0; at < sorted.length; at += measuredAtOnce)
        measured += await note(await sizes.read(sorted.slice(at, at + measuredAtOnce)));
      return measured;
    },

    /** Makes the next measurement read these stacks. */
    forget: (stackIds: readonly string[]) =>
      db.query(sql.nothing`
        /* keptBytes.forget */
        update stack_storage set measured_at = '-infinity' where stack_id = any (${sql.array([...stackIds], 'uuid')})`),

    sumMeasured: (organizationId: string) =>
      db.one(sql.rows(SumRow)`
        /* keptBytes.sumMeasured */
        select coalesce(sum(state_bytes), 0)::float8 as states, coalesce(sum(journal_bytes), 0)::float8 as journals,
          coalesce(sum(event_bytes), 0)::float8 as events
        from stack_counts where organization_id = ${organizationId}`),

    /**
     * Measures the stacks that have changed since the last measurement, `since` (null for all), and a share of the others, at a cost that
     * does not depend on the number of stacks. Throws the reason of `signal`.
     */
    measure: async (organizationId: string, since: SqlFragment, signal?: AbortSignal): Promise<Measurement> => {
      const { at, last } = await db.one(sql.rows(TimeRow)`
        /* keptBytes.begin */ select clock_timestamp()::text as at, (${since})::text as last`);
      const startedAt = performance.now();
      let before: { changedAt: string; id: string } | null = null;
      do {
        signal?.throwIfAborted();
        const page: Awaited<ReturnType<typeof repository.listChanged>> = await repository.listChanged(
          organizationId,
          sql.fragment`${last}::timestamptz`,
          before,
        );
        if (page.length > 0) await repository.measureStacks(page.map(({ id }) => id));
        before = page.length === stacksAtOnce ? (page.at(-1) ?? null) : null;
      } while (before !== null);
      const tookMs = last === null ? null : Math.round(performance.now() - startedAt);
      for (let onlyUnmeasured = true; ; ) {
        signal?.throwIfAborted();
        const ids = await repository.listOldest(organizationId, onlyUnmeasured);
        const measured = ids.length === 0 ? 0 : await repository.measureStacks(ids);
        if (!onlyUnmeasured) return { kept: await repository.sumMeasured(organizationId), at, tookMs };
        onlyUnmeasured = measured > 0 && ids.length === stacksAtOnce;
      }
    },
  };
  return repository;
}
