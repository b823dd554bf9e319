import { Type } from 'typebox';
import { type Queryable, sql } from '../../platform/db/sql.ts';
import { Timestamp } from '../../platform/schema/standard-schema.ts';

const DeadlineRow = Type.Object({ deadline: Timestamp });
const PastRow = Type.Object({ past: Type.Boolean() });

/** Uses the database's clock, since different processes set and check the deadlines of edits. */
export function createDeadlineRepository(db: Queryable) {
  return {
    after: async (seconds: number): Promise<Date> => {
      const row = await db.one(sql.rows(DeadlineRow)`
        /* deadlines.after */ select clock_timestamp() + make_interval(secs => ${seconds}) as deadline`);
      return row.deadline;
    },

    /** `deadline`: ISO time. */
    isPast: async (deadline: string): Promise<boolean> => {
      const row = await db.one(sql.rows(PastRow)`
        /* deadlines.isPast */ select clock_timestamp() >= ${deadline}::timestamptz as past`);
      return row.past;
    },
  };
}
