import type { DatabaseTransactionConnection } from 'slonik';
import { AppError } from '../errors/errors.ts';
import { ConnectionGate, isFirst } from './connection-gate.ts';
import { hasOwnLimit } from './limit-lock-wait.ts';
import { isLockTimeout } from './sqlstate.ts';

/**
 * How long a session of the pool waits for one lock. Most locks are held for less, and Postgres looks for deadlocks earlier; callers wait
 * longer for a connection.
 */
export const lockWaitMs = 2_000;

/**
 * Repeats work that got no lock in time, for as long as one statement may take. Between attempts it holds no connection, and repeated
 * attempts share a part of the pool: if many callers wait for locks of one organization, others still get connections. Priority work has
 * its own part.
 */
export class LockRepeats {
  readonly #first: ConnectionGate;
  readonly #others: ConnectionGate;
  readonly #maxMs: number;

  constructor(poolSize: number, maxMs: number) {
    const places = Math.max(Math.floor(poolSize / 4), 1);
    this.#first = new ConnectionGate(places);
    this.#others = new ConnectionGate(places);
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
    const gate = isFirst() ? this.#first : this.#others;
    let run = work;
    let until: number | null = null;
    for (;;) {
      try {
        return await run();
      } catch (error) {
        // Work that throws an AppError has handled the lock timeout itself.
        if (!isLockTimeout(error) || error instanceof AppError || !isRepeatable()) throw error;
        const now = performance.now();
        until ??= now + this.#maxMs - lockWaitMs;
        const leftMs = until - now;
        if (leftMs <= 0) throw error;
        run = () => admitted(gate, leftMs, work, error);
      }
    }
  }
}

/** Throws `cause` if the gate does not admit `work` in time. */
function admitted<T>(gate: ConnectionGate, limitMs: number, work: () => Promise<T>, cause: unknown): Promise<T> {
  let isAdmitted = false;
  const admit = () => {
    isAdmitted = true;
    return work();
  };
  return gate.run(limitMs, admit).catch((error: unknown) => {
    throw isAdmitted ? error : cause;
  });
}
