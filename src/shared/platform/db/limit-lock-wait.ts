import { type Queryable, sql } from './sql.ts';

const limited = new WeakSet<Queryable>();

/** The transaction waits at most so long, in ms, for each further lock; 0: as long as its statements may take. It is not repeated by LockRepeats. */
export async function limitLockWait(tx: Queryable, ms: number): Promise<void> {
  limited.add(tx);
  await tx.query(sql.nothing`/* locks.limitWait */ select set_config('lock_timeout', ${String(ms)}, true)`);
}

/** Whether `limitLockWait` was called for the transaction. */
export function hasOwnLimit(tx: Queryable): boolean {
  return limited.has(tx);
}
