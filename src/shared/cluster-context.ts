import { type AppContext, type ContextOverrides, createContext } from './context.ts';
import { type Config, ConfigError } from './platform/config/config.ts';
import { assertMigrated } from './platform/db/migrate.ts';
import type { Logger } from './platform/logger/logger.ts';
import type { JobDispatcher } from './platform/queue/dispatcher.ts';
import { QueueBoard } from './platform/queue/queue-board.ts';
import { registerLaneMetrics, registerRedisMetrics } from './platform/queue/queue-metrics.ts';
import { QueueMonitor } from './platform/queue/queue-monitor.ts';
import { Queues } from './platform/queue/queues.ts';
import { createReceiptRepository, type ReceiptRepository } from './platform/queue/receipt-repository.ts';
import {
  assertNoEviction,
  connectRedis,
  disconnectRedis,
  type RedisConnection,
  RedisUnreachableError,
  untilReady,
} from './platform/queue/redis.ts';
import { RedisDispatcher } from './platform/queue/redis-dispatcher.ts';
import { RedisHandoverStore } from './platform/queue/redis-handover-store.ts';

const redisStartLimitMs = 10_000;
const redisNoticeMs = 1_000;
const heldEveryMs = 5_000;

/** The context of a process that shares its work with others through Redis. */
export interface ClusterContext extends AppContext {
  /** Fails fast when Redis is away. */
  readonly producer: RedisConnection;
  readonly receipts: ReceiptRepository;
  readonly queues: Queues;
  readonly monitor: QueueMonitor;
  readonly board: QueueBoard;
  /** A new connection that waits for Redis to come back; closed with the context. */
  readonly connectWorker: () => RedisConnection;
}

/**
 * Opens database, blob store and Redis. Throws ConfigError naming the settings that a cluster needs and that are missing,
 * PendingMigrationsError, RedisPolicyError, and RedisUnreachableError when Redis does not answer for 10 s.
 */
export async function createClusterContext(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
): Promise<ClusterContext> {
  const { database, redisUrl, secrets } = config;
  const missing = [
    ...(database.url === null ? ['HOLDFAST_DATABASE_URL'] : []),
    ...(redisUrl === null ? ['HOLDFAST_REDIS_URL'] : []),
    ...(secrets.masterKeys === null ? ['HOLDFAST_MASTER_KEYS'] : []),
  ];
  if (database.url === null || redisUrl === null || secrets.masterKeys === null) {
    throw new ConfigError(
      `These settings are wrong:\n${missing.map((name) => `  ${name}: needed by this role`).join('\n')}`,
    );
  }
  await assertMigrated(database.url, logger);
  const producer = connectRedis(redisUrl, 'producer', logger);
  try {
    await untilStarted(producer, redisUrl, logger);
    await assertNoEviction(producer, logger);
    const handover = new RedisHandoverStore(producer, config.limits.redisInFlightBytes);
    const context = await createContext(
      config,
      { databaseUrl: database.url, masterKeys: secrets.masterKeys },
      { logger, handover, ...overrides },
    );
    context.lifecycle.onClose('stores', 'redis', async () => disconnectRedis(producer));
    const timer = setInterval(() => void handover.check(heldEveryMs).catch(() => {}), heldEveryMs);
    context.lifecycle.onClose('queues', 'hand-over figures', async () => clearInterval(timer));
    const queues = new Queues(producer, logger);
    context.lifecycle.onClose('queues', 'queues', () => queues.close());
    const monitor = new QueueMonitor(producer, queues, logger);
    context.lifecycle.onClose('queues', 'queue figures', () => monitor.close());
    registerLaneMetrics(context.metrics, () => monitor.lanes);
    registerRedisMetrics(context.metrics, () => monitor.redis);
    const connectWorker = (): RedisConnection => {
      const connection = connectRedis(redisUrl, 'worker', logger);
      context.lifecycle.onClose('stores', 'redis worker connection', async () => disconnectRedis(connection));
      return connection;
    };
    const receipts = createReceiptRepository(context.db);
    return { ...context, producer, connectWorker, receipts, queues, monitor, board: new QueueBoard(queues, monitor) };
  } catch (error) {
    disconnectRedis(producer);
    throw error;
  }
}

/** The way to the workers of the cluster. Closed with the context. */
export function createClusterDispatcher(context: ClusterContext): JobDispatcher {
  const { config, connectWorker, lifecycle, logger, monitor, producer, queues, receipts } = context;
  const dispatcher = new RedisDispatcher({
    producer,
    queues,
    lanes: () => monitor.lanes,
    subscriber: connectWorker(),
    receipts,
    logger,
    largeBytes: config.limits.largeBytes,
    waitMs: config.jobs.waitSeconds * 1000,
  });
  lifecycle.onClose('queues', 'dispatcher', () => dispatcher.close());
  return dispatcher;
}

/** Containers start in any order: Redis may come up a little later. */
async function untilStarted(redis: RedisConnection, url: string, logger: Logger): Promise<void> {
  const { host } = new URL(url);
  const notice = setTimeout(() => logger.warn({ redis: host }, 'waiting for Redis'), redisNoticeMs);
  try {
    await untilReady(redis, redisStartLimitMs);
  } catch (error) {
    throw new RedisUnreachableError(
      `Redis at ${host} (HOLDFAST_REDIS_URL) does not answer, or refuses this client; gave up after ${redisStartLimitMs / 1000} s.`,
      { cause: error },
    );
  } finally {
    clearTimeout(notice);
  }
}
