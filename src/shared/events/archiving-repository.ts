import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';

const DueRow = Type.Object({
  id: Type.String(),
  endedAt: Type.String(),
  /** The update ended more than a day ago. */
  isOld: Type.Boolean(),
});
export type DueUpdate = Row<typeof DueRow>;

const IdRow = Type.Object({ id: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const countLimit = 100_000;

export function createArchivingRepository(db: Queryable) {
  return {
    /**
     * Ended updates whose events may be in rows, oldest end first. They ended at least `delaySeconds` ago, or in the future because the
     * clock was set back. Includes deleted stacks until they are purged.
     */
    listDue: (delaySeconds: number, last: DueUpdate | null, limit: number) => {
      // Two ranges of the index exclude updates that ended in between.
      const dueIn = (range: ReturnType<typeof sql.fragment>) => sql.fragment`
        select u.id, u.ended_at from updates u
        where not u.events_archived and ${range}
          and (${last?.id ?? null}::uuid is null
            or (u.ended_at, u.id) > (${last?.endedAt ?? null}::timestamptz, ${last?.id ?? null}::uuid))
          and exists (select 1 from stacks s where s.id = u.stack_id and (s.deleted_at is null or s.restorable_until is not null))
        order by u.ended_at, u.id limit ${limit}`;
      return db.any(sql.rows(DueRow)`
        /* archiving.listDue */
        select d.id, d.ended_at::text as "endedAt", d.ended_at < now() - interval '1 day' as "isOld" from (
          (${dueIn(sql.fragment`u.ended_at <= now() - make_interval(secs => ${delaySeconds})`)})
          union all
          (${dueIn(sql.fragment`u.ended_at > now()`)})
        ) d
        order by d.ended_at, d.id limit ${limit}`);
    },

    /** Returns false if the update has event rows, or is running. */
    markArchived: async (updateId: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* archiving.markArchived */
        update updates u set events_archived = true
        where u.id = ${updateId} and u.status not in ('not started', 'running')
          and not exists (select 1 from engine_events e where e.update_id = u.id)
        returning id`);
      return row !== null;
    },

    /** Counts up to 100,000. */
    countWaiting: async (): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* archiving.countWaiting */
        select count(*)::integer as count from (
          select 1 from updates where not events_archived and ended_at is not null limit ${countLimit}
        ) counted`);
      return row.count;
    },
  };
}
