import { type Job as QueuedJob, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { Value } from 'typebox/value';
import { toRejection } from '../shared/platform/errors/outcome.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { HandoverMissingError } from '../shared/platform/queue/handover-store.ts';
import type { Job, JobOutcome, JobProcessors } from '../shared/platform/queue/jobs.ts';
import { JobData, type Lane, queueName, queuePrefix } from '../shared/platform/queue/queues.ts';
import type { ReceiptRepository } from '../shared/platform/queue/receipt-repository.ts';
import type { Metrics } from '../shared/platform/telemetry/metrics.ts';

/** A worker that says nothing for this long has lost its jobs to the others; in ms. */
const lockMs = 30_000;
const stalledCheckMs = 15_000;
/** How often a job may take its worker down before it is given up. */
const maxStalls = 3;

export interface QueueWorkersOptions {
  readonly connect: () => Redis;
  readonly publisher: Redis;
  readonly processors: JobProcessors;
  readonly receipts: ReceiptRepository;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly concurrency: Readonly<Record<Lane, number>>;
}

export interface QueueWorkers {
  /** Takes no more jobs and waits for those in hand. */
  close(): Promise<void>;
}

/** Takes jobs from both lanes. A job's end is written down in Postgres first and told afterwards. */
export function startQueueWorkers(options: QueueWorkersOptions): QueueWorkers {
  const workers = (['small', 'large'] as const).map((lane) => startLane(lane, options));
  return {
    close: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
}

function startLane(lane: Lane, options: QueueWorkersOptions): Worker<JobData> {
  const { concurrency, logger, publisher } = options;
  const worker = new Worker<JobData>(queueName(lane), (job) => processJob(job, options), {
    connection: options.connect(),
    prefix: queuePrefix,
    concurrency: concurrency[lane],
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: maxStalls,
  });
  worker.on('error', (error) => logger.warn({ lane, err: error }, 'worker'));
  worker.on('stalled', (jobId) => logger.warn({ lane, jobId }, 'job stalled: another worker takes it over'));
  worker.on('failed', (job, error) => {
    if (!job) return;
    const final = job.finishedOn !== undefined;
    logger[final ? 'error' : 'warn'](
      { lane, jobId: job.id, job: job.name, attempt: job.attemptsMade, err: error },
      final ? 'job given up' : 'job failed; trying again',
    );
    if (final) tell(publisher, job, 'failed', logger);
  });
  return worker;
}

async function processJob(queued: QueuedJob<JobData>, options: QueueWorkersOptions): Promise<JobOutcome> {
  const { logger, metrics, processors, publisher, receipts } = options;
  // A payload that this release does not know is left to one that does, for as many attempts as there are.
  if (!Value.Check(JobData, queued.data))
    throw new Error(`Job ${queued.name} has a payload that this release does not know`);
  const { job } = queued.data;
  const timer = metrics.jobSeconds.labels(job.name).startTimer();
  const outcome = await outcomeOf(processors, job);
  timer();
  await receipts.insert(queued.id as string, outcome);
  tell(publisher, queued, 'settled', logger);
  return outcome;
}

async function outcomeOf(processors: JobProcessors, job: Job): Promise<JobOutcome> {
  const process = processors[job.name] as (job: Job) => Promise<void>;
  try {
    await process(job);
    return { result: 'committed' };
  } catch (error) {
    const rejection = toRejection(error);
    if (rejection) return { result: 'rejected', rejection };
    // Nobody but the client has the body any more: no attempt of ours can help.
    if (error instanceof HandoverMissingError) throw new UnrecoverableError(error.message);
    throw error;
  }
}

function tell(publisher: Redis, job: QueuedJob<JobData>, result: 'settled' | 'failed', logger: Logger): void {
  publisher
    .publish(job.data.replyTo, JSON.stringify({ jobId: job.id, result }))
    .catch((error: unknown) => logger.debug({ err: error }, 'completion not told'));
}
