import { Redis, type RedisOptions } from 'ioredis';
import { OperatorError, UnavailableError } from '../errors/errors.ts';
import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import type { Logger } from '../logger/logger.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type TlsFiles, takeTlsFiles, tlsFaultOf } from '../tls/trust.ts';
import { QueueAwayError } from './queue-away.ts';

/** Redis would throw queued writes away when its memory is full. */
export class RedisPolicyError extends OperatorError {
  override readonly name = 'RedisPolicyError';
}

/** An open connection, for those outside this folder. */
export type RedisConnection = Redis;

/** How a connection is used: `producer` calls fail fast when Redis is away, `worker` calls wait for it to come back. */
export type RedisUse = 'producer' | 'worker';

const commandTimeoutMs = 5_000;
const longestRetryMs = 2_000;

/** What a connection has met since it was ready last. */
const lastErrors = new WeakMap<Redis, Error>();
/** Connections that must not be opened again. */
const parted = new WeakSet<Redis>();
/** BullMQ works on duplicates of the connection that it is given, and does not end them while Redis is away. */
const duplicates = new WeakMap<Redis, Redis[]>();

/**
 * Opens a connection that reconnects by itself until `disconnectRedis`, and so do its duplicates. The query of a `rediss:` URL may
 * have `sslrootcert`, `sslcert` and `sslkey`. Throws CertificateFileError.
 */
export function connectRedis(url: string, use: RedisUse, logger: Logger): Redis {
  const retryStrategy = (times: number): number | null =>
    parted.has(redis) ? null : Math.min(50 * 2 ** Math.min(times, 6), longestRetryMs);
  const options: RedisOptions = { lazyConnect: false, connectTimeout: commandTimeoutMs, retryStrategy };
  if (use === 'producer') {
    Object.assign(options, { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: commandTimeoutMs });
  } else {
    Object.assign(options, { maxRetriesPerRequest: null });
  }
  const { plainUrl, tls } = splitUrl(url);
  const redis = new Redis(plainUrl, { ...options, ...(tls ? { tls } : {}) });
  const made: Redis[] = [];
  duplicates.set(redis, made);
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => {
    const connection = duplicate(override);
    made.push(connection);
    return connection;
  };
  redis.on('error', (error: Error) => {
    // Repeated on every attempt to reconnect; one line per kind of trouble is enough.
    if (error.message !== lastErrors.get(redis)?.message) logger.warn({ err: error }, 'redis');
    // A refused handshake is followed by errors that say less.
    const known = lastErrors.get(redis);
    if (tlsFaultOf(known) === null || tlsFaultOf(error) !== null) lastErrors.set(redis, error);
  });
  redis.on('ready', () => lastErrors.delete(redis));
  return redis;
}

function splitUrl(url: string): { plainUrl: string; tls: TlsFiles | null } {
  if (!url.startsWith('rediss:')) return { plainUrl: url, tls: null };
  const parsed = new URL(url);
  const tls = takeTlsFiles(parsed.searchParams, 'HOLDFAST_REDIS_URL');
  return { plainUrl: parsed.href, tls };
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
  const { promise, resolve } = Promise.withResolvers<void>();
  redis.once('ready', resolve);
  try {
    await withTimeout(promise, limitMs, () => new UnavailableError(`Redis is not reachable within ${limitMs} ms`));
  } finally {
    redis.off('ready', resolve);
  }
}

const refusal = /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;
const lookMs = 500;

/** Waits for the first connection of a process. Throws PartUnavailableError, at once when Redis refuses the client. */
export async function untilStarted(redis: Redis, url: string, wait: StartWait): Promise<void> {
  const judge = (): Verdict => {
    const met = lastErrors.get(redis);
    const fault = tlsFaultOf(met);
    if (fault !== null) return { final: fault };
    const message = met?.message ?? 'no answer';
    return refusal.test(message) ? { final: message } : { passing: message };
  };
  const attempt = () => untilReady(redis, wait.waitMs > 0 ? lookMs : commandTimeoutMs);
  await untilAvailable({ name: `Redis at ${new URL(url).host} (HOLDFAST_REDIS_URL)`, attempt, judge }, wait);
}

/** Throws RedisPolicyError unless Redis keeps what it is given; a server that hides its settings is believed. */
export async function assertNoEviction(redis: Redis, logger: Logger): Promise<void> {
  let policy: string | undefined;
  try {
    // Unlike CONFIG, hosted servers and users of little right have INFO.
    policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1];
  } catch (error) {
    logger.warn({ err: error }, 'Redis does not report its maxmemory-policy; it must be noeviction');
    return;
  }
  if (policy !== undefined && policy !== 'noeviction') {
    throw new RedisPolicyError(
      `Redis has maxmemory-policy ${policy}: it would drop jobs when memory runs out. Set it to noeviction.`,
    );
  }
}

/** Runs a command; a fault of the connection becomes QueueAwayError, which the CLI answers by repeating its call. */
export async function redisCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new QueueAwayError(error);
  }
}
