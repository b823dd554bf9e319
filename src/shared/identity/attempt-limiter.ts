import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Queryable } from '../platform/db/sql.ts';
import { TooManyRequestsError } from '../platform/errors/errors.ts';
import { type AttemptLimit, type AttemptRepository, createAttemptRepository } from './attempt-repository.ts';

/** Counts in Postgres for all replicas, or in the memory of this process while Postgres is unavailable. */
export class AttemptLimiter {
  readonly #rows: AttemptRepository;
  readonly #limit: AttemptLimit;
  readonly #inMemory: RateLimiterMemory;

  constructor(db: Queryable, limit: AttemptLimit) {
    this.#rows = createAttemptRepository(db);
    this.#limit = limit;
    const { attempts, blockSeconds, name, perSeconds } = limit;
    this.#inMemory = new RateLimiterMemory({
      points: attempts,
      duration: perSeconds,
      blockDuration: blockSeconds,
      keyPrefix: name,
    });
  }

  /** Counts an attempt before it is made. Throws TooManyRequestsError. */
  async count(key: string): Promise<number> {
    const { leftMs, points } = await this.#rows
      .count(this.#rowKey(key), this.#limit)
      .catch(() => this.#countInMemory(key));
    if (points <= this.#limit.attempts) return points;
    const retryAfterSeconds = Math.max(Math.ceil(leftMs / 1000), 1);
    throw new TooManyRequestsError('Too many attempts to sign in; please try again later', { retryAfterSeconds });
  }

  /** Uncounts an attempt that has succeeded. */
  async takeBack(key: string): Promise<void> {
    await this.#rows.takeBack(this.#rowKey(key)).catch(() => this.#inMemory.reward(key));
  }

  async forget(key: string): Promise<void> {
    await this.#rows.forget(this.#rowKey(key)).catch(() => this.#inMemory.delete(key));
  }

  async #countInMemory(key: string): Promise<{ readonly points: number; readonly leftMs: number }> {
    const counted = await this.#inMemory.consume(key).catch((error: unknown) => {
      if (error instanceof RateLimiterRes) return error;
      throw error;
    });
    return { points: counted.consumedPoints, leftMs: counted.msBeforeNext };
  }

  #rowKey(key: string): string {
    return `${this.#limit.name}:${key}`;
  }
}
