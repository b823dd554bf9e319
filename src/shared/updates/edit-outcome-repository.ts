import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Outcome } from '../platform/errors/outcome.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const TimeRow = Type.Object({ time: Timestamp });
const PastRow = Type.Object({ past: Type.Boolean() });

export type EditOutcomeRepository = ReturnType<typeof createEditOutcomeRepository>;

/** Outcomes of changes, by the change's id, in the table of job results. The first outcome that is written counts. */
export function createEditOutcomeRepository(db: Queryable) {
  return {
    /**
     * Stores the outcome. Returns false if there is one already, or the deadline (ISO time) has passed. Waits for a concurrent
     * transaction that has written one.
     */
    claim: async (changeId: string, outcome: Outcome, deadline: string | null = null): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* editOutcomes.claim */
        insert into job_results (job_id, outcome) select ${changeId}::uuid, ${JSON.stringify(outcome)}
        where ${deadline}::timestamptz is null or clock_timestamp() < ${deadline}::timestamptz
        on conflict (job_id) do nothing returning job_id as id`);
      return row !== null;
    },

    find: async (changeId: string): Promise<Outcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* editOutcomes.find */ select outcome from job_results where job_id = ${changeId}`,
      );
      return row ? Value.Parse(Outcome, JSON.parse(row.outcome)) : null;
    },

    /** The database's time `seconds` from now. */
    timeIn: async (seconds: number): Promise<Date> => {
      const row = await db.one(sql.rows(TimeRow)`
        /* editOutcomes.timeIn */ select clock_timestamp() + make_interval(secs => ${seconds}) as time`);
      return row.time;
    },

    isPast: async (time: string): Promise<boolean> => {
      const row = await db.one(sql.rows(PastRow)`
        /* editOutcomes.isPast */ select clock_timestamp() >= ${time}::timestamptz as past`);
      return row.past;
    },
  };
}
