import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';

const SizeRow = Type.Object({
  id: Type.String(),
  /** The row version (xmin) of the last measurement. */
  version: Nullable(Type.String()),
  states: Type.Number(),
  journals: Type.Number(),
});
const EventRow = Type.Object({
  id: Type.String(),
  events: Type.Number(),
  updates: Type.Integer(),
  /** The number of the last update. */
  last: Type.Integer(),
});

/** Bytes in their stored form. */
export interface StoredSize {
  readonly id: string;
  readonly version: string | null;
  readonly states: number;
  readonly journals: number;
  readonly events: number;
}

/** Keeps each statement short. */
const updatesAtOnce = 5_000;

/** Reads sizes only, not the contents. */
export function createStoredSizeRepository(db: Queryable) {
  /** Newest first. For the first stack, only updates below `before`. */
  const readEvents = (stackIds: readonly string[], before: number | null) =>
    db.any(sql.rows(EventRow)`
      /* storedSizes.readEvents */
      with page as materialized (
        select s.at, s.id as stack_id, u.id, u.number, u.events_archived
        from unnest(${sql.array(stackIds, 'uuid')}) with ordinality as s (id, at)
        cross join lateral (
          select u.id, u.number, u.events_archived from updates u
          where u.stack_id = s.id and u.number < case when s.at = 1 then coalesce(${before}::bigint, 9223372036854775807) else 9223372036854775807 end
          order by u.number desc limit ${updatesAtOnce}) u
        limit ${updatesAtOnce})
      select stack_id as id, count(*)::integer as updates, min(number) as last,
        sum(coalesce((select sum(pg_column_size(e.event)) from engine_events e where e.update_id = page.id and not events_archived), 0)
          + coalesce((select sum(g.stored_bytes) from event_segments g where g.update_id = page.id), 0))::float8 as events
      from page group by at, stack_id order by at`);
  return {
    /** A chunk counts once, however many versions share it, and also if only other chunks need it. */
    read: async (stackIds: readonly string[]): Promise<readonly StoredSize[]> => {
      const rows = await db.any(sql.rows(SizeRow)`
        /* storedSizes.read */
        select s.id, (select k.xmin::text from stack_storage k where k.stack_id = s.id) as version,
          (coalesce((select sum(c.stored_bytes) from checkpoints c where c.codec <> 'chunks' and c.stack_id = s.id), 0)
            + coalesce((select sum(p.stored_bytes) from version_chunks p where p.stack_id = s.id), 0))::float8 as states,
          coalesce((
            select sum(pg_column_size(e.entry)) from journals j join journal_entries e on e.update_id = j.update_id
            where j.stack_id = s.id), 0)::float8 as journals
        from unnest(${sql.array(stackIds, 'uuid')}) as s (id)`);
      const events = new Map<string, number>();
      let left = stackIds;
      for (let before: number | null = null; left.length > 0; ) {
        const page: Awaited<ReturnType<typeof readEvents>> = await readEvents(left, before);
        for (const row of page) events.set(row.id, (events.get(row.id) ?? 0) + row.events);
        const last = page.at(-1);
        if (!last || page.reduce((sum, { updates }) => sum + updates, 0) < updatesAtOnce) break;
        left = left.slice(left.indexOf(last.id));
        before = last.last;
      }
      return rows.map((row) => ({ ...row, events: events.get(row.id) ?? 0 }));
    },
  };
}
