import type { Logger } from '../platform/logger/logger.ts';
import { type RedisConnection, redisCall } from '../platform/redis/redis.ts';
import { idleQueue, lanes, type QueueName, type QueueState, type QueueStates } from './queue-names.ts';
import type { Queues } from './queues.ts';

export interface RedisState {
  readonly up: boolean;
  /** Round trip of the last look; 0 while Redis is away. */
  readonly roundTripMs: number;
  readonly memoryBytes: number;
  /** 0: no limit. */
  readonly memoryLimitBytes: number;
}

const everyMs = 2_000;
const redisAway: RedisState = { up: false, roundTripMs: 0, memoryBytes: 0, memoryLimitBytes: 0 };
/** Jobs with a priority are not in order of age; the oldest of so many is near enough. */
const looksAt = 20;

/** Looks at queues and Redis at intervals, so that whoever asks for figures never waits. */
export class QueueMonitor {
  readonly #producer: RedisConnection;
  readonly #queues: Queues;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #lanes: QueueStates = { small: idleQueue, large: idleQueue };
  #redis: RedisState;
  #looking: Promise<void> | null = null;

  constructor(producer: RedisConnection, queues: Queues, logger: Logger) {
    this.#producer = producer;
    this.#queues = queues;
    this.#logger = logger;
    this.#redis = { ...redisAway, up: producer.status === 'ready' };
    this.#timer = setInterval(() => void this.look(), everyMs);
    this.#timer.unref();
    void this.look();
  }

  /** As of the last look; while Redis is away, the last that was seen. */
  get lanes(): QueueStates {
    return this.#lanes;
  }

  get redis(): RedisState {
    return this.#redis;
  }

  /** Looks now; never rejects. */
  async look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    try {
      const startedAt = performance.now();
      const memory = await redisCall(() => this.#producer.info('memory'));
      const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
      this.#redis = {
        up: true,
        roundTripMs: performance.now() - startedAt,
        memoryBytes: figure('used_memory'),
        memoryLimitBytes: figure('maxmemory'),
      };
      const [small, large] = await Promise.all(lanes.map((lane) => this.#lookAt(lane)));
      this.#lanes = { small: small as QueueState, large: large as QueueState };
    } catch (error) {
      this.#redis = redisAway;
      this.#logger.debug({ err: error }, 'queues could not be polled');
    }
  }

  async #lookAt(lane: QueueName): Promise<QueueState> {
    const queue = await this.#queues.get(lane);
    const counts = await queue.getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed');
    const count = (state: string): number => counts[state] ?? 0;
    const waiting = count('wait') + count('prioritized') + count('delayed');
    const oldest = waiting === 0 ? [] : await queue.getJobs(['wait', 'prioritized', 'delayed'], 0, looksAt - 1, true);
    // A job may go between the two questions.
    const since = oldest.flatMap((job) => (job ? [job.timestamp] : []));
    return {
      waiting,
      active: count('active'),
      failed: count('failed'),
      oldestWaitingMs: since.length === 0 ? 0 : Math.max(0, Date.now() - Math.min(...since)),
    };
  }
}
