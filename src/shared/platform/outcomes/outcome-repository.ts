import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../db/sql.ts';
import { Outcome } from '../errors/outcome.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });
const IdRow = Type.Object({ id: Type.String() });

export type OutcomeRepository = ReturnType<typeof createOutcomeRepository>;

/**
 * Outcomes of queued jobs and of edits of a state. The first outcome written counts. These rows are authoritative; messages between
 * processes are only hints.
 */
export function createOutcomeRepository(db: Queryable) {
  return {
    insert: (id: string, outcome: Outcome) =>
      db.query(sql.nothing`
        /* outcomes.insert */
        insert into job_results (job_id, outcome) values (${id}, ${JSON.stringify(outcome)}) on conflict (job_id) do nothing`),

    /**
     * Returns false if there is an outcome already, or if the deadline (ISO time) has passed. Waits for a concurrent transaction that has
     * written one.
     */
    claim: async (id: string, outcome: Outcome, deadline: string | null = null): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* outcomes.claim */
        insert into job_results (job_id, outcome) select ${id}::uuid, ${JSON.stringify(outcome)}
        where ${deadline}::timestamptz is null or clock_timestamp() < ${deadline}::timestamptz
        on conflict (job_id) do nothing returning job_id as id`);
      return row !== null;
    },

    find: async (id: string): Promise<Outcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* outcomes.find */ select outcome from job_results where job_id = ${id}`,
      );
      return row ? Value.Parse(Outcome, JSON.parse(row.outcome)) : null;
    },

    /** Keeps the outcome of a job that may still run, even if a clock was wrong: without it, the job would run again. */
    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* outcomes.deleteOlderThan */
        delete from job_results where created_at < now() - make_interval(secs => ${seconds})
          and not exists (select 1 from job_admissions a where a.id = job_results.job_id)`),
  };
}
