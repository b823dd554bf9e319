import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../db/sql.ts';
import { Timestamp } from '../schema/standard-schema.ts';
import { JobOutcome } from './jobs.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const TimeRow = Type.Object({ time: Timestamp });
const PastRow = Type.Object({ past: Type.Boolean() });

export type ReceiptRepository = ReturnType<typeof createReceiptRepository>;

/**
 * What queued jobs came to; the messages between processes are hints, this is what counts. Also the ends of changes that must
 * have one end only, by the id of the change: whoever writes it first decides.
 */
export function createReceiptRepository(db: Queryable) {
  return {
    insert: (jobId: string, outcome: JobOutcome) =>
      db.query(sql.nothing`
        /* receipts.insert */
        insert into receipts (job_id, outcome) values (${jobId}, ${JSON.stringify(outcome)}) on conflict (job_id) do nothing`),

    /** False when there is an end already, or the deadline (ISO time) is over. Waits for a transaction that has just written one. */
    claim: async (changeId: string, outcome: JobOutcome, deadline: string | null = null): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* receipts.claim */
        insert into receipts (job_id, outcome) select ${changeId}::uuid, ${JSON.stringify(outcome)}
        where ${deadline}::timestamptz is null or clock_timestamp() < ${deadline}::timestamptz
        on conflict (job_id) do nothing returning job_id as id`);
      return row !== null;
    },

    find: async (jobId: string): Promise<JobOutcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* receipts.find */ select outcome from receipts where job_id = ${jobId}`,
      );
      return row ? Value.Parse(JobOutcome, JSON.parse(row.outcome)) : null;
    },

    /** The database's time in so many seconds. */
    timeIn: async (seconds: number): Promise<Date> => {
      const row = await db.one(sql.rows(TimeRow)`
        /* receipts.timeIn */ select clock_timestamp() + make_interval(secs => ${seconds}) as time`);
      return row.time;
    },

    isPast: async (time: string): Promise<boolean> => {
      const row = await db.one(sql.rows(PastRow)`
        /* receipts.isPast */ select clock_timestamp() >= ${time}::timestamptz as past`);
      return row.past;
    },

    /** A job that may still be run keeps its receipt, whatever a clock did: without it, it would be run again. */
    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* receipts.deleteOlderThan */
        delete from receipts where created_at < now() - make_interval(secs => ${seconds})
          and not exists (select 1 from job_admissions a where a.id = receipts.job_id)`),
  };
}
