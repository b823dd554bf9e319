import type { DatabaseTransactionConnection } from 'slonik';
import { AppError } from '../errors/errors.ts';
import { isFirst } from './connection-gate.ts';
import { hasOwnLimit } from './limit-lock-wait.ts';
import { isLockTimeout } from './sqlstate.ts';

/**
 * How long a session of the pool waits for one lock. Most locks are held for less, and Postgres looks for deadlocks earlier; callers wait
 * longer for a connection.
 */
export const lockWaitMs = 2_000;

/**
 * Repeats work that got no lock in time, for as long as one statement may take. Between attempts it holds no connection, and repeated
 * attempts share a part of the pool: if many callers wait for locks of one organization, others still get connections. Half of the places go
 * to callers with few attempts, so that a lock that is held for long does not delay callers of other locks. Priority work has its own part.
 */
export class LockRepeats {
  readonly #first: Places;
  readonly #others: Places;
  readonly #maxMs: number;

  constructor(poolSize: number, maxMs: number) {
    const places = Math.max(Math.floor(poolSize / 4), 1);
    this.#first = new Places(places);
    this.#others = new Places(places);
    this.#maxMs = maxMs;
  }

  get waiting(): number {
    return this.#first.waiting + this.#others.waiting;
  }

  /** A transaction that has called `limitLockWait` is not repeated. */
  transaction<T>(
    begin: (work: (tx: DatabaseTransactionConnection) => Promise<T>) => Promise<T>,
    work: (tx: DatabaseTransactionConnection) => Promise<T>,
  ): Promise<T> {
    let last: DatabaseTransactionConnection | null = null;
    const run = () =>
      begin((tx) => {
        last = tx;
        return work(tx);
      });
    return this.run(run, () => last !== null && !hasOwnLimit(last));
  }

  /** `work` must have no effect if it fails. */
  async run<T>(work: () => Promise<T>, isRepeatable = () => true): Promise<T> {
    const places = isFirst() ? this.#first : this.#others;
    let until: number | null = null;
    let run = work;
    for (let attempts = 1; ; attempts++) {
      try {
        return await run();
      } catch (error) {
        // Work that throws an AppError has handled the lock timeout itself.
        if (!isLockTimeout(error) || error instanceof AppError || !isRepeatable()) throw error;
        const now = performance.now();
        until ??= now + this.#maxMs - lockWaitMs;
        if (now >= until || !(await places.take(attempts, until - now))) throw error;
        run = async () => {
          try {
            return await work();
          } finally {
            places.giveBack();
          }
        };
      }
    }
  }
}

/** Every second place that becomes free goes to the earliest caller, and the others to the caller with the fewest attempts so far. */
class Places {
  readonly #waiting = new Set<{ readonly attempts: number; readonly take: () => void }>();
  #free: number;
  #isEarliestNext = false;

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Returns false if no place becomes free within `limitMs`. */
  async take(attempts: number, limitMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const caller = { attempts, take: () => resolve(true) };
    this.#waiting.add(caller);
    const timer = setTimeout(() => {
      this.#waiting.delete(caller);
      resolve(false);
    }, limitMs);
    return promise.finally(() => clearTimeout(timer));
  }

  giveBack(): void {
    let [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    if (!this.#isEarliestNext) for (const caller of this.#waiting) if (caller.attempts < next.attempts) next = caller;
    this.#isEarliestNext = !this.#isEarliestNext;
    this.#waiting.delete(next);
    next.take();
  }
}
