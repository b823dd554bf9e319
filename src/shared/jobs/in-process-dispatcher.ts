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
  readonly share: string | undefined;
  /** How many jobs of the same share came before it and have not ended; low ranks go first. */
  readonly rank: number;
  readonly settle: (error: unknown) => void;
}

interface JobQueue {
  readonly concurrency: number;
  readonly waiting: Waiting[];
  active: number;
  failed: number;
}

export interface InProcessDispatcherOptions {
  readonly concurrency: Readonly<Record<QueueName, number>>;
  /** Bodies from this size on go to the large lane. */
  readonly largeBytes: number;
  readonly logger: Logger;
  /** Longest wait of `run`, in ms. */
  readonly waitMs: number;
  /** Told of a job that has ended: committed, refused or given up. */
  readonly onEnded: (job: Job) => Promise<void>;
}

const attempts = 4;
const firstBackoffMs = 100;

/**
 * Runs jobs in this process, as many at a time as the lane allows, in order of arrival, but those of a share that has much
 * under way after the others. A fault is tried again with a growing, jittered pause; a refusal is final. Jobs live in memory
 * only, which is enough: whoever waits is told when the process ends, and what nobody waits for is found again by the sweep.
 */
export class InProcessDispatcher implements JobDispatcher {
  readonly #handlers: JobHandlers;
  readonly #options: InProcessDispatcherOptions;
  readonly #lanes: Readonly<Record<QueueName, JobQueue>>;
  readonly #loads = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(handlers: JobHandlers, options: InProcessDispatcherOptions) {
    this.#handlers = handlers;
    this.#options = options;
    const lane = (concurrency: number): JobQueue => ({ concurrency, waiting: [], active: 0, failed: 0 });
    this.#lanes = { small: lane(options.concurrency.small), large: lane(options.concurrency.large) };
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
    // Behind the first job of everyone that waits.
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
    return sumQueues({ small: stateOf(this.#lanes.small), large: stateOf(this.#lanes.large) });
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #add(
    job: Job,
    { bytes = 0, seal = null, share }: DispatchOptions,
    lowestRank: number,
    settle: (error: unknown) => void,
  ): void {
    const lane = this.#lanes[queueFor(bytes, this.#options.largeBytes)];
    const load = share === undefined ? 0 : (this.#loads.get(share) ?? 0);
    if (share !== undefined) this.#loads.set(share, load + 1);
    const rank = Math.max(load, lowestRank);
    let at = lane.waiting.length;
    while (at > 0 && (lane.waiting[at - 1] as Waiting).rank > rank) at--;
    lane.waiting.splice(at, 0, { job, seal, since: performance.now(), share, rank, settle });
    this.#next(lane);
  }

  #next(lane: JobQueue): void {
    while (lane.active < lane.concurrency) {
      const waiting = lane.waiting.shift();
      if (!waiting) return;
      lane.active++;
      const run = this.#process(lane, waiting)
        .then(
          () => waiting.settle(undefined),
          (error: unknown) => waiting.settle(error),
        )
        .finally(() => {
          this.#running.delete(run);
          lane.active--;
          this.#lighten(waiting.share);
          this.#next(lane);
        });
      this.#running.add(run);
    }
  }

  #lighten(share: string | undefined): void {
    if (share === undefined) return;
    const load = (this.#loads.get(share) ?? 1) - 1;
    if (load > 0) this.#loads.set(share, load);
    else this.#loads.delete(share);
  }

  async #process(lane: JobQueue, { job, seal }: Waiting): Promise<void> {
    try {
      await this.#attempt(lane, job, seal);
    } finally {
      await this.#options
        .onEnded(job)
        .catch((error: unknown) =>
          this.#options.logger.warn({ job: job.name, err: error }, 'job could not be cleaned up'),
        );
    }
  }

  async #attempt(lane: JobQueue, job: Job, seal: BodySeal | null): Promise<void> {
    const process = this.#handlers[job.name] as (job: Job, seal: BodySeal | null) => Promise<void>;
    for (let attempt = 1; ; attempt++) {
      try {
        return await process(job, seal);
      } catch (error) {
        if (toRejection(error) !== null) throw error;
        // Nobody but the client has a missing body: no attempt of ours can help.
        if (attempt === attempts || error instanceof PayloadMissingError) {
          lane.failed++;
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
