import { type Queryable, sql } from './sql.ts';

/** The transaction waits at most so long, in ms, for each further lock. */
export async function limitLockWait(tx: Queryable, ms: number): Promise<void> {
  await tx.query(sql.nothing`/* locks.limitWait */ select set_config('lock_timeout', ${String(ms)}, true)`);
}
