import { Type } from 'typebox';
import { type Queryable, sql } from './sql.ts';
import { isStatementTimeout } from './sqlstate.ts';

const BeforeRow = Type.Object({ before: Type.String() });

/** Returns null if one of the reads took longer than `ms`. A transaction continues in either case. */
export async function readWithin<T>(db: Queryable, ms: number, read: (tx: Queryable) => Promise<T>): Promise<T | null> {
  try {
    return await db.transaction(async (tx) => {
      const { before } = await tx.one(sql.rows(BeforeRow)`
        /* readWithin.limit */
        select current_setting('statement_timeout') as before, set_config('statement_timeout', ${String(ms)}, true)`);
      const result = await read(tx);
      // The end of a savepoint does not reset the limit.
      await tx.query(sql.nothing`/* readWithin.lift */ select set_config('statement_timeout', ${before}, true)`);
      return result;
    });
  } catch (error) {
    if (isStatementTimeout(error)) return null;
    throw error;
  }
}
