import { type Queryable, sql } from '../platform/db/sql.ts';

/**
 * Runs `work` in a transaction that has locked the row of the stack, deleted or not. The lock is a statement of its own: statements of `work`
 * see what was committed during the wait for it, such as the start of an update, which does not change that row.
 */
export function onLockedStack<T>(db: Queryable, stackId: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql.nothing`/* stacks.lockRow */ select 1 from stacks where id = ${stackId} for update`);
    return work(tx);
  });
}
