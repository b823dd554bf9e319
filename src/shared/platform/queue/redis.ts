import { Redis, type RedisOptions } from 'ioredis';
import { UnavailableError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';

/** Redis would throw queued writes away when its memory is full. */
export class RedisPolicyError extends Error {
  override readonly name = 'RedisPolicyError';
}

/** Redis did not answer while the process started. */
export class RedisUnreachableError extends Error {
  override readonly name = 'RedisUnreachableError';
}

/** An open connection, for those outside this folder. */
export type RedisConnection = Redis;

/** How a connection is used: `producer` calls fail fast when Redis is away, `worker` calls wait for it to come back. */
export type RedisUse = 'producer' | 'worker';

const commandTimeoutMs = 5_000;
const longestRetryMs = 2_000;

/** Connections that must not be opened again. */
const parted = new WeakSet<Redis>();
/** BullMQ works on duplicates of the connection that it is given, and does not end them while Redis is away. */
const duplicates = new WeakMap<Redis, Redis[]>();

/** Opens a connection that reconnects by itself until `disconnectRedis`, and so do its duplicates. */
export function connectRedis(url: string, use: RedisUse, logger: Logger): Redis {
  const retryStrategy = (times: number): number | null =>
    parted.has(redis) ? null : Math.min(50 * 2 ** Math.min(times, 6), longestRetryMs);
  const options: RedisOptions = { lazyConnect: false, connectTimeout: commandTimeoutMs, retryStrategy };
  if (use === 'producer') {
    Object.assign(options, { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: commandTimeoutMs });
  } else {
    Object.assign(options, { maxRetriesPerRequest: null });
  }
  const redis = new Redis(url, options);
  const made: Redis[] = [];
  duplicates.set(redis, made);
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => {
    const connection = duplicate(override);
    made.push(connection);
    return connection;
  };
  let lastMessage = '';
  redis.on('error', (error: Error) => {
    // Repeated on every attempt to reconnect; one line per kind of trouble is enough.
    if (error.message !== lastMessage) logger.warn({ err: error }, 'redis');
    lastMessage = error.message;
  });
  redis.on('ready', () => {
    lastMessage = '';
  });
  return redis;
}

/**
 * Ends a connection and its duplicates. ioredis says so, and rejects the commands that wait, only when a connection breaks: one
 * that is between two attempts to reconnect makes one more.
 */
export function disconnectRedis(redis: Redis): void {
  parted.add(redis);
  for (const connection of [redis, ...(duplicates.get(redis) ?? [])]) {
    if (connection.status === 'end') continue;
    const between = connection.status === 'reconnecting';
    connection.disconnect();
    if (!between) continue;
    connection.connect().then(
      () => connection.disconnect(),
      () => {},
    );
  }
}

/** Resolves when the connection is ready; rejects with UnavailableError after `limitMs`. */
export async function untilReady(redis: Redis, limitMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new UnavailableError(`Redis is not reachable within ${limitMs} ms`)), limitMs);
  redis.once('ready', resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off('ready', resolve);
  }
}

/** The answer of `work`; rejects with UnavailableError when it has not come within `limitMs`. */
export async function withinLimit<T>(work: Promise<T>, limitMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(new UnavailableError(`No answer from Redis within ${limitMs} ms`));
  const timer = setTimeout(late, limitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {});
  }
}

/** Throws RedisPolicyError unless Redis keeps what it is given; a server that hides its settings is believed. */
export async function assertNoEviction(redis: Redis, logger: Logger): Promise<void> {
  let policy: string | undefined;
  try {
    const answer = (await redis.config('GET', 'maxmemory-policy')) as string[];
    policy = answer[1];
  } catch (error) {
    logger.warn({ err: error }, 'Redis does not tell its maxmemory-policy; it must be noeviction');
    return;
  }
  if (policy !== undefined && policy !== 'noeviction') {
    throw new RedisPolicyError(
      `Redis has maxmemory-policy ${policy}: it would drop jobs when memory runs out. Set it to noeviction.`,
    );
  }
}

/** Runs a command; a fault of the connection becomes UnavailableError, which the CLI answers by repeating its call. */
export async function redisCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new UnavailableError('The queue is not available at the moment; please repeat the call', {
      cause: error,
      retryAfterSeconds: 1,
    });
  }
}
