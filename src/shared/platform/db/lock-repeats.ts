import type { DatabaseTransactionConnection } from 'slonik';
import { AppError } from '../errors/errors.ts';
import { ConnectionGate } from './connection-gate.ts';
import { hasOwnLimit } from './limit-lock-wait.ts';
import { isLockTimeout } from './sqlstate.ts';

/**
 * How long sessions of the pool wait for one lock, in ms: longer than most locks are held, and than Postgres waits before it looks for
 * deadlocks, but shorter than callers wait for a connection.
 */
export const lockWaitMs = 2_000;

/**
 * Repeats statements and transactions that got no lock in time, until one statement would have failed. They give their connections back before,
 * and then share a quarter of the pool: however many callers wait for what one organization has locked, the others have connections.
 */
export class LockRepeats {
  readonly #again: ConnectionGate;
  readonly #maxMs: number;

  constructor(poolSize: number, maxMs: number) {
    this.#again = new ConnectionGate(Math.max(Math.floor(poolSize / 4), 1));
    this.#maxMs = maxMs;
  }

  /** `begin` runs the work in a transaction. One with a lock wait of its own runs once. */
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

  /** `work` leaves nothing behind when it fails. */
  async run<T>(work: () => Promise<T>, isRepeatable = () => true): Promise<T> {
    const until = performance.now() + this.#maxMs;
    let run = work;
    for (;;) {
      try {
        return await run();
      } catch (error) {
        // An AppError is the response to a lock timeout that its work expects.
        if (!isLockTimeout(error) || error instanceof AppError || !isRepeatable()) throw error;
        const leftMs = until - performance.now();
        if (leftMs <= 0) throw error;
        run = () => this.#again.run(leftMs, work);
      }
    }
  }
}
