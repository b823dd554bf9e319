import { type JobsOptions, type KeepJobs, Queue } from 'bullmq';
import { Type } from 'typebox';
import type { Logger } from '../platform/logger/logger.ts';
import type { RedisConnection } from '../platform/redis/redis.ts';
import type { QueueName } from './queue-names.ts';

export const queuePrefix = 'holdfast';
export const queueName = (lane: QueueName): string => `writes-${lane}`;

export const replyChannelPrefix = 'holdfast:done:';

/**
 * Job data: the channel on which the job's end is told. What is to be done stands in Postgres, under the job's id: whoever can write
 * to Redis has no say in it.
 */
export const JobData = Type.Object({ replyTo: Type.String({ pattern: `^${replyChannelPrefix}[0-9a-f-]{36}$` }) });
export type JobData = Type.Static<typeof JobData>;

/** A job's end, as told on the reply channel: a hint. */
export const Completion = Type.Object({
  jobId: Type.String(),
  result: Type.Union([Type.Literal('settled'), Type.Literal('failed')]),
});
export type Completion = Type.Static<typeof Completion>;

/** Faults are tried again after about 0.2, 0.4, 0.8 … s, each with a quarter of jitter. */
const jobAttempts = 8;
/** Kept for people to look at. */
export const keptFailures: KeepJobs = { age: 7 * 24 * 3600, count: 10_000 };
const jobOptions: JobsOptions = {
  backoff: { type: 'exponential', delay: 200, jitter: 0.25 },
  removeOnComplete: { age: 600, count: 1000 },
  removeOnFail: keptFailures,
  stackTraceLimit: 1,
};

/** The queues of a process, over one connection that is not theirs to close. */
export class Queues {
  readonly #connection: RedisConnection;
  readonly #logger: Logger;
  readonly #attempts: number | undefined;
  readonly #open = new Map<QueueName, Promise<Queue<JobData>>>();

  constructor(connection: RedisConnection, logger: Logger, options: { attempts?: number } = {}) {
    this.#connection = connection;
    this.#logger = logger;
    this.#attempts = options.attempts;
  }

  /** The lane's queue. Rejects, at once, when Redis is away; a queue that could not be opened is opened anew by the next call. */
  get(lane: QueueName): Promise<Queue<JobData>> {
    const open = this.#open.get(lane);
    if (open) return open;
    const opening = this.#openQueue(lane);
    this.#open.set(lane, opening);
    opening.catch(() => this.#open.delete(lane));
    return opening;
  }

  async close(): Promise<void> {
    const open = await Promise.allSettled(this.#open.values());
    await Promise.all(open.map((queue) => (queue.status === 'fulfilled' ? queue.value.close() : undefined)));
  }

  async #openQueue(lane: QueueName): Promise<Queue<JobData>> {
    const queue = new Queue<JobData>(queueName(lane), {
      connection: this.#connection,
      prefix: queuePrefix,
      defaultJobOptions: { ...jobOptions, attempts: this.#attempts ?? jobAttempts },
      skipWaitingForReady: true,
      streams: { events: { maxLen: 1000 } },
    });
    queue.on('error', (error) => this.#logger.debug({ lane, err: error }, 'queue'));
    try {
      // BullMQ asks Redis for its version once; a queue whose question failed never works again.
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      await queue.close().catch(() => {});
      throw error;
    }
  }
}
