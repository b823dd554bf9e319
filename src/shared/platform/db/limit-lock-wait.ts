import { type Queryable, sql } from './sql.ts';

const limited = new WeakSet<Queryable>();

/** Limits each further lock wait of the transaction; 0 for no limit. `LockRepeats` then does not repeat it. */
export async function limitLockWait(tx: Queryable, ms: number): Promise<void> {
  limited.add(tx);
  await tx.query(sql.nothing`/* locks.limitWait */ select set_config('lock_timeout', ${String(ms)}, true)`);
}

export function hasOwnLimit(tx: Queryable): boolean {
  return limited.has(tx);
}
