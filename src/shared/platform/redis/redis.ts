import { Redis, type RedisOptions } from 'ioredis';
import { OperatorError, UnavailableError } from '../errors/errors.ts';
import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import type { Logger } from '../logger/logger.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type TlsFiles, takeTlsFiles, tlsFaultOf } from '../tls/trust.ts';
import { QueueAwayError } from './queue-away.ts';

/** Redis would evict queued writes when its memory is full. */
export class RedisPolicyError extends OperatorError {
  override readonly name = 'RedisPolicyError';
}

/** An open connection, as other modules see it. */
export type RedisConnection = Redis;

/** How a connection is used: `producer` calls fail fast when Redis is away, `worker` calls wait for it to come back. */
export type RedisUse = 'producer' | 'worker';

const commandTimeoutMs = 5_000;
const longestRetryMs = 2_000;

/** Last error of each connection since it was ready. */
const lastErrors = new WeakMap<Redis, Error>();
/** Connections that must not reconnect. */
const ended = new WeakSet<Redis>();

/** Knows its duplicates: BullMQ makes one of the connection that it is given, and does not end it while Redis is away. */
class TrackedRedis extends Redis {
  readonly duplicates: Redis[] = [];

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const connection = super.duplicate(override);
    this.duplicates.push(connection);
    return connection;
  }
}

/**
 * Opens a connection that, like its duplicates, reconnects until `disconnectRedis`. The query of a `rediss:` URL may have
 * `sslrootcert`, `sslcert` and `sslkey`. Throws CertificateFileError.
 */
export function connectRedis(url: string, use: RedisUse, logger: Logger): Redis {
  const retryStrategy = (times: number): number | null =>
    ended.has(redis) ? null : Math.min(50 * 2 ** Math.min(times, 6), longestRetryMs);
  const options: RedisOptions = { lazyConnect: false, connectTimeout: commandTimeoutMs, retryStrategy };
  if (use === 'producer') {
    Object.assign(options, { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: commandTimeoutMs });
  } else {
    Object.assign(options, { maxRetriesPerRequest: null });
  }
  const { plainUrl, tls } = splitUrl(url);
  const redis = new TrackedRedis(plainUrl, { ...options, ...(tls ? { tls } : {}) });
  redis.on('error', (error: Error) => {
    // Errors repeat on every attempt to reconnect; log each one once.
    if (error.message !== lastErrors.get(redis)?.message) logger.warn({ err: error }, 'redis');
    // A failed TLS handshake is followed by less specific errors.
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
 * Ends a connection and its duplicates. ioredis emits `end` and rejects pending commands only when a connection closes, so a
 * connection that waits to reconnect makes one more attempt.
 */
export function disconnectRedis(redis: Redis): void {
  ended.add(redis);
  for (const connection of redis instanceof TrackedRedis ? [redis, ...redis.duplicates] : [redis]) {
    if (connection.status === 'end') continue;
    const isReconnecting = connection.status === 'reconnecting';
    connection.disconnect();
    if (!isReconnecting) continue;
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

const refusedPattern = /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;
const pollMs = 500;

/** Waits for the first connection of a process. Throws PartUnavailableError; immediately if Redis refuses the client. */
export async function untilStarted(redis: Redis, url: string, wait: StartWait): Promise<void> {
  const judge = (): Verdict => {
    const lastError = lastErrors.get(redis);
    const fault = tlsFaultOf(lastError);
    if (fault !== null) return { final: fault };
    const message = lastError?.message ?? 'no answer';
    return refusedPattern.test(message) ? { final: message } : { passing: message };
  };
  const attempt = () => untilReady(redis, wait.waitMs > 0 ? pollMs : commandTimeoutMs);
  await untilAvailable({ name: `Redis at ${new URL(url).host} (HOLDFAST_REDIS_URL)`, attempt, judge }, wait);
}

/** Throws RedisPolicyError if Redis may evict keys. Accepts a server that hides its settings. */
export async function assertNoEviction(redis: Redis, logger: Logger): Promise<void> {
  let policy: string | undefined;
  try {
    // Unlike CONFIG, INFO is available on hosted servers and to users with few permissions.
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

/** Runs a command. Turns any error into QueueAwayError, after which the CLI repeats its call. */
export async function redisCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new QueueAwayError(error);
  }
}
