import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job as QueuedJob, UnrecoverableError, Worker } from 'bullmq';
import { Value } from 'typebox/value';
import type { AdmissionRepository } from '../shared/jobs/admission-repository.ts';
import { Job, JobHead } from '../shared/jobs/definitions.ts';
import type { JobHandlers } from '../shared/jobs/handlers.ts';
import type { JobResultRepository } from '../shared/jobs/job-result-repository.ts';
import { lanes, type QueueName } from '../shared/jobs/queue-names.ts';
import { type JobData, keptFailures, queueName, queuePrefix } from '../shared/jobs/queues.ts';
import { AppError } from '../shared/platform/errors/errors.ts';
import { type Outcome, toRejection } from '../shared/platform/errors/outcome.ts';
import { LimitedWarning } from '../shared/platform/logger/limited-warning.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { type BodySeal, PayloadMissingError, PayloadTamperedError } from '../shared/platform/payloads/payload-store.ts';
import { disconnectRedis, type RedisConnection } from '../shared/platform/redis/redis.ts';
import type { Metrics } from '../shared/platform/telemetry/metrics.ts';
import { AdmittedJobs, NotAdmittedError, replyChannelOf, shown } from './admitted-jobs.ts';

/**
 * A worker that says nothing for this long has lost its jobs to the others, which look for such jobs after every half of it;
 * in ms. One and a half times this is how long a call waits whose worker was killed: less than an API takes to shut
 * down. A worker that was only slow does no harm: the fence refuses what comes late.
 */
const defaultLockMs = 15_000;
/** How often a job may take its worker down before it is given up. */
const maxStalls = 3;
/** Pause of a job that this release does not know, before it is offered again; in ms. */
const leftPauseMs = 250;
/** Pause after Redis went away; BullMQ's own would keep a worker idle for 15 s after Redis is back. */
const redisRetryMs = 1_000;
/** How long an idle worker may take to part from Redis. */
const closeGraceMs = 2_000;
const closePollMs = 10;

export interface QueueWorkersOptions {
  /** A connection for BullMQ to duplicate; ended by `close`. */
  readonly connect: () => RedisConnection;
  readonly publisher: RedisConnection;
  readonly handlers: JobHandlers;
  readonly admissions: AdmissionRepository;
  readonly jobResults: JobResultRepository;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly concurrency: Readonly<Record<QueueName, number>>;
  /** Told of a job that has ended: committed, refused or given up. */
  readonly onEnded: (job: Job) => Promise<void>;
  readonly lockMs?: number;
}

export interface QueueWorkers {
  /** Takes no more jobs and waits for those in hand. */
  close(): Promise<void>;
}

/** Takes jobs from both lanes. A job's end is written down in Postgres first and told afterwards. */
export function startQueueWorkers(options: QueueWorkersOptions): QueueWorkers {
  const connection = options.connect();
  const workers = lanes.map((lane) => new QueueWorker(lane, connection, options));
  return {
    close: async () => {
      // What BullMQ still had to say to Redis may be refused as the connection ends: there is nothing left to do about it.
      const noteFault = (error: unknown): void =>
        options.logger.debug({ err: error }, 'worker did not disconnect from Redis cleanly');
      const closing = Promise.all(workers.map((worker) => worker.close().catch(noteFault)));
      let closed = false;
      void closing.finally(() => {
        closed = true;
      });
      // BullMQ waits for Redis to come back, however long; what was to be done is done without it.
      let idleSince = performance.now();
      while (!closed && performance.now() - idleSince < closeGraceMs) {
        if (workers.some((worker) => worker.inHand > 0)) idleSince = performance.now();
        await sleep(closePollMs);
      }
      disconnectRedis(connection);
      await closing;
    },
  };
}

/** A job that nothing is done for, now or later; BullMQ keeps the message in Redis. */
class RefusedError extends UnrecoverableError {
  constructor(message: string) {
    super(message);
    this.stack = message;
  }
}

class QueueWorker {
  readonly #options: QueueWorkersOptions;
  readonly #logger: Logger;
  readonly #warning: LimitedWarning;
  readonly #admitted: AdmittedJobs;
  readonly #worker: Worker<JobData>;
  readonly #givingUp = new Set<Promise<void>>();
  #inHand = 0;
  #lastTrouble = '';

  constructor(lane: QueueName, connection: RedisConnection, options: QueueWorkersOptions) {
    const { concurrency, logger, lockMs = defaultLockMs } = options;
    this.#options = options;
    this.#logger = logger.child({ lane });
    this.#warning = new LimitedWarning(this.#logger);
    this.#admitted = new AdmittedJobs({ ...options, logger: this.#logger });
    this.#worker = new Worker<JobData>(queueName(lane), (queued, token) => this.#take(queued, token), {
      connection,
      prefix: queuePrefix,
      concurrency: concurrency[lane],
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      maxStalledCount: maxStalls,
      runRetryDelay: redisRetryMs,
      // Also of jobs that come without a word of this.
      removeOnFail: keptFailures,
    });
    this.#worker.on('error', (error) => this.#noteTrouble(error));
    this.#worker.on('active', () => {
      this.#lastTrouble = '';
    });
    this.#worker.on('stalled', (jobId) =>
      this.#warning.warn('stalled', { jobId: shown(jobId) }, 'job stalled: another worker takes it over'),
    );
    this.#worker.on('failed', (queued, error) => {
      if (queued?.finishedOn === undefined) return;
      const ending = this.#giveUp(queued, error).finally(() => this.#givingUp.delete(ending));
      this.#givingUp.add(ending);
    });
  }

  /** Jobs that are being done. */
  get inHand(): number {
    return this.#inHand;
  }

  async close(): Promise<void> {
    await this.#worker.close();
    await Promise.all(this.#givingUp);
  }

  async #take(queued: QueuedJob<JobData>, token: string | undefined): Promise<Outcome['result']> {
    this.#inHand++;
    try {
      return await this.#process(queued, token);
    } finally {
      this.#inHand--;
    }
  }

  /** Puts a job of another release back, without counting an attempt: a worker of that release may be idle. Always throws. */
  async #leave(queued: QueuedJob<JobData>, job: unknown, token: string | undefined): Promise<never> {
    const { id: jobId, attemptsStarted } = queued;
    if (!Value.Check(JobHead, job)) throw new Error('This release does not know the payload');
    const { name, schema } = job;
    if (attemptsStarted <= 1)
      this.#logger.info({ jobId, job: name, schema }, 'job left to a worker of another release');
    await queued.moveToDelayed(Date.now() + leftPauseMs, token);
    throw new DelayedError();
  }

  async #process(queued: QueuedJob<JobData>, token: string | undefined): Promise<Outcome['result']> {
    const { metrics, jobResults } = this.#options;
    const jobId = queued.id as string;
    let name = 'unknown';
    try {
      const { job, seal, outcome: earlier } = await this.#admitted.find(queued);
      if (!Value.Check(Job, job)) return await this.#leave(queued, job, token);
      name = job.name;
      // A run before this one may have come to its end, and lost its worker before BullMQ knew.
      let outcome = earlier;
      if (!outcome) {
        outcome = await this.#run(job, seal);
        await jobResults.insert(jobId, outcome);
        metrics.jobsEnded.labels(name, outcome.result).inc();
      }
      this.#tell(queued, 'settled');
      await this.#end(job);
      return outcome.result;
    } catch (error) {
      if (error instanceof DelayedError) throw error;
      if (error instanceof NotAdmittedError) throw new RefusedError(error.message);
      if (error instanceof PayloadTamperedError) this.#admitted.distrust('body', jobId);
      metrics.jobFaults.labels(name).inc();
      this.#logger.warn({ jobId, job: name, attempt: queued.attemptsMade + 1, err: error }, 'job failed');
      throw keepable(error);
    }
  }

  async #run(job: Job, seal: BodySeal | null): Promise<Outcome> {
    const { handlers, metrics } = this.#options;
    const process = handlers[job.name] as (job: Job, seal: BodySeal | null) => Promise<void>;
    const timer = metrics.jobSeconds.labels(job.name).startTimer();
    try {
      await process(job, seal);
      return { result: 'committed' };
    } catch (error) {
      const rejection = toRejection(error);
      if (!rejection) throw error;
      return { result: 'rejected', rejection };
    } finally {
      timer();
    }
  }

  /** Tells of a job that no attempt could bring to an end. What Redis alone knows of is not worth a word. */
  async #giveUp(queued: QueuedJob<JobData>, error: Error): Promise<void> {
    if (error instanceof RefusedError) return;
    let job: unknown;
    try {
      // First, so that nobody can have it run again once its caller was told.
      job = await this.#admitted.revoke(queued);
      if (job === null) return this.#admitted.distrust('unknown', queued.id);
    } catch (fault) {
      this.#logger.debug({ jobId: queued.id, err: fault }, 'job admission could not be deleted; it will expire');
    }
    const known = Value.Check(Job, job) ? job : null;
    const name = known?.name ?? 'unknown';
    this.#options.metrics.jobsEnded.labels(name, 'failed').inc();
    this.#logger.error(
      { jobId: queued.id, job: name, attempt: queued.attemptsMade, err: error },
      'job failed permanently',
    );
    if (known) await this.#end(known);
    this.#tell(queued, 'failed');
  }

  async #end(job: Job): Promise<void> {
    try {
      await this.#options.onEnded(job);
    } catch (error) {
      this.#logger.debug({ job: job.name, err: error }, 'job could not be cleaned up');
    }
  }

  #tell(queued: QueuedJob<JobData>, result: 'settled' | 'failed'): void {
    const channel = replyChannelOf(queued);
    if (channel === null) return;
    this.#options.publisher
      .publish(channel, JSON.stringify({ jobId: queued.id, result }))
      .catch((error: unknown) =>
        this.#logger.debug({ jobId: queued.id, err: error }, 'completion message could not be sent'),
      );
  }

  /** One line per kind of trouble: while Redis is away it comes again with every attempt to reach it. */
  #noteTrouble(error: Error): void {
    if (error.message === this.#lastTrouble) return;
    this.#lastTrouble = error.message;
    this.#warning.warn('worker', { err: error }, 'worker');
  }
}

/**
 * The fault as BullMQ may keep it in Redis: its kind alone, since a sentence may quote a body. The log has the rest. Nobody but
 * the client has a body that is missing or was changed: no attempt of ours can help.
 */
function keepable(error: unknown): Error {
  const code = error instanceof AppError ? error.code : (error as { code?: unknown } | null)?.code;
  const name = error instanceof Error ? error.name : 'unknown error';
  const text = `${name}${code === undefined ? '' : ` (${String(code)})`}; see the worker's log`;
  const isLost = error instanceof PayloadMissingError || error instanceof PayloadTamperedError;
  const kept = isLost ? new UnrecoverableError(text) : new Error(text);
  kept.stack = text;
  return kept;
}
