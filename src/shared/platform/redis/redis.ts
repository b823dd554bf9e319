import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { OperatorError, UnavailableError } from '../errors/errors.ts';
import { type StartWait, untilAvailable, type Verdict } from '../lifecycle/start-wait.ts';
import type { Logger } from '../logger/logger.ts';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type TlsFiles, takeTlsFiles, tlsFaultOf } from '../tls/certificates.ts';
import { QueueUnavailableError } from './queue-unavailable.ts';
import { parseRedisUrl, type RedisTarget } from './redis-url.ts';

/** Redis would evict queued writes when its memory is full. */
export class RedisPolicyError extends OperatorError {
  override readonly name = 'RedisPolicyError';
}

/** A connection to a server, to a master named by Sentinel, or to a cluster. */
export type RedisConnection = Redis | Cluster;

/** `producer` calls fail fast when Redis is down, `worker` calls wait until it is back. */
export type RedisUse = 'producer' | 'worker';

const commandTimeoutMs = 5_000;
const longestRetryMs = 2_000;
const pingMs = 2_500;
/** After 15 s without an answer, a connection is replaced. BullMQ blocks a connection for up to 10 s. */
const maxUnanswered = 6;

/** The last error since the connection was ready. */
const lastErrors = new WeakMap<RedisConnection, Error>();
/** These connections must not reconnect. */
const ended = new WeakSet<RedisConnection>();

/** BullMQ duplicates the given connection, and does not end the duplicate while Redis is down. */
class TrackedRedis extends Redis {
  readonly duplicates: Redis[] = [];

  override duplicate(override?: Partial<RedisOptions>): Redis {
    const connection = super.duplicate(override);
    this.duplicates.push(connection);
    leaveIfSilent(connection);
    return connection;
  }
}

class TrackedCluster extends Cluster {
  readonly duplicates: Cluster[] = [];

  override duplicate(nodes?: ClusterNode[], override?: ClusterOptions): Cluster {
    const connection = super.duplicate(nodes, override);
    this.duplicates.push(connection);
    connection.on('+node', leaveIfSilent);
    return connection;
  }
}

/**
 * Like its duplicates, the connection reconnects until `disconnectRedis`. The query of a `rediss:` URL may contain `sslrootcert`, `sslcert`
 * and `sslkey`.
 */
export function connectRedis(url: string, use: RedisUse, logger: Logger): RedisConnection {
  const retryStrategy = (times: number): number | null =>
    ended.has(redis) ? null : Math.min(50 * 2 ** Math.min(times, 6), longestRetryMs);
  const options: RedisOptions = {
    lazyConnect: false,
    connectTimeout: commandTimeoutMs,
    retryStrategy,
    reconnectOnError: isDemoted,
  };
  if (use === 'producer') {
    Object.assign(options, { maxRetriesPerRequest: 1, enableOfflineQueue: false, commandTimeout: commandTimeoutMs });
  } else {
    Object.assign(options, { maxRetriesPerRequest: null });
  }
  const target = parseRedisUrl(url);
  const redis = target ? connectTo(target, use, options, retryStrategy) : connectToOne(url, options);
  redis.on('error', (thrown: Error & { lastNodeError?: Error }) => {
    // The error of a cluster says only that no server can be used.
    const error = thrown.lastNodeError ?? thrown;
    // Each reconnection attempt repeats the error, sometimes with the time until the next one. It is logged once.
    if (withoutTimes(error) !== withoutTimes(lastErrors.get(redis)))
      logger.warn({ err: error }, 'Redis connection failed; retrying');
    // A failed TLS handshake is followed by less specific errors.
    const known = lastErrors.get(redis);
    if (tlsFaultOf(known) === null || tlsFaultOf(error) !== null) lastErrors.set(redis, error);
  });
  redis.on('ready', () => lastErrors.delete(redis));
  if (isCluster(redis)) redis.on('+node', leaveIfSilent);
  else leaveIfSilent(redis);
  return redis;
}

function connectToOne(url: string, options: RedisOptions): Redis {
  const { plainUrl, tls } = splitUrl(url);
  return new TrackedRedis(plainUrl, { ...options, ...(tls ? { tls } : {}) });
}

function connectTo(
  { layout, hosts, username, password, database, tls, ...target }: RedisTarget,
  use: RedisUse,
  { lazyConnect: _, ...options }: RedisOptions,
  retryStrategy: (times: number) => number | null,
): RedisConnection {
  const login = { ...(username === null ? {} : { username }), ...(password === null ? {} : { password }) };
  if (layout === 'sentinel') {
    return new TrackedRedis({
      ...options,
      ...login,
      db: database,
      name: target.master,
      sentinels: [...hosts],
      sentinelRetryStrategy: retryStrategy,
      ...(target.sentinelUsername === null ? {} : { sentinelUsername: target.sentinelUsername }),
      ...(target.sentinelPassword === null ? {} : { sentinelPassword: target.sentinelPassword }),
      ...(tls ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
      sentinelCommandTimeout: commandTimeoutMs,
      // A hanging master does not close its connections when another one takes over.
      failoverDetector: true,
    });
  }
  return new TrackedCluster([...hosts], {
    redisOptions: { ...options, ...login, ...(tls ? { tls } : {}) },
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue: use === 'worker',
    slotsRefreshTimeout: commandTimeoutMs,
    // Certificates are issued for names.
    ...(tls ? { dnsLookup: (address, found) => found(null, address) } : {}),
  });
}

/** Whether the server was a master at connection time, and is a replica now. Redis 6 quotes the error of a command in a script. */
function isDemoted({ message }: Error): boolean {
  return /(?:^|-)READONLY /.test(message);
}

/**
 * Reconnects when the server stops responding. A host that vanishes closes no connection: the kernel would wait for a quarter of an hour,
 * or for hours if nothing is sent.
 */
function leaveIfSilent(redis: Redis): void {
  redis.on('connect', () => {
    let unanswered = 0;
    let isAsked = false;
    const ended = (): void => {
      isAsked = false;
    };
    const answered = (): void => {
      unanswered = 0;
      ended();
    };
    const timer = setInterval(() => {
      unanswered++;
      if (unanswered > maxUnanswered) redis.disconnect(true);
      else if (redis.status === 'ready' && !isAsked) {
        isAsked = true;
        redis.ping().then(answered, (error: Error) => (error.name === 'ReplyError' ? answered() : ended()));
      }
    }, pingMs).unref();
    redis.once('close', () => clearInterval(timer));
  });
}

/**
 * Reconnects when the connection that receives a cluster's messages stops responding. ioredis opens it besides those to the nodes, and
 * sends nothing else on it. Returns a function that ends the watch.
 */
export function watchSubscription(cluster: Cluster, channel: string): () => void {
  let unanswered = 0;
  const answered = (): void => {
    unanswered = 0;
  };
  const timer = setInterval(() => {
    if (cluster.status !== 'ready') return answered();
    if (++unanswered > maxUnanswered) {
      answered();
      return cluster.disconnect(true);
    }
    // The server also answers a repeated subscription.
    cluster.subscribe(channel).then(answered, (error: Error) => error.name === 'ReplyError' && answered());
  }, pingMs).unref();
  return () => clearInterval(timer);
}

function withoutTimes(error: Error | undefined): string | undefined {
  return error?.message.replace(/\d+ms/g, '');
}

/** In a cluster, all keys of one command must have the same hash tag. */
export function isCluster(redis: RedisConnection): redis is Cluster {
  return redis instanceof Cluster;
}

function splitUrl(url: string): { plainUrl: string; tls: TlsFiles | null } {
  if (!url.startsWith('rediss:')) return { plainUrl: url, tls: null };
  const parsed = new URL(url);
  const tls = takeTlsFiles(parsed.searchParams, 'HOLDFAST_REDIS_URL');
  return { plainUrl: parsed.href, tls };
}

/**
 * Also ends the duplicates. ioredis emits `end` and rejects pending commands only when a connection closes, so a connection that waits to
 * reconnect makes one more attempt.
 */
export function disconnectRedis(redis: RedisConnection): void {
  ended.add(redis);
  const isTracked = redis instanceof TrackedRedis || redis instanceof TrackedCluster;
  for (const connection of isTracked ? [redis, ...redis.duplicates] : [redis]) {
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

/** Rejects with UnavailableError after `limitMs`. */
export async function untilReady(redis: RedisConnection, limitMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  const { promise, resolve } = Promise.withResolvers<void>();
  redis.once('ready', resolve);
  try {
    await withTimeout(promise, limitMs, () => new UnavailableError(`Redis is not reachable within ${limitMs} ms`));
  } finally {
    redis.off('ready', resolve);
  }
}

const refusedPattern = /(?:^|Last error: )(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/;
const pollMs = 500;

/** Throws PartUnavailableError; at once if Redis refuses the client. */
export async function untilStarted(redis: RedisConnection, url: string, wait: StartWait): Promise<void> {
  const judge = (): Verdict => {
    const lastError = lastErrors.get(redis);
    const fault = tlsFaultOf(lastError);
    if (fault !== null) return { final: fault };
    const message = lastError?.message ?? 'no answer';
    return refusedPattern.test(message) ? { final: message } : { passing: message };
  };
  const attempt = () => untilReady(redis, wait.waitMs > 0 ? pollMs : commandTimeoutMs);
  const address = parseRedisUrl(url)?.address ?? new URL(url).host;
  await untilAvailable({ name: `Redis at ${address} (HOLDFAST_REDIS_URL)`, attempt, judge }, wait);
}

/** Redis must not evict keys, and must permit the INFO that BullMQ needs. Accepts a server that hides its settings. */
export async function assertNoEviction(redis: RedisConnection, logger: Logger): Promise<void> {
  let policy: string | undefined;
  try {
    // Unlike CONFIG, INFO is available on hosted servers and to users with few permissions.
    const policies = (await readMemory(redis)).map((memory) => /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]);
    policy = policies.find((each) => each !== 'noeviction') ?? policies[0];
  } catch (error) {
    if ((error as Error).message.startsWith('NOPERM'))
      throw new RedisPolicyError(
        'Redis refuses INFO, without which no job can be queued. Give the user in HOLDFAST_REDIS_URL the permissions in deploy/redis/start.sh.',
      );
    logger.warn({ err: error }, 'Redis does not report its maxmemory-policy; it must be noeviction');
    return;
  }
  if (policy !== undefined && policy !== 'noeviction') {
    throw new RedisPolicyError(
      `Redis has maxmemory-policy ${policy}: it would drop jobs when memory runs out. Set it to noeviction.`,
    );
  }
}

/** Returns the INFO of the server, or of each master of a cluster. */
export async function readMemory(redis: RedisConnection): Promise<string[]> {
  return Promise.all((isCluster(redis) ? redis.nodes('master') : [redis]).map((server) => server.info('memory')));
}

/** Throws if Redis accepts no writes. */
export async function checkWrites(redis: RedisConnection): Promise<void> {
  await redis.unlink('holdfast:none');
}

/** The CLI repeats its call after QueueUnavailableError. */
export async function redisCall<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new QueueUnavailableError(error);
  }
}
