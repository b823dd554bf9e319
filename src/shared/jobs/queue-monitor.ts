import type { Logger } from '../platform/logger/logger.ts';
import { checkWrites, type RedisConnection, readMemory, redisCall } from '../platform/redis/redis.ts';
import { idleQueue, type QueueName, type QueueState, type QueueStates, queueNames } from './queue-names.ts';
import type { Queues } from './queues.ts';

export interface RedisState {
  readonly up: boolean;
  /** Measured by the last poll; 0 while Redis is down. */
  readonly roundTripMs: number;
  readonly memoryBytes: number;
  /** 0 for no limit. */
  readonly memoryLimitBytes: number;
}

const pollMs = 2_000;
const redisAway: RedisState = { up: false, roundTripMs: 0, memoryBytes: 0, memoryLimitBytes: 0 };
/** Prioritized jobs are not ordered by age. The oldest of this many is a good estimate. */
const sampledJobs = 20;

/** Polls queues and Redis at intervals, so that reads of their state never wait. */
export class QueueMonitor {
  readonly #producer: RedisConnection;
  readonly #queues: Queues;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #queueStates: QueueStates = { small: idleQueue, large: idleQueue };
  #redis: RedisState;
  #polling: Promise<void> | null = null;

  constructor(producer: RedisConnection, queues: Queues, logger: Logger) {
    this.#producer = producer;
    this.#queues = queues;
    this.#logger = logger;
    this.#redis = { ...redisAway, up: producer.status === 'ready' };
    this.#timer = setInterval(() => void this.poll(), pollMs);
    this.#timer.unref();
    void this.poll();
  }

  /** As of the last successful poll. */
  get queueStates(): QueueStates {
    return this.#queueStates;
  }

  get redis(): RedisState {
    return this.#redis;
  }

  /** Never rejects. */
  async poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = null;
    });
    await this.#polling;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#polling;
  }

  async #poll(): Promise<void> {
    try {
      const startedAt = performance.now();
      const [servers] = await redisCall(() => Promise.all([readMemory(this.#producer), checkWrites(this.#producer)]));
      this.#redis = {
        up: true,
        roundTripMs: performance.now() - startedAt,
        ...fullest(servers),
      };
      const [small, large] = await Promise.all(queueNames.map((name) => this.#pollQueue(name)));
      this.#queueStates = { small: small as QueueState, large: large as QueueState };
    } catch (error) {
      this.#redis = redisAway;
      this.#logger.debug({ err: error }, 'queues could not be polled');
    }
  }

  async #pollQueue(name: QueueName): Promise<QueueState> {
    const queue = await this.#queues.get(name);
    const counts = await queue.getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed');
    const count = (state: string): number => counts[state] ?? 0;
    const waiting = count('wait') + count('prioritized') + count('delayed');
    const oldest =
      waiting === 0 ? [] : await queue.getJobs(['wait', 'prioritized', 'delayed'], 0, sampledJobs - 1, true);
    // A job may be removed between the two commands.
    const since = oldest.flatMap((job) => (job ? [job.timestamp] : []));
    return {
      waiting,
      active: count('active'),
      failed: count('failed'),
      oldestWaitingMs: since.length === 0 ? 0 : Math.max(0, Date.now() - Math.min(...since)),
    };
  }
}

/** Takes the INFO of each master. A queue and all budgets are on one, so the fullest one counts. */
export function fullest(infos: readonly string[]): Pick<RedisState, 'memoryBytes' | 'memoryLimitBytes'> {
  const servers = infos.map((info) => {
    const numberOf = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
    return { memoryBytes: numberOf('used_memory'), memoryLimitBytes: numberOf('maxmemory') };
  });
  const share = ({ memoryBytes, memoryLimitBytes }: (typeof servers)[number]): number =>
    memoryLimitBytes === 0 ? 0 : memoryBytes / memoryLimitBytes;
  const [first] = servers.toSorted((one, other) => share(other) - share(one) || other.memoryBytes - one.memoryBytes);
  return first ?? { memoryBytes: 0, memoryLimitBytes: 0 };
}
