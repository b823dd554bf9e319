import type { JobAdmissionRepository } from '../../src/shared/jobs/job-admission-repository.ts';
import type { Job } from '../../src/shared/jobs/job-list.ts';
import { QueueMonitor } from '../../src/shared/jobs/queue-monitor.ts';
import { Queues } from '../../src/shared/jobs/queues.ts';
import { RedisDispatcher } from '../../src/shared/jobs/redis-dispatcher.ts';
import { createLogger, type Logger } from '../../src/shared/platform/logger/logger.ts';
import type { OutcomeRepository } from '../../src/shared/platform/outcomes/outcome-repository.ts';
import {
  connectRedis,
  disconnectRedis,
  type RedisConnection,
  untilReady,
} from '../../src/shared/platform/redis/redis.ts';
import { createMetrics, type Metrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { type QueueWorkers, startQueueWorkers } from '../../src/workers/platform/queue-workers.ts';
import { handlersFor, largeBytes, longWaitMs } from './dispatcher-suite.ts';

/** Three attempts, so that a persistent fault ends within a second. */
const attempts = 3;

export interface ApiSide {
  readonly dispatcher: RedisDispatcher;
  readonly producer: RedisConnection;
  readonly subscriber: RedisConnection;
  readonly queues: Queues;
  readonly monitor: QueueMonitor;
  close(): Promise<void>;
}

/** An API process's side of the queue. */
export async function openApiSide(options: {
  readonly url: string;
  readonly admissions: JobAdmissionRepository;
  readonly jobResults: OutcomeRepository;
  readonly waitMs?: number;
  readonly jobLifeMs?: number;
  /** Opens at once, whether or not Redis is there. */
  readonly evenIfAway?: true;
  readonly logger?: Logger;
  readonly attempts?: number;
}): Promise<ApiSide> {
  const logger = options.logger ?? createLogger({ level: 'silent' });
  const producer = connectRedis(options.url, 'producer', logger);
  const subscriber = connectRedis(options.url, 'worker', logger);
  if (!options.evenIfAway) await untilReady(producer, longWaitMs);
  const queues = new Queues(producer, logger, { attempts: options.attempts ?? attempts });
  const monitor = new QueueMonitor(producer, queues, logger);
  const dispatcher = new RedisDispatcher({
    producer,
    subscriber,
    queues,
    admissions: options.admissions,
    jobResults: options.jobResults,
    logger,
    largeBytes,
    waitMs: options.waitMs ?? longWaitMs,
    jobLifeMs: options.jobLifeMs ?? 2 * longWaitMs,
    queueStates: () => monitor.queueStates,
  });
  const close = async (): Promise<void> => {
    await dispatcher.close();
    await monitor.close();
    await queues.close();
    disconnectRedis(producer);
    disconnectRedis(subscriber);
  };
  return { dispatcher, producer, subscriber, queues, monitor, close };
}

export interface WorkerSide {
  readonly workers: QueueWorkers;
  readonly publisher: RedisConnection;
  readonly metrics: Metrics;
  close(): Promise<void>;
}

/** A worker process that runs `work` for every job. */
export function openWorkerSide(options: {
  readonly url: string;
  readonly admissions: JobAdmissionRepository;
  readonly jobResults: OutcomeRepository;
  readonly work: (job: Job) => Promise<void>;
  readonly onEnded?: (job: Job) => Promise<void>;
  readonly concurrency?: number;
  readonly lockMs?: number;
  readonly logger?: Logger;
}): WorkerSide {
  const logger = options.logger ?? createLogger({ level: 'silent' });
  const metrics = createMetrics();
  const publisher = connectRedis(options.url, 'producer', logger);
  const concurrency = options.concurrency ?? 4;
  const workers = startQueueWorkers({
    connect: () => connectRedis(options.url, 'worker', logger),
    publisher,
    handlers: handlersFor(options.work),
    admissions: options.admissions,
    jobResults: options.jobResults,
    logger,
    metrics,
    concurrency: { small: concurrency, large: concurrency },
    onEnded: options.onEnded ?? (async () => {}),
    ...(options.lockMs === undefined ? {} : { lockMs: options.lockMs }),
  });
  const close = async (): Promise<void> => {
    await workers.close();
    disconnectRedis(publisher);
  };
  return { workers, publisher, metrics, close };
}
