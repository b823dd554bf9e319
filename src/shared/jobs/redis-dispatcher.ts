import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { Value } from 'typebox/value';
import { UnavailableError } from '../platform/errors/errors.ts';
import { fromRejection, JobPendingError, type Outcome } from '../platform/errors/outcome.ts';
import type { Logger } from '../platform/logger/logger.ts';
import { QueueAwayError } from '../platform/redis/queue-away.ts';
import { type RedisConnection, redisCall } from '../platform/redis/redis.ts';
import type { Job } from './definitions.ts';
import {
  type DispatcherState,
  type DispatchOptions,
  type JobDispatcher,
  shuttingDown,
  sumQueues,
} from './dispatcher.ts';
import type { JobResultRepository } from './job-result-repository.ts';
import type { QueueStates } from './queue-names.ts';
import { Completion, type JobData } from './queues.ts';
import { RedisJobQueue, type RedisJobQueueOptions } from './redis-job-queue.ts';

/** How often a waiting call looks for itself, in case the message of its job's end was lost; in ms. */
const lookMs = [1_000, 2_000, 4_000, 5_000];
/** Longer than a call waits: what a process that died held of its share is free again then. */
const shareGraceMs = 10_000;

/**
 * Adds one to a share and answers with its size. Members go by their time, so that those of processes that died do not
 * count for ever.
 */
const joinShareScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])`;

/** A call that waits: woken by a message, even one that comes before it begins to wait. */
interface Waiter {
  told: boolean;
  wake: () => void;
}

export interface RedisDispatcherOptions extends RedisJobQueueOptions {
  /** Fails fast. */
  readonly producer: RedisConnection;
  /** For the reply channel; this connection can do nothing else. */
  readonly subscriber: RedisConnection;
  readonly jobResults: JobResultRepository;
  readonly logger: Logger;
  readonly waitMs: number;
  /** Figures of the lanes, all processes together. */
  readonly lanes: () => QueueStates;
}

/**
 * Hands jobs to worker processes through BullMQ: what a job may do is written to Postgres first, Redis gets its id. A call waits for the message that its job has ended, which is only a hint to
 * look: the receipt in Postgres says what became of it. When there is neither job nor receipt (Redis lost it), or the wait is
 * over, the call ends in UnavailableError and the client repeats it.
 */
export class RedisDispatcher implements JobDispatcher {
  readonly #options: RedisDispatcherOptions;
  readonly #queue: RedisJobQueue;
  readonly #waiting = new Map<string, Waiter>();
  readonly #calls = new Set<Promise<void>>();
  #closed = false;

  constructor(options: RedisDispatcherOptions) {
    this.#options = options;
    this.#queue = new RedisJobQueue(options);
    options.subscriber.on('message', this.#hear);
    // With every connection anew: ioredis itself loses a subscription that is broken off before it is answered.
    options.subscriber.on('ready', this.#subscribe);
    if (options.subscriber.status === 'ready') this.#subscribe();
  }

  run(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) return Promise.reject(shuttingDown());
    const call = this.#run(job, options).finally(() => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }

  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    if (this.#closed) throw shuttingDown();
    await this.#queue.enqueue(job, options);
  }

  state(): DispatcherState {
    return sumQueues(this.#options.lanes());
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
    const { subscriber } = this.#options;
    subscriber.off('message', this.#hear);
    subscriber.off('ready', this.#subscribe);
    // Not waited for: it would wait for Redis to come back.
    subscriber.unsubscribe(this.#queue.channel).catch(() => {});
  }

  async #run(job: Job, options: DispatchOptions): Promise<void> {
    const jobId = randomUUID();
    const waiter: Waiter = { told: false, wake: () => {} };
    this.#waiting.set(jobId, waiter);
    try {
      const queue = await this.#queue.queueFor(options);
      const [load] = await Promise.all([this.#joinShare(jobId, options.share), this.#queue.admit(jobId, job, options)]);
      await this.#queue.add(queue, jobId, job, load - 1);
      await this.#await(jobId, queue, waiter, options);
    } finally {
      this.#waiting.delete(jobId);
      this.#leaveShare(jobId, options.share);
    }
  }

  /** For a job that Redis lost: what is put back there in its place must not run when its caller has long repeated the call. */
  #revoke(jobId: string): void {
    const { admissions, logger } = this.#options;
    const revoking = admissions
      .revoke(jobId)
      .then(
        () => {},
        (error: unknown) => logger.debug({ jobId, err: error }, 'job admission could not be deleted; it will expire'),
      )
      .finally(() => this.#calls.delete(revoking));
    this.#calls.add(revoking);
  }

  /** Whoever has much in the queue already stands behind those who have little: the first job of a share is number 1. */
  async #joinShare(jobId: string, share: string | undefined): Promise<number> {
    if (share === undefined) return 1;
    const { producer, waitMs } = this.#options;
    const lifeMs = waitMs + shareGraceMs;
    return (await redisCall(() => producer.eval(joinShareScript, 1, shareKey(share), jobId, lifeMs))) as number;
  }

  #leaveShare(jobId: string, share: string | undefined): void {
    if (share === undefined) return;
    const { logger, producer } = this.#options;
    producer
      .zrem(shareKey(share), jobId)
      .catch((error: unknown) => logger.debug({ err: error }, 'fairness entry could not be deleted; it will expire'));
  }

  async #await(
    jobId: string,
    queue: Queue<JobData>,
    waiter: Waiter,
    { onlyWhileReachable }: DispatchOptions,
  ): Promise<void> {
    const deadline = performance.now() + this.#options.waitMs;
    for (let look = 0; ; look++) {
      const pause = Math.min(
        lookMs[Math.min(look, lookMs.length - 1)] as number,
        Math.max(deadline - performance.now(), 0),
      );
      await untilTold(waiter, pause);
      if ((await this.#fateOf(jobId)) === 'committed') return;
      if (performance.now() >= deadline) throw new JobPendingError();
      const state = await this.#stateOf(jobId, queue);
      if (state === 'under way' || (state === 'unreachable' && !onlyWhileReachable)) continue;
      // It may have ended, and been cleared away, between the two questions.
      const fate = await this.#fateOf(jobId);
      if (fate === 'committed') return;
      if (state === 'unreachable') throw new QueueAwayError();
      // While Postgres cannot be asked, only a failed job is certain not to have ended well.
      if (fate === 'open' || state === 'failed') {
        this.#revoke(jobId);
        throw new UnavailableError('The write failed on the worker, or was lost on the way; please retry', {
          retryAfterSeconds: 1,
        });
      }
    }
  }

  /** What the receipt says; throws the job's refusal. `open`: there is none yet, `unknown`: Postgres could not be asked. */
  async #fateOf(jobId: string): Promise<'committed' | 'open' | 'unknown'> {
    let outcome: Outcome | null;
    try {
      outcome = await this.#options.jobResults.find(jobId);
    } catch (error) {
      if (this.#closed) throw shuttingDown();
      this.#options.logger.debug({ jobId, err: error }, 'job result could not be polled');
      return 'unknown';
    }
    if (outcome?.result === 'rejected') throw fromRejection(outcome.rejection);
    return outcome === null ? 'open' : 'committed';
  }

  async #stateOf(jobId: string, queue: Queue<JobData>): Promise<'under way' | 'failed' | 'gone' | 'unreachable'> {
    try {
      const state = await queue.getJobState(jobId);
      if (state === 'failed') return 'failed';
      return state === 'unknown' || state === 'completed' ? 'gone' : 'under way';
    } catch (error) {
      // Redis is away: the job may still be running on a worker that has it in hand.
      this.#options.logger.debug({ jobId, err: error }, 'job could not be polled');
      return 'unreachable';
    }
  }

  readonly #subscribe = (): void => {
    const { logger, subscriber } = this.#options;
    subscriber
      .subscribe(this.#queue.channel)
      .catch((error: unknown) => logger.warn({ err: error }, 'completion messages are unavailable for now'));
  };

  readonly #hear = (_channel: string, message: string): void => {
    const completion = parseJson(message);
    if (!Value.Check(Completion, completion)) return;
    const waiter = this.#waiting.get(completion.jobId);
    if (!waiter) return;
    waiter.told = true;
    waiter.wake();
  };
}

function shareKey(share: string): string {
  return `holdfast:share:${share}`;
}

/** Undefined for what is no JSON: anyone can publish on a channel. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
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
