import type { Job as QueuedJob } from 'bullmq';
import { Value } from 'typebox/value';
import { redisCall } from '../platform/redis/redis.ts';
import type { AdmissionRepository } from './admission-repository.ts';
import { Job } from './definitions.ts';
import type { QueueMonitor, RedisState } from './queue-monitor.ts';
import { lanes, type QueueName, type QueueState } from './queue-names.ts';
import type { JobData, Queues } from './queues.ts';

const shownStates = ['active', 'wait', 'prioritized', 'delayed', 'failed'] as const;
export type ShownState = (typeof shownStates)[number];

/** Of what a stranger may have written to Redis, no more than this is shown. */
const shownCharacters = 200;
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A job as people may see it: ids, times and the kind of its fault. Name, times and fault are what Redis says; update and stack come from
 * its admission, and are null for a job that has none.
 */
export interface ShownJob {
  readonly id: string;
  readonly name: string;
  readonly state: ShownState;
  readonly updateId: string | null;
  readonly stackId: string | null;
  readonly attempts: number;
  readonly stalls: number;
  readonly addedAt: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly fault: string | null;
}

export interface ShownQueue extends QueueState {
  readonly lane: QueueName;
  readonly workers: number;
  readonly jobs: readonly ShownJob[];
}

export interface QueueOverview {
  readonly redis: RedisState;
  readonly lanes: readonly ShownQueue[];
}

interface FoundQueue {
  readonly lane: QueueName;
  readonly workers: number;
  readonly jobs: readonly { readonly queued: QueuedJob<JobData>; readonly state: ShownState }[];
}

/** The queues for people to look at. Nothing can be changed: a job's caller was told of its end and repeats the call itself. */
export class QueueBoard {
  readonly #queues: Queues;
  readonly #monitor: QueueMonitor;
  readonly #admissions: AdmissionRepository;

  constructor(queues: Queues, monitor: QueueMonitor, admissions: AdmissionRepository) {
    this.#queues = queues;
    this.#monitor = monitor;
    this.#admissions = admissions;
  }

  /** Each lane with its newest `limit` jobs of every state. Throws UnavailableError. */
  async overview(limit: number): Promise<QueueOverview> {
    await this.#monitor.look();
    const found = await Promise.all(lanes.map((lane) => redisCall(() => this.#find(lane, limit))));
    const ids = found.flatMap(({ jobs }) =>
      jobs.flatMap(({ queued: { id = '' } }) => (idPattern.test(id) ? [id] : [])),
    );
    const admitted = await this.#admissions.findJobs(ids);
    const shown = found.map(({ lane, workers, jobs }) => ({
      ...this.#monitor.lanes[lane],
      lane,
      workers,
      jobs: jobs.map(({ queued, state }) => showJob(queued, state, admitted.get(queued.id ?? ''))),
    }));
    return { redis: this.#monitor.redis, lanes: shown };
  }

  async #find(lane: QueueName, limit: number): Promise<FoundQueue> {
    const queue = await this.#queues.get(lane);
    const [workers, ...jobs] = await Promise.all([
      queue.getWorkersCount(),
      ...shownStates.map(async (state) => {
        const found = await queue.getJobs([state], 0, limit - 1, state !== 'failed');
        // A job may go between the two questions that BullMQ asks.
        return found.flatMap((queued) => (queued ? [{ queued, state }] : []));
      }),
    ]);
    return { lane, workers, jobs: jobs.flat() };
  }
}

function showJob(queued: QueuedJob<JobData>, state: ShownState, admitted: unknown): ShownJob {
  const job = Value.Check(Job, admitted) ? admitted : null;
  const fence = job && 'fence' in job ? job.fence : null;
  return {
    id: textOf(queued.id),
    name: textOf(queued.name),
    state,
    updateId: fence?.updateId ?? (job && 'updateId' in job ? job.updateId : null),
    stackId: fence?.stackId ?? (job && 'stackId' in job ? job.stackId : null),
    attempts: numberOf(queued.attemptsMade),
    stalls: numberOf(queued.stalledCounter),
    addedAt: timeOf(queued.timestamp),
    startedAt: timeOf(queued.processedOn),
    endedAt: timeOf(queued.finishedOn),
    fault: textOf(queued.failedReason) || null,
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, shownCharacters) : '';
}

function numberOf(value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) : 0;
}

/** Null for what is no time. */
function timeOf(ms: unknown): Date | null {
  const time = new Date(typeof ms === 'number' && ms > 0 ? ms : Number.NaN);
  return Number.isNaN(time.getTime()) ? null : time;
}
