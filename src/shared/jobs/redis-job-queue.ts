import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { redisCall } from '../platform/redis/redis.ts';
import type { AdmissionRepository } from './admission-repository.ts';
import type { Job } from './definitions.ts';
import type { DispatchOptions } from './dispatcher.ts';
import { queueFor } from './queue-names.ts';
import { type JobData, type Queues, replyChannelPrefix } from './queues.ts';

const lowestPriority = 1_000;
/** Behind the first job of everyone that waits. */
const unawaitedPriority = 1;

export interface RedisJobQueueOptions {
  readonly queues: Queues;
  readonly admissions: AdmissionRepository;
  /** Bodies from this size on go to the large lane. */
  readonly largeBytes: number;
  /** How long a job may be run, from when it is queued. */
  readonly jobLifeMs: number;
}

/** Queues jobs for worker processes: what a job may do is written to Postgres first, Redis gets its id. */
export class RedisJobQueue {
  readonly #options: RedisJobQueueOptions;
  /** Where the ends of this process's jobs are told, whether or not anyone listens. */
  readonly channel = `${replyChannelPrefix}${randomUUID()}`;

  constructor(options: RedisJobQueueOptions) {
    this.#options = options;
  }

  /** Sees that the job runs at some time; resolves once it is accepted. Throws UnavailableError. */
  async enqueue(job: Job, options: DispatchOptions = {}): Promise<void> {
    const queue = await this.queueFor(options);
    const jobId = randomUUID();
    await this.admit(jobId, job, options);
    await this.add(queue, jobId, job, unawaitedPriority);
  }

  queueFor({ bytes = 0 }: DispatchOptions): Promise<Queue<JobData>> {
    return redisCall(() => this.#options.queues.get(queueFor(bytes, this.#options.largeBytes)));
  }

  /** Throws the fault of Postgres: without this row no worker does anything. */
  async admit(jobId: string, job: Job, { seal = null }: DispatchOptions): Promise<void> {
    const { admissions, jobLifeMs } = this.#options;
    await admissions.insert(jobId, job, seal, jobLifeMs / 1000);
  }

  /** Low priorities go first. */
  async add(queue: Queue<JobData>, jobId: string, job: Job, priority: number): Promise<void> {
    const options = { jobId, priority: Math.min(priority, lowestPriority) };
    // The name is for people who look at the queue.
    await redisCall(() => queue.add(job.name, { replyTo: this.channel }, options));
  }
}
