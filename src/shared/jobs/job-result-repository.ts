import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Outcome } from '../platform/errors/outcome.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });

export type JobResultRepository = ReturnType<typeof createJobResultRepository>;

/** The results of queued jobs. They are authoritative; messages between processes are only hints. */
export function createJobResultRepository(db: Queryable) {
  return {
    insert: (jobId: string, outcome: Outcome) =>
      db.query(sql.nothing`
        /* jobResults.insert */
        insert into job_results (job_id, outcome) values (${jobId}, ${JSON.stringify(outcome)}) on conflict (job_id) do nothing`),

    find: async (jobId: string): Promise<Outcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* jobResults.find */ select outcome from job_results where job_id = ${jobId}`,
      );
      return row ? Value.Parse(Outcome, JSON.parse(row.outcome)) : null;
    },

    /** A job that may still be run keeps its result, even if a clock was wrong: without it, the job would run again. */
    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* jobResults.deleteOlderThan */
        delete from job_results where created_at < now() - make_interval(secs => ${seconds})
          and not exists (select 1 from job_admissions a where a.id = job_results.job_id)`),
  };
}
