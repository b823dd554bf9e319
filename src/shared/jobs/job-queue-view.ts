import type { Job as QueuedJob } from 'bullmq';
import { Value } from 'typebox/value';
import { redisCall } from '../platform/redis/redis.ts';
import { isUuid } from '../platform/schema/uuid.ts';
import type { JobAdmissionRepository } from './job-admission-repository.ts';
import { Job } from './job-list.ts';
import type { QueueMonitor, RedisState } from './queue-monitor.ts';
import { type QueueName, type QueueState, queueNames } from './queue-names.ts';
import type { JobData, Queues } from './queues.ts';

const jobStates = ['active', 'wait', 'prioritized', 'delayed', 'failed'] as const;
export type JobState = (typeof jobStates)[number];

/** Limits text from Redis, which other clients may have written. */
const shownCharacters = 200;

/** Name, times and fault come from Redis; update and stack come from the admission, and are null without one. */
export interface JobView {
  readonly id: string;
  readonly name: string;
  readonly state: JobState;
  readonly updateId: string | null;
  readonly stackId: string | null;
  readonly attempts: number;
  readonly stalls: number;
  readonly addedAt: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly fault: string | null;
  readonly canRetry: boolean;
}

export interface QueueView extends QueueState {
  readonly name: QueueName;
  readonly workers: number;
  readonly jobs: readonly JobView[];
}

export interface QueueOverview {
  readonly redis: RedisState;
  readonly queues: readonly QueueView[];
}

interface FoundQueue {
  readonly name: QueueName;
  readonly workers: number;
  readonly jobs: readonly { readonly queued: QueuedJob<JobData>; readonly state: JobState }[];
}

/** Jobs for which a call waited cannot be run again: their callers repeat the calls themselves. */
export class JobQueueView {
  readonly #queues: Queues;
  readonly #monitor: QueueMonitor;
  readonly #admissions: JobAdmissionRepository;

  constructor(queues: Queues, monitor: QueueMonitor, admissions: JobAdmissionRepository) {
    this.#queues = queues;
    this.#monitor = monitor;
    this.#admissions = admissions;
  }

  /** Returns the newest `limit` jobs of every state. Throws UnavailableError. */
  async overview(limit: number): Promise<QueueOverview> {
    await this.#monitor.poll();
    const found = await Promise.all(queueNames.map((name) => redisCall(() => this.#find(name, limit))));
    const ids = found.flatMap(({ jobs }) => jobs.flatMap(({ queued: { id = '' } }) => (isUuid(id) ? [id] : [])));
    const admitted = await this.#admissions.findJobs(ids);
    const shown = found.map(({ name, workers, jobs }) => ({
      ...this.#monitor.queueStates[name],
      name,
      workers,
      jobs: jobs.map(({ queued, state }) => showJob(queued, state, admitted.get(queued.id ?? ''))),
    }));
    return { redis: this.#monitor.redis, queues: shown };
  }

  /** Finds only a permanently failed job. `retry` is null if it may not be run again. Throws UnavailableError. */
  async findFailed(name: QueueName, id: string): Promise<{ readonly name: string; readonly retry: Job | null } | null> {
    const queued = await redisCall(async () => (await this.#queues.get(name)).getJob(id));
    if (!queued || (await redisCall(() => queued.getState())) !== 'failed') return null;
    const admitted = isUuid(id) ? (await this.#admissions.findJobs([id])).get(id) : undefined;
    return { name: textOf(queued.name), retry: retryOf(admitted) };
  }

  /** Returns whether there was such a permanently failed job. Throws UnavailableError. */
  async discard(name: QueueName, id: string): Promise<boolean> {
    const queued = await redisCall(async () => (await this.#queues.get(name)).getJob(id));
    if (!queued || (await redisCall(() => queued.getState())) !== 'failed') return false;
    await redisCall(() => queued.remove());
    return true;
  }

  async #find(name: QueueName, limit: number): Promise<FoundQueue> {
    const queue = await this.#queues.get(name);
    const [workers, ...jobs] = await Promise.all([
      queue.getWorkersCount(),
      ...jobStates.map(async (state) => {
        const found = await queue.getJobs([state], 0, limit - 1, state !== 'failed');
        // A job may be removed between the two commands of BullMQ.
        return found.flatMap((queued) => (queued ? [{ queued, state }] : []));
      }),
    ]);
    return { name, workers, jobs: jobs.flat() };
  }
}

function showJob(queued: QueuedJob<JobData>, state: JobState, admitted: unknown): JobView {
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
    canRetry: state === 'failed' && retryOf(admitted) !== null,
  };
}

/** Null if only the job's caller can repeat it, or if it is no longer known. */
function retryOf(admitted: unknown): Job | null {
  if (!Value.Check(Job, admitted)) return null;
  return admitted.name === 'compact-journal' || admitted.name === 'snapshot-journal' ? admitted : null;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, shownCharacters) : '';
}

function numberOf(value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) : 0;
}

function timeOf(ms: unknown): Date | null {
  const time = new Date(typeof ms === 'number' && ms > 0 ? ms : Number.NaN);
  return Number.isNaN(time.getTime()) ? null : time;
}
