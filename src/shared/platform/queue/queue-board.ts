import type { Job as QueuedJob } from 'bullmq';
import { Value } from 'typebox/value';
import { type Lane, type LaneState, lanes } from './lanes.ts';
import type { QueueMonitor, RedisState } from './queue-monitor.ts';
import { JobData, type Queues } from './queues.ts';
import { redisCall } from './redis.ts';

const shownStates = ['active', 'wait', 'prioritized', 'delayed', 'failed'] as const;
export type ShownState = (typeof shownStates)[number];

/** A job as people may see it: ids, times and the kind of its fault. */
export interface ShownJob {
  readonly id: string;
  readonly name: string;
  readonly state: ShownState;
  readonly updateId: string | null;
  readonly stackId: string | null;
  readonly attempts: number;
  readonly stalls: number;
  readonly addedAt: Date;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly fault: string | null;
}

export interface ShownLane extends LaneState {
  readonly lane: Lane;
  readonly workers: number;
  readonly jobs: readonly ShownJob[];
}

export interface QueueOverview {
  readonly redis: RedisState;
  readonly lanes: readonly ShownLane[];
}

/** The queues for people to look at. Nothing can be changed: a job's caller was told of its end and repeats the call itself. */
export class QueueBoard {
  readonly #queues: Queues;
  readonly #monitor: QueueMonitor;

  constructor(queues: Queues, monitor: QueueMonitor) {
    this.#queues = queues;
    this.#monitor = monitor;
  }

  /** Each lane with its newest `limit` jobs of every state. Throws UnavailableError. */
  async overview(limit: number): Promise<QueueOverview> {
    await this.#monitor.look();
    const shown = await Promise.all(lanes.map((lane) => redisCall(() => this.#show(lane, limit))));
    return { redis: this.#monitor.redis, lanes: shown };
  }

  async #show(lane: Lane, limit: number): Promise<ShownLane> {
    const queue = await this.#queues.get(lane);
    const [workers, ...jobs] = await Promise.all([
      queue.getWorkersCount(),
      ...shownStates.map(async (state) => {
        const found = await queue.getJobs([state], 0, limit - 1, state !== 'failed');
        // A job may go between the two questions that BullMQ asks.
        return found.flatMap((job) => (job ? [showJob(job, state)] : []));
      }),
    ]);
    return { lane, workers, ...this.#monitor.lanes[lane], jobs: jobs.flat() };
  }
}

function showJob(job: QueuedJob<JobData>, state: ShownState): ShownJob {
  const data = Value.Check(JobData, job.data) ? job.data.job : null;
  const fence = data && 'fence' in data ? data.fence : null;
  return {
    id: job.id ?? '',
    name: job.name,
    state,
    updateId: fence?.updateId ?? (data && 'updateId' in data ? data.updateId : null),
    stackId: fence?.stackId ?? (data && 'stackId' in data ? data.stackId : null),
    attempts: job.attemptsMade,
    stalls: job.stalledCounter,
    addedAt: new Date(job.timestamp),
    startedAt: job.processedOn ? new Date(job.processedOn) : null,
    endedAt: job.finishedOn ? new Date(job.finishedOn) : null,
    fault: job.failedReason || null,
  };
}
