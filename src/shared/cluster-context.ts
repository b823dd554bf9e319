import { type AppContext, type ContextOverrides, createContext } from './context.ts';
import type { JobDispatcher } from './jobs/dispatcher.ts';
import { createJobAdmissionRepository, type JobAdmissionRepository } from './jobs/job-admission-repository.ts';
import { JobQueueView } from './jobs/job-queue-view.ts';
import { registerQueueGauges, registerRedisMetrics } from './jobs/queue-metrics.ts';
import { QueueMonitor } from './jobs/queue-monitor.ts';
import { Queues } from './jobs/queues.ts';
import { RedisDispatcher } from './jobs/redis-dispatcher.ts';
import { RedisJobQueue } from './jobs/redis-job-queue.ts';
import { type Config, ConfigError } from './platform/config/config.ts';
import { assertMigrated } from './platform/db/migrate.ts';
import type { Logger } from './platform/logger/logger.ts';
import { createOutcomeRepository, type OutcomeRepository } from './platform/outcomes/outcome-repository.ts';
import { RedisPayloadStore } from './platform/payloads/redis-payload-store.ts';
import {
  assertNoEviction,
  connectRedis,
  disconnectRedis,
  type RedisConnection,
  untilStarted,
} from './platform/redis/redis.ts';

const checkIntervalMs = 5_000;
/** A job may still run and find its body for this long after its caller stopped waiting. */
const jobLifeBeyondWaitMs = 600_000;

/** The context of a process that works with others through Redis. */
export interface ClusterContext extends AppContext {
  /** Fails fast while Redis is down. */
  readonly producer: RedisConnection;
  readonly admissions: JobAdmissionRepository;
  readonly jobResults: OutcomeRepository;
  readonly queues: Queues;
  readonly monitor: QueueMonitor;
  readonly jobQueueView: JobQueueView;
  /** The connection waits until Redis is back. It is closed with the context. */
  readonly connectWorker: () => RedisConnection;
}

/** Parts that tests replace. */
export interface ClusterOverrides extends ContextOverrides {
  /** Attempts before a job fails permanently. */
  readonly jobAttempts?: number;
}

/**
 * A process that does not open secrets needs no master keys, unless documents are encrypted. Throws ConfigError with the names of missing
 * settings, PendingMigrationsError, RedisPolicyError, and PartUnavailableError if a service refuses this process or stays unreachable.
 */
export async function createClusterContext(
  config: Config,
  logger: Logger,
  { jobAttempts, ...overrides }: ClusterOverrides = {},
  { opensSecrets = true }: { readonly opensSecrets?: boolean } = {},
): Promise<ClusterContext> {
  const { database, redisUrl, secrets } = config;
  const missing = [
    ...(database.url === null ? ['HOLDFAST_DATABASE_URL'] : []),
    ...(redisUrl === null ? ['HOLDFAST_REDIS_URL'] : []),
    ...(secrets.masterKeys === null && opensSecrets ? ['HOLDFAST_MASTER_KEYS'] : []),
  ];
  if (database.url === null || redisUrl === null || missing.length > 0) {
    throw new ConfigError(`Invalid settings:\n${missing.map((name) => `  ${name}: needed by this role`).join('\n')}`);
  }
  const wait = { waitMs: config.startWaitMs, logger };
  await assertMigrated({ ...wait, url: database.url, connectMs: database.connectTimeoutMs });
  const producer = connectRedis(redisUrl, 'producer', logger);
  try {
    await untilStarted(producer, redisUrl, wait);
    await assertNoEviction(producer, logger);
    const payloads = new RedisPayloadStore(producer, config.limits.redisInFlight, { jobLifeMs: jobLifeMs(config) });
    const context = await createContext(
      config,
      { databaseUrl: database.url, masterKeys: secrets.masterKeys },
      { logger, payloads, ...overrides },
    );
    context.lifecycle.onClose('stores', 'redis', async () => disconnectRedis(producer));
    const timer = setInterval(() => void payloads.check(checkIntervalMs).catch(() => {}), checkIntervalMs);
    context.lifecycle.onClose('queues', 'payload store metrics', async () => clearInterval(timer));
    const queues = new Queues(producer, logger, jobAttempts === undefined ? {} : { attempts: jobAttempts });
    context.lifecycle.onClose('queues', 'queues', () => queues.close());
    const monitor = new QueueMonitor(producer, queues, logger);
    context.lifecycle.onClose('queues', 'queue metrics', () => monitor.close());
    registerQueueGauges(context.metrics, () => monitor.queueStates);
    registerRedisMetrics(context.metrics, () => monitor.redis);
    const connectWorker = (): RedisConnection => {
      const connection = connectRedis(redisUrl, 'worker', logger);
      context.lifecycle.onClose('stores', 'redis worker connection', async () => disconnectRedis(connection));
      return connection;
    };
    const admissions = createJobAdmissionRepository(context.db);
    const jobResults = createOutcomeRepository(context.db);
    const jobQueueView = new JobQueueView(queues, monitor, admissions);
    return { ...context, producer, connectWorker, admissions, jobResults, queues, monitor, jobQueueView };
  } catch (error) {
    disconnectRedis(producer);
    throw error;
  }
}

/** The dispatcher is closed with the context. */
export function createClusterDispatcher(context: ClusterContext): JobDispatcher {
  const { admissions, config, connectWorker, lifecycle, logger, monitor, producer, queues, jobResults } = context;
  const dispatcher = new RedisDispatcher({
    producer,
    queues,
    queueStates: () => monitor.queueStates,
    subscriber: connectWorker(),
    admissions,
    jobResults,
    logger,
    largeBytes: config.limits.largeBytes,
    waitMs: config.jobs.waitSeconds * 1000,
    jobLifeMs: jobLifeMs(config),
  });
  lifecycle.onClose('queues', 'dispatcher', () => dispatcher.close());
  return dispatcher;
}

/** For workers whose jobs enqueue others without waiting for them. */
export function createClusterQueue({ admissions, config, producer, queues }: ClusterContext): RedisJobQueue {
  return new RedisJobQueue({
    producer,
    queues,
    admissions,
    largeBytes: config.limits.largeBytes,
    jobLifeMs: jobLifeMs(config),
  });
}

function jobLifeMs({ jobs }: Config): number {
  return jobs.waitSeconds * 1000 + jobLifeBeyondWaitMs;
}
