import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Outcome } from '../platform/errors/outcome.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

const OutcomeRow = Type.Object({ outcome: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const TimeRow = Type.Object({ time: Timestamp });
const PastRow = Type.Object({ past: Type.Boolean() });

export type ChangeOutcomeRepository = ReturnType<typeof createChangeOutcomeRepository>;

/** The outcomes of changes that must have one only, by the id of the change, beside those of jobs: whoever writes it first decides. */
export function createChangeOutcomeRepository(db: Queryable) {
  return {
    /** False when there is an outcome already, or the deadline (ISO time) is over. Waits for a transaction that has just written one. */
    claim: async (changeId: string, outcome: Outcome, deadline: string | null = null): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* changeOutcomes.claim */
        insert into receipts (job_id, outcome) select ${changeId}::uuid, ${JSON.stringify(outcome)}
        where ${deadline}::timestamptz is null or clock_timestamp() < ${deadline}::timestamptz
        on conflict (job_id) do nothing returning job_id as id`);
      return row !== null;
    },

    find: async (changeId: string): Promise<Outcome | null> => {
      const row = await db.maybeOne(
        sql.rows(OutcomeRow)`/* changeOutcomes.find */ select outcome from receipts where job_id = ${changeId}`,
      );
      return row ? Value.Parse(Outcome, JSON.parse(row.outcome)) : null;
    },

    /** The database's time in so many seconds. */
    timeIn: async (seconds: number): Promise<Date> => {
      const row = await db.one(sql.rows(TimeRow)`
        /* changeOutcomes.timeIn */ select clock_timestamp() + make_interval(secs => ${seconds}) as time`);
      return row.time;
    },

    isPast: async (time: string): Promise<boolean> => {
      const row = await db.one(sql.rows(PastRow)`
        /* changeOutcomes.isPast */ select clock_timestamp() >= ${time}::timestamptz as past`);
      return row.past;
    },
  };
}
