import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../errors/errors.ts';
import { toRejection } from '../errors/outcome.ts';
import type { Logger } from '../logger/logger.ts';
import { type DispatcherState, type JobDispatcher, JobPendingError } from './dispatcher.ts';
import type { Job, JobProcessors } from './jobs.ts';

interface Waiting {
  readonly job: Job;
  readonly since: number;
  readonly settle: (error: unknown) => void;
}

export interface InProcessDispatcherOptions {
  readonly concurrency: number;
  readonly logger: Logger;
  /** Longest wait of `run`, in ms. */
  readonly waitMs: number;
  /** Told of a job that no attempt could commit. */
  readonly onGivenUp: (job: Job) => Promise<void>;
}

const attempts = 4;
const firstBackoffMs = 100;

/**
 * Runs jobs in this process, `concurrency` at a time, in order of arrival. A fault is tried again with a growing, jittered
 * pause; a refusal is final. Jobs live in memory only, which is enough: whoever waits is told when the process ends, and
 * what nobody waits for is found again by the sweep.
 */
export class InProcessDispatcher implements JobDispatcher {
  readonly #processors: JobProcessors;
  readonly #concurrency: number;
  readonly #logger: Logger;
  readonly #waitMs: number;
  readonly #onGivenUp: (job: Job) => Promise<void>;
  readonly #queue: Waiting[] = [];
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  constructor(processors: JobProcessors, options: InProcessDispatcherOptions) {
    this.#processors = processors;
    this.#concurrency = options.concurrency;
    this.#logger = options.logger;
    this.#waitMs = options.waitMs;
    this.#onGivenUp = options.onGivenUp;
  }

  run(job: Job): Promise<void> {
    if (this.#closed)
      return Promise.reject(
        new UnavailableError('The server is shutting down; please repeat the call', { retryAfterSeconds: 1 }),
      );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new JobPendingError()), this.#waitMs);
    const settle = (error: unknown): void => {
      clearTimeout(timer);
      if (error === undefined) resolve();
      else reject(error);
    };
    this.#queue.push({ job, since: Date.now(), settle });
    this.#next();
    return promise;
  }

  async enqueue(job: Job): Promise<void> {
    this.run(job).catch((error: unknown) => this.#logger.error({ job: job.name, err: error }, 'job failed'));
  }

  state(): DispatcherState {
    const oldest = this.#queue[0];
    return {
      waiting: this.#queue.length,
      active: this.#running.size,
      oldestWaitingMs: oldest ? Date.now() - oldest.since : 0,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running.size > 0 || this.#queue.length > 0) await Promise.allSettled(this.#running);
  }

  #next(): void {
    while (this.#running.size < this.#concurrency) {
      const waiting = this.#queue.shift();
      if (!waiting) return;
      const run = this.#process(waiting.job).then(
        () => waiting.settle(undefined),
        (error: unknown) => waiting.settle(error),
      );
      this.#running.add(run);
      void run.finally(() => {
        this.#running.delete(run);
        this.#next();
      });
    }
  }

  async #process(job: Job): Promise<void> {
    const process = this.#processors[job.name] as (job: Job) => Promise<void>;
    for (let attempt = 1; ; attempt++) {
      try {
        return await process(job);
      } catch (error) {
        if (toRejection(error) !== null) throw error;
        if (attempt === attempts) {
          await this.#onGivenUp(job);
          throw error;
        }
        this.#logger.warn({ job: job.name, attempt, err: error }, 'job failed; trying again');
        await sleep(firstBackoffMs * 2 ** (attempt - 1) * (0.5 + Math.random()));
      }
    }
  }
}
