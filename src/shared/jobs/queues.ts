import { type JobsOptions, type KeepJobs, Queue } from 'bullmq';
import { Type } from 'typebox';
import type { Logger } from '../platform/logger/logger.ts';
import { isCluster, type RedisConnection } from '../platform/redis/redis.ts';
import type { QueueName } from './queue-names.ts';

export const queuePrefix = 'holdfast';

/** In a cluster, all keys of a queue must be in one slot; the other name is older than clusters. */
export function redisQueueName(name: QueueName, redis: RedisConnection): string {
  return isCluster(redis) ? `{writes-${name}}` : `writes-${name}`;
}

export const replyChannelPrefix = 'holdfast:done:';

/** The job itself is in Postgres under its id, so that write access to Redis does not suffice to change it. */
export const JobData = Type.Object({ replyTo: Type.String({ pattern: `^${replyChannelPrefix}[0-9a-f-]{36}$` }) });
export type JobData = Type.Static<typeof JobData>;

/** The message is only a hint. */
export const JobCompletion = Type.Object({
  jobId: Type.String(),
  result: Type.Union([Type.Literal('settled'), Type.Literal('failed')]),
});
export type JobCompletion = Type.Static<typeof JobCompletion>;

/** Faults are retried after about 0.2, 0.4, 0.8 … s, each with 25 % jitter. */
const jobAttempts = 8;
/** Failed jobs are kept for inspection. */
export const keptFailures: KeepJobs = { age: 7 * 24 * 3600, count: 10_000 };
const jobOptions: JobsOptions = {
  backoff: { type: 'exponential', delay: 200, jitter: 0.25 },
  removeOnComplete: { age: 600, count: 1000 },
  removeOnFail: keptFailures,
  stackTraceLimit: 1,
};

/** The shared connection is not closed here. */
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

  /** Rejects at once if Redis is down; the next call tries again. */
  get(name: QueueName): Promise<Queue<JobData>> {
    const open = this.#open.get(name);
    if (open) return open;
    const opening = this.#openQueue(name);
    this.#open.set(name, opening);
    opening.catch(() => this.#open.delete(name));
    return opening;
  }

  async close(): Promise<void> {
    const open = await Promise.allSettled(this.#open.values());
    await Promise.all(open.map((queue) => (queue.status === 'fulfilled' ? queue.value.close() : undefined)));
  }

  async #openQueue(name: QueueName): Promise<Queue<JobData>> {
    const queue = new Queue<JobData>(redisQueueName(name, this.#connection), {
      connection: this.#connection,
      prefix: queuePrefix,
      defaultJobOptions: { ...jobOptions, attempts: this.#attempts ?? jobAttempts },
      skipWaitingForReady: true,
      streams: { events: { maxLen: 1000 } },
    });
    queue.on('error', (error) => this.#logger.debug({ queue: name, err: error }, 'queue reported an error'));
    try {
      // BullMQ asks Redis for its version only once. If this fails, the queue never works.
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      await queue.close().catch(() => {});
      throw error;
    }
  }
}
