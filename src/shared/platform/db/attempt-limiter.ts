import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Type } from 'typebox';
import { TooManyRequestsError } from '../errors/errors.ts';
import { type Queryable, sql } from './sql.ts';

/** How many attempts per key are allowed, and for how long further ones are refused. Times are in seconds. */
export interface AttemptLimit {
  readonly name: string;
  readonly attempts: number;
  readonly perSeconds: number;
  readonly blockSeconds: number;
}

const CountRow = Type.Object({ points: Type.Integer(), leftMs: Type.Number() });

/** Ms since 1970 by the clock of Postgres: replicas whose own clocks differ count together. */
const nowMs = sql.fragment`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** Counts attempts in Postgres for all replicas; in memory while Postgres is unavailable. */
export class AttemptLimiter {
  readonly #db: Queryable;
  readonly #limit: AttemptLimit;
  readonly #inMemory: RateLimiterMemory;

  constructor(db: Queryable, limit: AttemptLimit) {
    this.#db = db;
    this.#limit = limit;
    const { attempts, blockSeconds, name, perSeconds } = limit;
    this.#inMemory = new RateLimiterMemory({
      points: attempts,
      duration: perSeconds,
      blockDuration: blockSeconds,
      keyPrefix: name,
    });
  }

  /** Counts an attempt before it is made. Returns the current count. Throws TooManyRequestsError if there were too many. */
  async count(key: string): Promise<number> {
    const { leftMs, points } = await this.#count(key).catch(() => this.#countInMemory(key));
    if (points <= this.#limit.attempts) return points;
    const retryAfterSeconds = Math.max(Math.ceil(leftMs / 1000), 1);
    throw new TooManyRequestsError('Too many attempts to sign in; please try again later', { retryAfterSeconds });
  }

  /** Takes back an attempt that has succeeded. */
  async takeBack(key: string): Promise<void> {
    await this.#change(
      () =>
        this.#db.query(sql.nothing`
          /* attempts.takeBack */ update sign_in_attempts set points = points - 1 where key = ${this.#rowKey(key)} and expire > ${nowMs}`),
      () => this.#inMemory.reward(key),
    );
  }

  /** Forgets all attempts. */
  async forget(key: string): Promise<void> {
    await this.#change(
      () =>
        this.#db.query(
          sql.nothing`/* attempts.forget */ delete from sign_in_attempts where key = ${this.#rowKey(key)}`,
        ),
      () => this.#inMemory.delete(key),
    );
  }

  /** The first attempt beyond the limit blocks the key. A wait that is too long, because the clock was set back, is cut. */
  #count(key: string) {
    const { attempts, blockSeconds, perSeconds } = this.#limit;
    const longestMs = Math.max(perSeconds, blockSeconds) * 1000;
    return this.#db.one(sql.rows(CountRow)`
      /* attempts.count */
      insert into sign_in_attempts as a (key, points, expire) values (${this.#rowKey(key)}, 1, ${nowMs} + ${perSeconds * 1000})
      on conflict (key) do update set
        points = case when a.expire <= ${nowMs} then 1 else a.points + 1 end,
        expire = case
          when a.expire <= ${nowMs} then ${nowMs} + ${perSeconds * 1000}
          when a.points = ${attempts} and ${blockSeconds > 0} then ${nowMs} + ${blockSeconds * 1000}
          else least(a.expire, ${nowMs} + ${longestMs}) end
      returning points, (expire - ${nowMs})::float8 as "leftMs"`);
  }

  async #countInMemory(key: string): Promise<{ readonly points: number; readonly leftMs: number }> {
    const counted = await this.#inMemory.consume(key).catch((error: unknown) => {
      if (error instanceof RateLimiterRes) return error;
      throw error;
    });
    return { points: counted.consumedPoints, leftMs: counted.msBeforeNext };
  }

  async #change(inPostgres: () => Promise<unknown>, inMemory: () => Promise<unknown>): Promise<void> {
    await inPostgres().catch(inMemory);
  }

  #rowKey(key: string): string {
    return `${this.#limit.name}:${key}`;
  }
}

/** Deletes attempts that no longer count. */
export async function deleteOldAttempts(db: Queryable): Promise<void> {
  await db.query(sql.nothing`/* attempts.deleteOld */ delete from sign_in_attempts where expire < (select ${nowMs})`);
}
