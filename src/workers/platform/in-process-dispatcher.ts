import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import {
  type DispatcherState,
  type DispatchOptions,
  type JobDispatcher,
  shuttingDown,
  sumQueues,
} from '../../shared/jobs/dispatcher.ts';
import type { Job } from '../../shared/jobs/job-list.ts';
import { type QueueName, type QueueState, queueFor } from '../../shared/jobs/queue-names.ts';
import { runInOrder } from '../../shared/platform/db/connection-gate.ts';
import { AppError, UnavailableError } from '../../shared/platform/errors/errors.ts';
import { JobPendingError, JobWithdrawnError, toRejection } from '../../shared/platform/errors/outcome.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import { forRequest } from '../../shared/platform/logger/request-lines.ts';
import { type BodyEncryption, PayloadMissingError } from '../../shared/platform/payloads/payload-store.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';
import { inJobSpan } from '../../shared/platform/tracing/tracing.ts';
import type { JobHandlers } from './job-handlers.ts';

interface JobQueue {
  /** All jobs that may run. Others wait in `background`. */
  readonly runs: PQueue;
  /** No call waits for these. Each enters `runs` when its turn comes here. */
  readonly background: PQueue;
  /** Unfinished jobs for which calls wait. */
  awaited: number;
  /** Ends the time in which no background job begins. */
  patience: NodeJS.Timeout | null;
  /** In ms. The first is the oldest. */
  readonly waitingSince: Set<{ readonly ms: number }>;
  failed: number;
}

export interface InProcessDispatcherOptions {
  readonly concurrency: Readonly<Record<QueueName, number>>;
  /** Bodies from this size go to the large queue. */
  readonly largeBytes: number;
  readonly logger: Logger;
  /** Maximum wait of `run`, in ms. */
  readonly waitMs: number;
  /** Background jobs are deferred for this long while calls wait. Afterwards, one runs at a time. */
  readonly patienceMs?: number;
  /** The job was committed, rejected or failed permanently. */
  readonly onEnded: (job: Job) => Promise<void>;
}

const attempts = 4;
const firstBackoffMs = 100;
const usualPatienceMs = 1_000;

/**
 * Runs jobs in this process, by arrival, but jobs of a fairness key with many unfinished jobs run after the others. While calls wait, no
 * background job begins at first, and after a second only one at a time: otherwise the calls of a burst would also wait for each other's
 * background work. Faults are retried with a growing, jittered pause; rejections are final. Jobs live only in memory, which suffices:
 * waiting callers get an error if the process ends, and the sweep finds jobs for which no call waits.
 */
export class InProcessDispatcher implements JobDispatcher {
  readonly #handlers: JobHandlers;
  readonly #options: InProcessDispatcherOptions;
  readonly #queues: Readonly<Record<QueueName, JobQueue>>;
  readonly #loads = new Map<string, number>();
  #closed = false;

  constructor(handlers: JobHandlers, options: InProcessDispatcherOptions) {
    this.#handlers = handlers;
    this.#options = options;
    const newQueue = (concurrency: number): JobQueue => ({
      runs: new PQueue({ concurrency }),
      background: new PQueue({ concurrency }),
      awaited: 0,
      patience: null,
      waitingSince: new Set(),
      failed: 0,
    });
    this.#queues = { small: newQueue(options.concurrency.small), large: newQueue(options.concurrency.large) };
  }

  async run(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) throw shuttingDown();
    const { done, withdraw } = this.#add(job, options, true);
    const late = (): Error => (withdraw() ? new JobWithdrawnError() : new JobPendingError());
    await withTimeout(done, this.#options.waitMs, late);
  }

  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) throw shuttingDown();
    this.#add(job, options, false).done.catch((error: unknown) =>
      this.#options.logger.error({ job: job.name, err: error }, 'job failed'),
    );
  }

  state(): DispatcherState {
    const now = performance.now();
    const stateOf = ({ runs, waitingSince, failed }: JobQueue): QueueState => {
      const [oldest] = waitingSince;
      const oldestWaitingMs = oldest ? now - oldest.ms : 0;
      return { waiting: waitingSince.size, active: runs.pending, failed, oldestWaitingMs };
    };
    return sumQueues({ small: stateOf(this.#queues.small), large: stateOf(this.#queues.large) });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      Object.values(this.#queues).flatMap(({ runs, background }) => [runs.onIdle(), background.onIdle()]),
    );
  }

  /** `done` settles when the job ends. `withdraw` returns false if the job has begun. Jobs of equal priority run in order of arrival. */
  #add(
    job: Job,
    { bytes = 0, encryption = null, fairnessKey }: DispatchOptions,
    isAwaited: boolean,
  ): { readonly done: Promise<void>; readonly withdraw: () => boolean } {
    const queue = this.#queues[queueFor(bytes, this.#options.largeBytes)];
    // Unfinished earlier jobs of the same key.
    const load = fairnessKey === undefined ? 0 : (this.#loads.get(fairnessKey) ?? 0);
    if (fairnessKey !== undefined) this.#loads.set(fairnessKey, load + 1);
    const since = { ms: performance.now() };
    queue.waitingSince.add(since);
    const uncount = (): void => {
      this.#reduceLoad(fairnessKey);
      if (isAwaited) this.#countAwaited(queue, -1);
    };
    const withdraw = (): boolean => {
      // A job that begins leaves the set.
      if (!queue.waitingSince.delete(since)) return false;
      uncount();
      return true;
    };
    const process = async (): Promise<void> => {
      if (!queue.waitingSince.delete(since)) return;
      try {
        await forRequest(job.requestId, () =>
          inJobSpan(`job ${job.name}`, job.traceparent, () => this.#process(queue, job, encryption)),
        );
      } finally {
        uncount();
      }
    };
    // The queue starts a job in the context of the job that ended before it.
    const run = isAwaited ? AsyncResource.bind(process) : () => runInOrder(process);
    if (isAwaited) {
      this.#countAwaited(queue, 1);
      return { done: queue.runs.add(run, { priority: -load }), withdraw };
    }
    // Lower than the priority of the first waiting job of every fairness key.
    const priority = -Math.max(load, 1);
    return { done: queue.background.add(() => queue.runs.add(run, { priority }), { priority }), withdraw };
  }

  /** While calls wait for jobs, leaves all slots to these, and later all but one. */
  #countAwaited(queue: JobQueue, change: 1 | -1): void {
    queue.awaited += change;
    const { background, runs } = queue;
    if (queue.awaited === 0) {
      clearTimeout(queue.patience ?? undefined);
      queue.patience = null;
      background.concurrency = runs.concurrency;
      background.start();
    } else if (queue.patience === null) {
      background.pause();
      background.concurrency = 1;
      queue.patience = setTimeout(() => background.start(), this.#options.patienceMs ?? usualPatienceMs);
    }
  }

  #reduceLoad(fairnessKey: string | undefined): void {
    if (fairnessKey === undefined) return;
    const load = (this.#loads.get(fairnessKey) ?? 1) - 1;
    if (load > 0) this.#loads.set(fairnessKey, load);
    else this.#loads.delete(fairnessKey);
  }

  async #process(queue: JobQueue, job: Job, encryption: BodyEncryption | null): Promise<void> {
    try {
      await this.#attempt(queue, job, encryption);
    } finally {
      await this.#options
        .onEnded(job)
        .catch((error: unknown) =>
          this.#options.logger.warn({ job: job.name, err: error }, 'job could not be cleaned up'),
        );
    }
  }

  async #attempt(queue: JobQueue, job: Job, encryption: BodyEncryption | null): Promise<void> {
    const process = this.#handlers[job.name] as (job: Job, encryption: BodyEncryption | null) => Promise<void>;
    for (let attempt = 1; ; attempt++) {
      try {
        return await process(job, encryption);
      } catch (error) {
        if (toRejection(error) !== null) throw error;
        // Only the client has a missing body, so a retry cannot help.
        if (attempt === attempts || error instanceof PayloadMissingError) {
          queue.failed++;
          this.#options.logger.error({ job: job.name, attempt, err: error }, 'job failed permanently');
          throw error instanceof AppError ? error : failedJob(error);
        }
        this.#options.logger.warn({ job: job.name, attempt, err: error }, 'job failed; retrying');
        await sleep(firstBackoffMs * 2 ** (attempt - 1) * (0.5 + Math.random()));
      }
    }
  }
}

function failedJob(cause: unknown): UnavailableError {
  return new UnavailableError('The write failed; please retry', { cause, retryAfterSeconds: 1 });
}
