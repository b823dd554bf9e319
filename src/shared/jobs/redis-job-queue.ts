import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { type RedisConnection, redisCall } from '../platform/redis/redis.ts';
import { inSpan } from '../platform/tracing/tracing.ts';
import type { DispatchOptions } from './dispatcher.ts';
import type { JobAdmissionRepository } from './job-admission-repository.ts';
import type { Job } from './job-list.ts';
import { queueFor } from './queue-names.ts';
import { type JobData, type Queues, replyChannelPrefix } from './queues.ts';

/**
 * Removes a job that was never taken. BullMQ would also remove a job that a worker has taken and that stalled: this worker may still run
 * it.
 */
const withdrawScript = `
if tonumber(redis.call('HGET', KEYS[1], 'ats') or 0) > 0 then return 0 end
if redis.call('ZREM', KEYS[2], ARGV[1]) + redis.call('LREM', KEYS[3], 1, ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
return 1`;

const lowestPriority = 1_000;
/** Lower than the priority of the first waiting job of every fairness key. */
const unawaitedPriority = 1;

export interface RedisJobQueueOptions {
  /** Fails fast. */
  readonly producer: RedisConnection;
  readonly queues: Queues;
  readonly admissions: JobAdmissionRepository;
  readonly largeBytes: number;
  /** A job may run until this time after queueing. */
  readonly jobLifeMs: number;
}

/** First writes the permission for a job to Postgres; Redis only gets its id. */
export class RedisJobQueue {
  readonly #options: RedisJobQueueOptions;
  /** For the completion messages of this process's jobs. It may have no subscriber. */
  readonly channel = `${replyChannelPrefix}${randomUUID()}`;

  constructor(options: RedisJobQueueOptions) {
    this.#options = options;
  }

  /** Resolves once the job is accepted. Throws UnavailableError. */
  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    const queue = await this.queueFor(options);
    const jobId = randomUUID();
    await this.admit(jobId, job, options);
    await this.add(queue, jobId, job, unawaitedPriority);
  }

  queueFor({ bytes = 0 }: DispatchOptions): Promise<Queue<JobData>> {
    return redisCall(() => this.#options.queues.get(queueFor(bytes, this.#options.largeBytes)));
  }

  /** Workers run no job without this row. */
  async admit(jobId: string, job: Job, { encryption = null }: DispatchOptions): Promise<void> {
    const { admissions, jobLifeMs } = this.#options;
    await admissions.insert(jobId, job, encryption, jobLifeMs / 1000);
  }

  /** Returns false if a worker has taken the job. Throws QueueUnavailableError. */
  async withdraw(queue: Queue<JobData>, jobId: string): Promise<boolean> {
    const keys = [jobId, 'prioritized', 'wait'].map((type) => queue.toKey(type));
    return (await redisCall(() => this.#options.producer.eval(withdrawScript, keys.length, ...keys, jobId))) === 1;
  }

  /** Jobs with a lower `priority` run first. */
  async add(queue: Queue<JobData>, jobId: string, job: Job, priority: number): Promise<void> {
    const options = { jobId, priority: Math.min(priority, lowestPriority) };
    // The name is only for people who inspect the queue.
    await inSpan('redis add job', { role: 'client', attributes: { 'db.system.name': 'redis' } }, () =>
      redisCall(() => queue.add(job.name, { replyTo: this.channel }, options)),
    );
  }
}
