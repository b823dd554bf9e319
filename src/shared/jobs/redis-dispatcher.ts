import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { Value } from 'typebox/value';
import { UnavailableError } from '../platform/errors/errors.ts';
import { fromRejection, JobPendingError, JobWithdrawnError, type Outcome } from '../platform/errors/outcome.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { OutcomeRepository } from '../platform/outcomes/outcome-repository.ts';
import { QueueUnavailableError } from '../platform/redis/queue-unavailable.ts';
import { isCluster, type RedisConnection, redisCall, watchSubscription } from '../platform/redis/redis.ts';
import { inSpan } from '../platform/tracing/tracing.ts';
import {
  type DispatcherState,
  type DispatchOptions,
  type JobDispatcher,
  shuttingDown,
  sumQueues,
} from './dispatcher.ts';
import type { Job } from './job-list.ts';
import type { QueueStates } from './queue-names.ts';
import { JobCompletion, type JobData } from './queues.ts';
import { RedisJobQueue, type RedisJobQueueOptions } from './redis-job-queue.ts';

/** A waiting call polls at these intervals, in case the completion message was lost. */
const pollMs = [1_000, 2_000, 4_000, 5_000];
/** Added to the wait of a call. Entries of a dead process expire after that. */
const countGraceMs = 10_000;

/** Adds a job to those of a fairness key and returns their number. Entries expire, so that dead processes do not count forever. */
const countJobScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])`;

/** `notified` also records a message that arrives before the wait begins. */
interface Waiter {
  notified: boolean;
  wake: () => void;
}

export interface RedisDispatcherOptions extends RedisJobQueueOptions {
  /** For the reply channel. This connection cannot be used for anything else. */
  readonly subscriber: RedisConnection;
  readonly jobResults: OutcomeRepository;
  readonly logger: Logger;
  readonly waitMs: number;
  readonly queueStates: () => QueueStates;
}

/**
 * Dispatches jobs through BullMQ. A call waits for the completion message, which is only a hint to poll: the job result in Postgres is
 * authoritative. If there is neither a job nor a result (Redis lost it), or the wait is over, the call throws UnavailableError and the
 * client repeats it. A job that no worker has taken by then is withdrawn.
 */
export class RedisDispatcher implements JobDispatcher {
  readonly #options: RedisDispatcherOptions;
  readonly #queue: RedisJobQueue;
  readonly #waiting = new Map<string, Waiter>();
  readonly #calls = new Set<Promise<void>>();
  readonly #endWatch: () => void;
  #closed = false;

  constructor(options: RedisDispatcherOptions) {
    this.#options = options;
    this.#queue = new RedisJobQueue(options);
    options.subscriber.on('message', this.#onMessage);
    // On every connection, because ioredis loses a subscription whose connection closes before the reply.
    options.subscriber.on('ready', this.#subscribe);
    if (options.subscriber.status === 'ready') this.#subscribe();
    this.#endWatch = isCluster(options.subscriber)
      ? watchSubscription(options.subscriber, this.#queue.channel)
      : () => {};
  }

  run(job: Job, options: DispatchOptions = {}): Promise<void> {
    return this.#track(() => inSpan(`wait for job ${job.name}`, { role: 'producer' }, () => this.#run(job, options)));
  }

  enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    return this.#track(() => this.#queue.enqueue(job, options));
  }

  #track(start: () => Promise<void>): Promise<void> {
    if (this.#closed) return Promise.reject(shuttingDown());
    const call = start().finally(() => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }

  state(): DispatcherState {
    return sumQueues(this.#options.queueStates());
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
    const { subscriber } = this.#options;
    this.#endWatch();
    subscriber.off('message', this.#onMessage);
    subscriber.off('ready', this.#subscribe);
    // Not awaited: it would wait until Redis is back.
    subscriber.unsubscribe(this.#queue.channel).catch(() => {});
  }

  async #run(job: Job, options: DispatchOptions): Promise<void> {
    const jobId = randomUUID();
    const waiter: Waiter = { notified: false, wake: () => {} };
    this.#waiting.set(jobId, waiter);
    try {
      const queue = await this.#queue.queueFor(options);
      const [load] = await Promise.all([
        this.#countJob(jobId, options.fairnessKey),
        this.#queue.admit(jobId, job, options),
      ]);
      await this.#queue.add(queue, jobId, job, load - 1).catch((error: unknown) => {
        // Redis may have the job nevertheless, but its body is released with this error.
        this.#revoke(jobId);
        throw error;
      });
      await this.#await(jobId, queue, waiter, options);
    } finally {
      this.#waiting.delete(jobId);
      this.#uncountJob(jobId, options.fairnessKey);
    }
  }

  /** Otherwise, workers would first run jobs whose callers have long since repeated their calls. */
  async #withdraw(jobId: string, queue: Queue<JobData>): Promise<boolean> {
    try {
      if (!(await this.#queue.withdraw(queue, jobId))) return false;
    } catch (error) {
      this.#options.logger.debug({ jobId, err: error }, 'job could not be withdrawn; it will expire');
      return false;
    }
    this.#revoke(jobId);
    return true;
  }

  /** A copy of a job that Redis should not have must not run after the caller has repeated the call. */
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

  /** Returns the number of unfinished jobs of the key, including this one. Keys with fewer jobs run first. */
  async #countJob(jobId: string, fairnessKey: string | undefined): Promise<number> {
    if (fairnessKey === undefined) return 1;
    const { producer, waitMs } = this.#options;
    const lifeMs = waitMs + countGraceMs;
    return (await redisCall(() => producer.eval(countJobScript, 1, jobsKey(fairnessKey), jobId, lifeMs))) as number;
  }

  #uncountJob(jobId: string, fairnessKey: string | undefined): void {
    if (fairnessKey === undefined) return;
    const { logger, producer } = this.#options;
    producer
      .zrem(jobsKey(fairnessKey), jobId)
      .catch((error: unknown) => logger.debug({ err: error }, 'fairness entry could not be deleted; it will expire'));
  }

  async #await(
    jobId: string,
    queue: Queue<JobData>,
    waiter: Waiter,
    { onlyWhileReachable }: DispatchOptions,
  ): Promise<void> {
    const deadline = performance.now() + this.#options.waitMs;
    for (let polls = 0; ; polls++) {
      const pause = Math.min(
        pollMs[Math.min(polls, pollMs.length - 1)] as number,
        Math.max(deadline - performance.now(), 0),
      );
      await untilNotified(waiter, pause);
      if ((await this.#outcomeOf(jobId)) === 'committed') return;
      if (performance.now() >= deadline)
        throw (await this.#withdraw(jobId, queue)) ? new JobWithdrawnError() : new JobPendingError();
      const state = await this.#stateOf(jobId, queue);
      if (state === 'under way' || (state === 'unreachable' && !onlyWhileReachable)) continue;
      // The job may have ended and been removed between the two queries.
      const outcome = await this.#outcomeOf(jobId);
      if (outcome === 'committed') return;
      if (state === 'unreachable') throw new QueueUnavailableError();
      // While Postgres is unreachable, only a failed job is certainly not committed.
      if (outcome === 'open' || state === 'failed') {
        this.#revoke(jobId);
        throw new UnavailableError('The write failed on the worker, or was lost on the way; please retry', {
          retryAfterSeconds: 1,
        });
      }
    }
  }

  /** `open`: no result yet. `unknown`: Postgres is unreachable. Throws the error of a rejected job. */
  async #outcomeOf(jobId: string): Promise<'committed' | 'open' | 'unknown'> {
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
      // Redis is down, but a worker may still be running the job.
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

  readonly #onMessage = (_channel: string, message: string): void => {
    const completion = parseJson(message);
    if (!Value.Check(JobCompletion, completion)) return;
    const waiter = this.#waiting.get(completion.jobId);
    if (!waiter) return;
    waiter.notified = true;
    waiter.wake();
  };
}

function jobsKey(fairnessKey: string): string {
  return `holdfast:share:${fairnessKey}`;
}

/** Any Redis client can publish on a channel. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function untilNotified(waiter: Waiter, limitMs: number): Promise<void> {
  if (!waiter.notified) {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiter.wake = resolve;
    const timer = setTimeout(resolve, limitMs);
    await promise;
    clearTimeout(timer);
  }
  waiter.notified = false;
}
