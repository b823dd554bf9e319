import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { TooManyRequestsError } from '../errors/errors.ts';
import { type Queryable, sql } from './sql.ts';

/** How many attempts per key are allowed, and for how long further ones are refused. Times are in seconds. */
export interface AttemptLimit {
  readonly name: string;
  readonly attempts: number;
  readonly perSeconds: number;
  readonly blockSeconds: number;
}

/** Counts attempts in Postgres for all replicas; in memory while Postgres cannot be asked. */
export class AttemptLimiter {
  readonly #limiter: RateLimiterPostgres;

  constructor(db: Queryable, { attempts, blockSeconds, name, perSeconds }: AttemptLimit) {
    const limits = { points: attempts, duration: perSeconds, blockDuration: blockSeconds, keyPrefix: name };
    this.#limiter = new RateLimiterPostgres({
      ...limits,
      storeClient: { query: (query: LimiterQuery) => run(db, query) },
      storeType: 'client',
      tableName: 'sign_in_attempts',
      tableCreated: true,
      // The sweeps do that.
      clearExpiredByTimeout: false,
      insuranceLimiter: new RateLimiterMemory(limits),
    });
  }

  /** Counts an attempt before it is made. Returns how many there are now. Throws TooManyRequestsError if there were too many. */
  async count(key: string): Promise<number> {
    try {
      return (await this.#limiter.consume(key)).consumedPoints;
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      const retryAfterSeconds = Math.max(Math.ceil(error.msBeforeNext / 1000), 1);
      throw new TooManyRequestsError('Too many attempts to sign in; please try again later', { retryAfterSeconds });
    }
  }

  /** Takes back an attempt that has succeeded. */
  async takeBack(key: string): Promise<void> {
    await this.#limiter.reward(key);
  }

  /** Forgets all attempts. */
  async forget(key: string): Promise<void> {
    await this.#limiter.delete(key);
  }
}

interface LimiterQuery {
  readonly text: string;
  readonly values: readonly (string | number | null)[];
}

/** Runs a statement of the library on our pool, which takes statements as tokens. */
async function run(db: Queryable, { text, values }: LimiterQuery) {
  const statement = { ...sql.nothing``, sql: `/* attempts */ ${text}`, values };
  const { rows, rowCount } = await db.query(statement);
  return { rows, rowCount };
}

/** Deletes attempts that no longer count. */
export async function deleteOldAttempts(db: Queryable): Promise<void> {
  await db.query(sql.nothing`/* attempts.deleteOld */ delete from sign_in_attempts where expire < ${Date.now()}`);
}
