import { Type } from 'typebox';
import { type Queryable, sql } from '../db/sql.ts';
import { mayBeSent } from '../outgoing/held-outgoing-repository.ts';
import { Nullable, Timestamp } from '../schema/standard-schema.ts';

const ClaimRow = Type.Object({ position: Nullable(Type.String()) });

const ResultRow = Type.Object({ result: Nullable(Type.String()) });
const NameRow = Type.Object({ name: Type.String() });
const ClockRow = Type.Object({ at: Timestamp });
const ResultNowRow = Type.Object({ result: Nullable(Type.String()), now: Timestamp, hasTakenOver: Type.Boolean() });

const RunRow = Type.Object({
  name: Type.String(),
  isRunning: Type.Boolean(),
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
  /** The amount of work; null if not reported. */
  count: Nullable(Type.Integer()),
  /** Null if the last run has not failed, or if no process has had the task for a day. */
  failedAt: Nullable(Timestamp),
  error: Nullable(Type.String()),
  /** The last sign of a process that has the task. */
  seenAt: Nullable(Timestamp),
});
const maxError = 500;
const cutOff = 'The run was interrupted';
/** A failed task is repeated long before this time. */
const failureHours = 24;
/** After a failed run, the next one begins this long after its start, if the task runs less often. */
const retrySeconds = 540;

export type BackgroundTaskRepository = ReturnType<typeof createBackgroundTaskRepository>;

/** Each task runs in one process at a time, by the database's clock. One row per task. */
export function createBackgroundTaskRepository(db: Queryable) {
  const isFailing = sql.fragment`(failed_at > clock_timestamp() - make_interval(hours => ${failureHours}) or claimed_until > clock_timestamp())`;
  const until = (seconds: number) => sql.fragment`clock_timestamp() + make_interval(secs => ${seconds})`;
  return {
    /**
     * Succeeds if no other process holds the task and its last run either started at least `everySeconds` ago or saved a position. A run
     * that has reported its failure is repeated after about ten minutes. Ignores times in the future, which occur when the clock was set
     * back. A run that never ended counts as failed if the previous one did not end either, because the task may kill its process.
     */
    claim: (name: string, holder: string, times: { claimSeconds: number; everySeconds: number }) =>
      db.maybeOne(sql.rows(ClaimRow)`
        /* backgroundTasks.claim */
        insert into maintenance_runs as m (name, claimed_by, claimed_until, last_started_at)
        values (${name}, ${holder}::uuid, ${until(times.claimSeconds)}, clock_timestamp())
        on conflict (name) do update set claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until,
          last_started_at = case when m.place is null then excluded.last_started_at else m.last_started_at end,
          last_error = case when m.claimed_by is null then m.last_error else ${cutOff} end,
          failed_at = case when m.claimed_by is not null and m.last_error = ${cutOff} then clock_timestamp() else m.failed_at end
        where (m.claimed_until is null or m.claimed_until <= clock_timestamp() or m.claimed_until > ${until(times.claimSeconds)})
          and (m.place is not null or m.last_started_at is null or m.last_started_at > clock_timestamp()
            or m.last_started_at <= ${until(-times.everySeconds)}
            or (m.failed_at is not null and m.last_error is distinct from ${cutOff} and m.last_started_at <= ${until(-retrySeconds)}))
        returning place as position`),

    /** Returns false if the claim was lost. */
    renew: async (name: string, holder: string, claimSeconds: number): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(NameRow)`
        /* backgroundTasks.renew */
        update maintenance_runs set claimed_until = ${until(claimSeconds)}
        where name = ${name} and claimed_by = ${holder}::uuid returning name`);
      return row !== null;
    },

    /** The next run resumes there. Returns false if the claim was lost. */
    savePosition: async (name: string, holder: string, position: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(NameRow)`
        /* backgroundTasks.savePosition */
        update maintenance_runs set place = ${position}
        where name = ${name} and claimed_by = ${holder}::uuid returning name`);
      return row !== null;
    },

    /** Also clears the position, so that the next run starts over. */
    saveResult: (name: string, result: string) =>
      db.query(sql.nothing`
        /* backgroundTasks.saveResult */
        insert into maintenance_runs (name, last_ended_at, result) values (${name}, clock_timestamp(), ${result})
        on conflict (name) do update set place = null, last_ended_at = excluded.last_ended_at, result = excluded.result`),

    release: (name: string, holder: string, count: number | null = null) =>
      db.query(sql.nothing`
        /* backgroundTasks.release */
        update maintenance_runs set claimed_by = null, claimed_until = null, last_count = ${count}, failed_at = null, last_error = null,
          last_ended_at = case when place is null then clock_timestamp() else last_ended_at end
        where name = ${name} and claimed_by = ${holder}::uuid`),

    releaseFailed: (name: string, holder: string, error: string) =>
      db.query(sql.nothing`
        /* backgroundTasks.releaseFailed */
        update maintenance_runs set claimed_by = null, claimed_until = null, failed_at = clock_timestamp(),
          last_error = ${error.replaceAll('\0', '').slice(0, maxError)}
        where name = ${name} and claimed_by = ${holder}::uuid`),

    /** In ms since 1970. Each run of a task may be in another process with another clock. */
    readClock: async (): Promise<number> => {
      const { at } = await db.one(sql.rows(ClockRow)`/* backgroundTasks.readClock */ select clock_timestamp() as at`);
      return at.getTime();
    },

    list: () =>
      db.any(sql.rows(RunRow)`
        /* backgroundTasks.list */
        select name, coalesce(claimed_until > clock_timestamp(), false) as "isRunning", last_started_at as "startedAt",
          last_ended_at as "endedAt", last_count as count,
          case when ${isFailing} then failed_at end as "failedAt", case when ${isFailing} then last_error end as error,
          greatest(last_started_at, last_ended_at, failed_at, claimed_until) as "seenAt"
        from maintenance_runs order by name`),

    /**
     * Returns, in one statement, the result of the last complete run, the database's time in ms since 1970, and whether the database has
     * taken over.
     */
    findResultNow: async (
      name: string,
    ): Promise<{ readonly result: string | null; readonly now: number; readonly hasTakenOver: boolean }> => {
      const { now, ...found } = await db.one(sql.rows(ResultNowRow)`
        /* backgroundTasks.findResultNow */
        select (select result from maintenance_runs where name = ${name}) as result, clock_timestamp() as now,
          ${mayBeSent} as "hasTakenOver"`);
      return { ...found, now: now.getTime() };
    },

    findResult: async (name: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(ResultRow)`
        /* backgroundTasks.findResult */ select result from maintenance_runs where name = ${name}`);
      return row?.result ?? null;
    },
  };
}
