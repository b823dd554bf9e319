import { type Queryable, sql } from './sql.ts';

/** Limits each further lock wait of the transaction to `ms`. */
export async function limitLockWait(tx: Queryable, ms: number): Promise<void> {
  await tx.query(sql.nothing`/* locks.limitWait */ select set_config('lock_timeout', ${String(ms)}, true)`);
}
