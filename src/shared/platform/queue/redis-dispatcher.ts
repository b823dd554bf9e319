import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { Value } from 'typebox/value';
import { AppError, UnavailableError } from '../errors/errors.ts';
import { fromRejection } from '../errors/outcome.ts';
import type { Logger } from '../logger/logger.ts';
import { type DispatcherState, type DispatchOptions, type JobDispatcher, JobPendingError } from './dispatcher.ts';
import type { Job } from './jobs.ts';
import { Completion, type JobData, type Lane, lanes, openQueue } from './queues.ts';
import type { ReceiptRepository } from './receipt-repository.ts';
import { redisCall } from './redis.ts';

/** How often a waiting call looks for itself, in case the message of its job's end was lost; in ms. */
const lookMs = [1_000, 2_000, 4_000, 5_000];
const shareLifeSeconds = 900;
const lowestPriority = 1_000;
const stateEveryMs = 2_000;

/** A call that waits: woken by a message, even one that comes before it begins to wait. */
interface Waiter {
  told: boolean;
  wake: () => void;
}

export interface RedisDispatcherOptions {
  /** Fails fast. */
  readonly producer: Redis;
  /** For the reply channel; this connection can do nothing else. */
  readonly subscriber: Redis;
  readonly receipts: ReceiptRepository;
  readonly logger: Logger;
  /** Bodies from this size on go to the large lane. */
  readonly largeBytes: number;
  readonly waitMs: number;
}

/**
 * Hands jobs to worker processes through BullMQ. A call waits for the message that its job has ended, which is only a hint to
 * look: the receipt in Postgres says what became of it. When there is neither job nor receipt (Redis lost it), or the wait is
 * over, the call ends in UnavailableError and the client repeats it.
 */
export class RedisDispatcher implements JobDispatcher {
  readonly #options: RedisDispatcherOptions;
  readonly #queues: Record<Lane, Queue<JobData>>;
  readonly #channel = `holdfast:done:${randomUUID()}`;
  readonly #waiting = new Map<string, Waiter>();
  readonly #stateTimer: NodeJS.Timeout;
  #state: DispatcherState = { waiting: 0, active: 0, oldestWaitingMs: 0 };
  #closed = false;

  constructor(options: RedisDispatcherOptions) {
    this.#options = options;
    this.#queues = { small: openQueue('small', options.producer), large: openQueue('large', options.producer) };
    for (const queue of Object.values(this.#queues))
      queue.on('error', (error) => options.logger.debug({ err: error }, 'queue'));
    options.subscriber.on('message', (_channel: string, message: string) => this.#hear(message));
    // Taken up again by ioredis after every reconnection.
    options.subscriber
      .subscribe(this.#channel)
      .catch((error: unknown) => options.logger.warn({ err: error }, 'no completion messages'));
    this.#stateTimer = setInterval(() => void this.#refreshState().catch(() => {}), stateEveryMs);
    this.#stateTimer.unref();
  }

  async run(job: Job, options: DispatchOptions = {}): Promise<void> {
    const jobId = randomUUID();
    const waiter: Waiter = { told: false, wake: () => {} };
    this.#waiting.set(jobId, waiter);
    try {
      const { queue, release } = await this.#add(jobId, job, options);
      await this.#await(jobId, queue, waiter).finally(release);
    } finally {
      this.#waiting.delete(jobId);
    }
  }

  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    const { release } = await this.#add(randomUUID(), job, options);
    await release();
  }

  state(): DispatcherState {
    return this.#state;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#stateTimer);
    await Promise.all(Object.values(this.#queues).map((queue) => queue.close()));
  }

  async #add(
    jobId: string,
    job: Job,
    { bytes = 0, share }: DispatchOptions,
  ): Promise<{ queue: Queue<JobData>; release: () => Promise<void> }> {
    if (this.#closed)
      throw new UnavailableError('The server is shutting down; please repeat the call', { retryAfterSeconds: 1 });
    const { largeBytes, producer } = this.#options;
    const queue = this.#queues[bytes >= largeBytes ? 'large' : 'small'];
    const shareKey = share === undefined ? null : `holdfast:share:${share}`;
    // Whoever has much in the queue already stands behind those who have little.
    const load = shareKey ? await redisCall(() => producer.incr(shareKey)) : 1;
    if (shareKey && load === 1) await redisCall(() => producer.expire(shareKey, shareLifeSeconds));
    const release = async (): Promise<void> => {
      if (shareKey) await producer.decr(shareKey).catch(() => {});
    };
    const priority = load > 1 ? Math.min(load - 1, lowestPriority) : 0;
    try {
      await redisCall(() => queue.add(job.name, { job, replyTo: this.#channel }, { jobId, priority }));
    } catch (error) {
      await release();
      throw error;
    }
    return { queue, release };
  }

  async #await(jobId: string, queue: Queue<JobData>, waiter: Waiter): Promise<void> {
    const { receipts, waitMs } = this.#options;
    const deadline = Date.now() + waitMs;
    for (let look = 0; ; look++) {
      const pause = Math.min(lookMs[Math.min(look, lookMs.length - 1)] as number, Math.max(deadline - Date.now(), 0));
      await untilTold(waiter, pause);
      const outcome = await receipts.find(jobId);
      if (outcome?.result === 'committed') return;
      if (outcome?.result === 'rejected') throw fromRejection(outcome.rejection);
      if (Date.now() >= deadline) throw new JobPendingError();
      if (await this.#isLost(jobId, queue)) {
        // It may have ended, and been cleared away, between the two questions.
        const late = await receipts.find(jobId);
        if (late?.result === 'committed') return;
        if (late?.result === 'rejected') throw fromRejection(late.rejection);
        throw new UnavailableError('The write failed on the worker, or was lost on its way; please repeat the call', {
          retryAfterSeconds: 1,
        });
      }
    }
  }

  async #isLost(jobId: string, queue: Queue<JobData>): Promise<boolean> {
    try {
      const state = await redisCall(() => queue.getJobState(jobId));
      return state === 'unknown' || state === 'failed' || state === 'completed';
    } catch (error) {
      // Redis is away: the job may still be running on a worker that has it in hand.
      if (error instanceof AppError) return false;
      throw error;
    }
  }

  #hear(message: string): void {
    const completion: unknown = JSON.parse(message);
    if (!Value.Check(Completion, completion)) return;
    const waiter = this.#waiting.get(completion.jobId);
    if (!waiter) return;
    waiter.told = true;
    waiter.wake();
  }

  async #refreshState(): Promise<void> {
    const state = { waiting: 0, active: 0, oldestWaitingMs: 0 };
    for (const lane of lanes) {
      const counts = await this.#queues[lane].getJobCounts('wait', 'prioritized', 'delayed', 'active');
      state.waiting += (counts['wait'] ?? 0) + (counts['prioritized'] ?? 0) + (counts['delayed'] ?? 0);
      state.active += counts['active'] ?? 0;
      const [oldest] = await this.#queues[lane].getJobs(['wait'], 0, 0, true);
      if (oldest) state.oldestWaitingMs = Math.max(state.oldestWaitingMs, Date.now() - oldest.timestamp);
    }
    this.#state = state;
  }
}

/** Resolves when the job's end is told, at the latest after `limitMs`. */
async function untilTold(waiter: Waiter, limitMs: number): Promise<void> {
  if (!waiter.told) {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiter.wake = resolve;
    const timer = setTimeout(resolve, limitMs);
    await promise;
    clearTimeout(timer);
  }
  waiter.told = false;
}
