import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job as QueuedJob, WaitingError, Worker } from 'bullmq';
import { Value } from 'typebox/value';
import type { JobAdmission, JobAdmissionRepository } from '../../shared/jobs/job-admission-repository.ts';
import { Job, JobHead, jobNames } from '../../shared/jobs/job-list.ts';
import { type QueueName, queueNames } from '../../shared/jobs/queue-names.ts';
import { type JobData, keptFailures, queuePrefix, redisQueueName } from '../../shared/jobs/queues.ts';
import { type Outcome, toRejection } from '../../shared/platform/errors/outcome.ts';
import { LimitedWarning } from '../../shared/platform/logger/limited-warning.ts';
import { childOfProcess, type Logger } from '../../shared/platform/logger/logger.ts';
import { forRequest } from '../../shared/platform/logger/request-lines.ts';
import type { OutcomeRepository } from '../../shared/platform/outcomes/outcome-repository.ts';
import { type BodyEncryption, PayloadTamperedError } from '../../shared/platform/payloads/payload-store.ts';
import { disconnectRedis, type RedisConnection } from '../../shared/platform/redis/redis.ts';
import { type Metrics, observeTraced } from '../../shared/platform/telemetry/metrics.ts';
import { currentSpan, inJobSpan } from '../../shared/platform/tracing/tracing.ts';
import { JournalClaimedError } from '../../shared/state/journal/journal-compactor.ts';
import type { JobHandlers } from './job-handlers.ts';
import { JobVerifier, NotAdmittedError, replyChannelOf, shown } from './job-verifier.ts';
import { RefusedError, redacted } from './stored-errors.ts';

/**
 * A worker that does not renew its locks for this long loses its jobs to other workers, which check at half this interval. A call whose
 * worker was killed waits up to 1.5 times as long, which is less than an API takes to shut down. A worker that was only slow does no harm:
 * the fence rejects its late writes.
 */
const defaultLockMs = 15_000;
/** A job that crashes its worker more often fails permanently. */
const maxStalls = 3;
/** The delay before a job unknown to this release is offered again. */
const unknownJobDelayMs = 250;
/** The maximum mean delay of a job whose journal another process compacts. */
const maxClaimedDelayMs = 1_000;
/** With BullMQ's default, a worker would stay idle for 15 s after Redis is back. */
const redisRetryMs = 1_000;
/** For an idle worker to disconnect from Redis. */
const closeGraceMs = 2_000;
const closePollMs = 10;

export interface QueueWorkersOptions {
  /** BullMQ duplicates the connection. `close` ends it. */
  readonly connect: () => RedisConnection;
  readonly publisher: RedisConnection;
  readonly handlers: JobHandlers;
  readonly admissions: JobAdmissionRepository;
  readonly jobResults: OutcomeRepository;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly concurrency: Readonly<Record<QueueName, number>>;
  /** The job was committed, rejected or failed permanently. */
  readonly onEnded: (job: Job) => Promise<void>;
  readonly lockMs?: number;
}

export interface QueueWorkers {
  /** Accepts no more jobs. */
  pause(): void;
  /** Also waits for the running jobs. */
  close(): Promise<void>;
}

/** Stores each result in Postgres before it sends the completion message. */
export function startQueueWorkers(options: QueueWorkersOptions): QueueWorkers {
  const connection = options.connect();
  // Otherwise, the first failure would begin a series at 1, which is no increase.
  for (const name of [...jobNames, 'unknown']) options.metrics.jobsEnded.labels(name, 'failed').inc(0);
  const workers = queueNames.map((name) => new QueueWorker(name, connection, options));
  return {
    pause: () => {
      for (const worker of workers) worker.pause();
    },
    close: async () => {
      // BullMQ's last commands may fail while the connection closes. Nothing depends on them.
      const logFault = (error: unknown): void =>
        options.logger.debug({ err: error }, 'worker did not disconnect from Redis cleanly');
      const closing = Promise.all(workers.map((worker) => worker.close().catch(logFault)));
      let closed = false;
      void closing.finally(() => {
        closed = true;
      });
      // BullMQ would wait for Redis without a limit, even after all jobs have ended.
      let idleSince = performance.now();
      while (!closed && performance.now() - idleSince < closeGraceMs) {
        if (workers.some((worker) => worker.runningJobs > 0)) idleSince = performance.now();
        await sleep(closePollMs);
      }
      disconnectRedis(connection);
      // BullMQ does not always notice that a connection on its way to a new master has ended.
      await Promise.race([closing, sleep(closeGraceMs, undefined, { ref: false })]);
    },
  };
}

class QueueWorker {
  readonly #options: QueueWorkersOptions;
  readonly #logger: Logger;
  readonly #warning: LimitedWarning;
  readonly #admitted: JobVerifier;
  readonly #worker: Worker<JobData>;
  readonly #reporting = new Set<Promise<void>>();
  #runningJobs = 0;
  #isPaused = false;
  #lastError = '';

  constructor(name: QueueName, connection: RedisConnection, options: QueueWorkersOptions) {
    const { concurrency, logger, lockMs = defaultLockMs } = options;
    this.#options = options;
    this.#logger = childOfProcess(logger, { queue: name });
    this.#warning = new LimitedWarning(this.#logger);
    this.#admitted = new JobVerifier({ ...options, logger: this.#logger });
    this.#worker = new Worker<JobData>(
      redisQueueName(name, connection),
      (queued, token) => this.#runQueued(queued, token),
      {
        connection,
        prefix: queuePrefix,
        concurrency: concurrency[name],
        lockDuration: lockMs,
        stalledInterval: lockMs / 2,
        maxStalledCount: maxStalls,
        runRetryDelay: redisRetryMs,
        // Also applies to jobs whose record lacks this option.
        removeOnFail: keptFailures,
      },
    );
    this.#worker.on('error', (error) => this.#logError(error));
    this.#worker.on('active', () => {
      this.#lastError = '';
    });
    this.#worker.on('stalled', (jobId) =>
      this.#warning.warn('stalled', { jobId: shown(jobId) }, 'job stalled: another worker takes it over'),
    );
    this.#worker.on('failed', (queued, error) => {
      if (queued?.finishedOn === undefined) return;
      const report = this.#reportFailure(queued, error).finally(() => this.#reporting.delete(report));
      this.#reporting.add(report);
    });
  }

  get runningJobs(): number {
    return this.#runningJobs;
  }

  pause(): void {
    this.#isPaused = true;
    void this.#worker.pause(true);
  }

  async close(): Promise<void> {
    await this.#worker.close();
    await Promise.all(this.#reporting);
  }

  async #runQueued(queued: QueuedJob<JobData>, token: string | undefined): Promise<Outcome['result']> {
    // A worker that waits for a job takes one more. BullMQ does not notify other workers when a job with a priority is put back.
    if (this.#isPaused && queued.priority === 0) {
      await queued.moveToWait(token);
      throw new WaitingError();
    }
    this.#runningJobs++;
    try {
      return await this.#process(queued, token);
    } finally {
      this.#runningJobs--;
    }
  }

  /** Gives back a job of another release, without counting an attempt. Always throws. */
  async #requeue(queued: QueuedJob<JobData>, job: unknown, token: string | undefined): Promise<never> {
    const { id: jobId, attemptsStarted } = queued;
    if (!Value.Check(JobHead, job)) throw new Error('This release does not know this job');
    const { name, schema } = job;
    if (attemptsStarted <= 1)
      this.#logger.info({ jobId, job: name, schema }, 'job left to a worker of another release');
    return giveBack(queued, token, unknownJobDelayMs);
  }

  async #process(queued: QueuedJob<JobData>, token: string | undefined): Promise<Outcome['result']> {
    let known: Job | null = null;
    try {
      const admission = await this.#admitted.find(queued);
      const { job } = admission;
      if (!Value.Check(Job, job)) return await this.#requeue(queued, job, token);
      known = job;
      const result = await forRequest(job.requestId, () =>
        inJobSpan(`job ${job.name}`, job.traceparent, () => this.#settle(queued, job, admission)),
      );
      const delayMs = Math.min(100 * 1.5 ** queued.attemptsStarted, maxClaimedDelayMs);
      return result ?? (await giveBack(queued, token, delayMs * (0.5 + Math.random())));
    } catch (error) {
      if (error instanceof DelayedError) throw error;
      if (error instanceof NotAdmittedError) throw new RefusedError(error.message);
      const jobId = queued.id as string;
      const name = known?.name ?? 'unknown';
      if (error instanceof PayloadTamperedError) this.#admitted.distrust('body', jobId);
      this.#options.metrics.jobErrors.labels(name).inc();
      forRequest(known?.requestId, () =>
        this.#logger.warn({ jobId, job: name, attempt: queued.attemptsMade + 1, err: error }, 'job failed'),
      );
      throw redacted(error);
    }
  }

  /** Does not run the job again if an earlier run lost its worker before notifying BullMQ. Null if another process compacts the journal. */
  async #settle(
    queued: QueuedJob<JobData>,
    job: Job,
    { encryption, outcome: earlier }: JobAdmission,
  ): Promise<Outcome['result'] | null> {
    const { metrics, jobResults } = this.#options;
    const jobId = queued.id as string;
    const start = performance.now();
    let outcome = earlier;
    if (!outcome) {
      outcome = await this.#run(job, encryption);
      if (!outcome) return null;
      await jobResults.insert(jobId, outcome);
      metrics.jobsEnded.labels(job.name, outcome.result).inc();
    }
    this.#notify(queued, 'settled');
    const ms = Math.round(performance.now() - start);
    this.#logger.info({ jobId, job: job.name, result: outcome.result, ms }, 'job');
    await this.#end(job);
    return outcome.result;
  }

  async #run(job: Job, encryption: BodyEncryption | null): Promise<Outcome | null> {
    const { handlers, metrics } = this.#options;
    const process = handlers[job.name] as (job: Job, encryption: BodyEncryption | null) => Promise<void>;
    const startedAt = performance.now();
    try {
      await process(job, encryption);
      return { result: 'committed' };
    } catch (error) {
      if (error instanceof JournalClaimedError) return null;
      const rejection = toRejection(error);
      if (!rejection) throw error;
      return { result: 'rejected', rejection };
    } finally {
      const seconds = (performance.now() - startedAt) / 1000;
      observeTraced(metrics.jobSeconds, { name: job.name }, { seconds, span: currentSpan() });
    }
  }

  /** A permanently failed job without an admission only counts as untrusted. */
  async #reportFailure(queued: QueuedJob<JobData>, error: Error): Promise<void> {
    if (error instanceof RefusedError) return;
    let job: unknown;
    try {
      // Revoked first, so that the job cannot run again after its caller was notified.
      job = await this.#admitted.revoke(queued);
      if (job === null) return this.#admitted.distrust('unknown', queued.id);
    } catch (fault) {
      this.#logger.debug({ jobId: queued.id, err: fault }, 'job admission could not be deleted; it will expire');
    }
    const known = Value.Check(Job, job) ? job : null;
    const name = known?.name ?? 'unknown';
    this.#options.metrics.jobsEnded.labels(name, 'failed').inc();
    forRequest(known?.requestId, () =>
      this.#logger.error(
        { jobId: queued.id, job: name, attempt: queued.attemptsMade, err: error },
        'job failed permanently',
      ),
    );
    if (known) await this.#end(known);
    this.#notify(queued, 'failed');
  }

  async #end(job: Job): Promise<void> {
    try {
      await this.#options.onEnded(job);
    } catch (error) {
      this.#logger.debug({ job: job.name, err: error }, 'job could not be cleaned up');
    }
  }

  #notify(queued: QueuedJob<JobData>, result: 'settled' | 'failed'): void {
    const channel = replyChannelOf(queued);
    if (channel === null) return;
    this.#options.publisher
      .publish(channel, JSON.stringify({ jobId: queued.id, result }))
      .catch((error: unknown) =>
        this.#logger.debug({ jobId: queued.id, err: error }, 'completion message could not be sent'),
      );
  }

  /** Logs each error once: while Redis is down, the error repeats with every connection attempt. */
  #logError(error: Error): void {
    if (error.message === this.#lastError) return;
    this.#lastError = error.message;
    this.#warning.warn('worker', { err: error }, 'worker reported an error');
  }
}

/** No attempt is counted. Always throws. */
async function giveBack(queued: QueuedJob<JobData>, token: string | undefined, delayMs: number): Promise<never> {
  await queued.moveToDelayed(Date.now() + Math.round(delayMs), token);
  throw new DelayedError();
}
