import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, UnavailableError } from '../platform/errors/errors.ts';
import { JobPendingError, toRejection } from '../platform/errors/outcome.ts';
import type { Logger } from '../platform/logger/logger.ts';
import { type BodySeal, PayloadMissingError } from '../platform/payloads/payload-store.ts';
import type { Job } from './definitions.ts';
import {
  type DispatcherState,
  type DispatchOptions,
  type JobDispatcher,
  shuttingDown,
  sumQueues,
} from './dispatcher.ts';
import type { JobHandlers } from './handlers.ts';
import { type QueueName, type QueueState, queueFor } from './queue-names.ts';

interface Waiting {
  readonly job: Job;
  readonly seal: BodySeal | null;
  readonly since: number;
  readonly fairnessKey: string | undefined;
  /** Number of earlier jobs of the same fairness key that have not ended. Lower ranks run first. */
  readonly rank: number;
  readonly onEnded: (error: unknown) => void;
}

interface JobQueue {
  readonly concurrency: number;
  readonly waiting: Waiting[];
  active: number;
  failed: number;
}

export interface InProcessDispatcherOptions {
  readonly concurrency: Readonly<Record<QueueName, number>>;
  /** Bodies of at least this size go to the large queue. */
  readonly largeBytes: number;
  readonly logger: Logger;
  /** Maximum wait of `run`, in ms. */
  readonly waitMs: number;
  /** Called for each job that has ended: committed, rejected or failed permanently. */
  readonly onEnded: (job: Job) => Promise<void>;
}

const attempts = 4;
const firstBackoffMs = 100;

/**
 * Runs jobs in this process, up to the concurrency of each queue. Jobs are ordered by arrival, but those of a fairness key with
 * many unfinished jobs run after the others. Faults are retried with a growing, jittered pause; rejections are final. Jobs live
 * only in memory, which is enough: waiting callers get an error if the process ends, and the sweep finds jobs that no one waits
 * for.
 */
export class InProcessDispatcher implements JobDispatcher {
  readonly #handlers: JobHandlers;
  readonly #options: InProcessDispatcherOptions;
  readonly #queues: Readonly<Record<QueueName, JobQueue>>;
  readonly #loads = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(handlers: JobHandlers, options: InProcessDispatcherOptions) {
    this.#handlers = handlers;
    this.#options = options;
    const newQueue = (concurrency: number): JobQueue => ({ concurrency, waiting: [], active: 0, failed: 0 });
    this.#queues = { small: newQueue(options.concurrency.small), large: newQueue(options.concurrency.large) };
  }

  run(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) return Promise.reject(shuttingDown());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new JobPendingError()), this.#options.waitMs);
    this.#add(job, options, 0, (error) => {
      clearTimeout(timer);
      if (error === undefined) resolve();
      else reject(error);
    });
    return promise;
  }

  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) throw shuttingDown();
    // Behind the first waiting job of every fairness key.
    this.#add(job, options, 1, (error) => {
      if (error !== undefined) this.#options.logger.error({ job: job.name, err: error }, 'job failed');
    });
  }

  state(): DispatcherState {
    const now = performance.now();
    const stateOf = ({ waiting, active, failed }: JobQueue): QueueState => ({
      waiting: waiting.length,
      active,
      failed,
      oldestWaitingMs: waiting.reduce((oldest, { since }) => Math.max(oldest, now - since), 0),
    });
    return sumQueues({ small: stateOf(this.#queues.small), large: stateOf(this.#queues.large) });
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #add(
    job: Job,
    { bytes = 0, seal = null, fairnessKey }: DispatchOptions,
    lowestRank: number,
    onEnded: (error: unknown) => void,
  ): void {
    const queue = this.#queues[queueFor(bytes, this.#options.largeBytes)];
    const load = fairnessKey === undefined ? 0 : (this.#loads.get(fairnessKey) ?? 0);
    if (fairnessKey !== undefined) this.#loads.set(fairnessKey, load + 1);
    const rank = Math.max(load, lowestRank);
    let at = queue.waiting.length;
    while (at > 0 && (queue.waiting[at - 1] as Waiting).rank > rank) at--;
    queue.waiting.splice(at, 0, { job, seal, since: performance.now(), fairnessKey, rank, onEnded });
    this.#next(queue);
  }

  #next(queue: JobQueue): void {
    while (queue.active < queue.concurrency) {
      const waiting = queue.waiting.shift();
      if (!waiting) return;
      queue.active++;
      const run = this.#process(queue, waiting)
        .then(
          () => waiting.onEnded(undefined),
          (error: unknown) => waiting.onEnded(error),
        )
        .finally(() => {
          this.#running.delete(run);
          queue.active--;
          this.#reduceLoad(waiting.fairnessKey);
          this.#next(queue);
        });
      this.#running.add(run);
    }
  }

  #reduceLoad(fairnessKey: string | undefined): void {
    if (fairnessKey === undefined) return;
    const load = (this.#loads.get(fairnessKey) ?? 1) - 1;
    if (load > 0) this.#loads.set(fairnessKey, load);
    else this.#loads.delete(fairnessKey);
  }

  async #process(queue: JobQueue, { job, seal }: Waiting): Promise<void> {
    try {
      await this.#attempt(queue, job, seal);
    } finally {
      await this.#options
        .onEnded(job)
        .catch((error: unknown) =>
          this.#options.logger.warn({ job: job.name, err: error }, 'job could not be cleaned up'),
        );
    }
  }

  async #attempt(queue: JobQueue, job: Job, seal: BodySeal | null): Promise<void> {
    const process = this.#handlers[job.name] as (job: Job, seal: BodySeal | null) => Promise<void>;
    for (let attempt = 1; ; attempt++) {
      try {
        return await process(job, seal);
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
