import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { FairSemaphore } from '../platform/admission/fair-semaphore.ts';

/** One change runs at a time in all processes together. Only a few waiting calls hold a connection. */
const limits = { atOnce: 3, atOncePerCaller: 1, waiting: 1_000, waitingPerCaller: 100, waitMs: 10_000 };
const lockMs = 5_000;
/** The wait for changes that nobody can repeat, or that must not fail because organizations are busy. */
export const patientLockMs = 15_000;
/** How much longer such a change waits for its turn, in ms. */
const turnMs = 5_000;
const semaphores = new WeakMap<Database, FairSemaphore>();

/**
 * Runs a change of users, memberships, grants or tokens in a transaction that holds the lock on people. `of`: the organization or user
 * whose changes run one at a time; null: the transaction takes no lock. `waitMs`: the maximum wait for the lock. Throws UnavailableError.
 */
export function changePeople<T>(
  db: Database,
  of: string | null,
  work: (tx: Queryable) => Promise<T>,
  waitMs = lockMs,
): Promise<T> {
  if (of === null) return db.inTransaction(work);
  const semaphore = semaphores.get(db) ?? new FairSemaphore(limits);
  semaphores.set(db, semaphore);
  const change = () =>
    db.inTransaction(async (tx) => {
      await createPeopleRepository(tx).lock(waitMs);
      return work(tx);
    });
  const patient = { waitMs: waitMs + turnMs, waitingPerCaller: limits.waiting };
  return semaphore.run(of, null, change, waitMs > lockMs ? patient : {});
}
