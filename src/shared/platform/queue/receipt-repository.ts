import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../db/sql.ts';
import { JobOutcome } from './jobs.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });

export type ReceiptRepository = ReturnType<typeof createReceiptRepository>;

/** What queued jobs came to. The messages between processes are hints; this is what counts. */
export function createReceiptRepository(db: Queryable) {
  return {
    insert: (jobId: string, outcome: JobOutcome) =>
      db.query(sql.nothing`
        /* receipts.insert */
        insert into receipts (job_id, outcome) values (${jobId}, ${JSON.stringify(outcome)}) on conflict (job_id) do nothing`),

    find: async (jobId: string): Promise<JobOutcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* receipts.find */ select outcome from receipts where job_id = ${jobId}`,
      );
      return row ? Value.Parse(JobOutcome, JSON.parse(row.outcome)) : null;
    },

    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* receipts.deleteOlderThan */ delete from receipts where created_at < now() - make_interval(secs => ${seconds})`),
  };
}
