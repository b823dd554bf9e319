import { type JobsOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { Type } from 'typebox';
import { Job } from './jobs.ts';

/** Two lanes, so that imports of hundreds of MB do not hold up small writes. */
export const lanes = ['small', 'large'] as const;
export type Lane = (typeof lanes)[number];

export const queuePrefix = 'holdfast';
export const queueName = (lane: Lane): string => `writes-${lane}`;

/** Job data: what to do, and the channel on which its end is told. Ids only; no payload, no secret. */
export const JobData = Type.Object({ job: Job, replyTo: Type.String() });
export type JobData = Type.Static<typeof JobData>;

/** A job's end, as told on the reply channel: a hint. */
export const Completion = Type.Object({
  jobId: Type.String(),
  result: Type.Union([Type.Literal('settled'), Type.Literal('failed')]),
});
export type Completion = Type.Static<typeof Completion>;

/** Faults are tried again after about 0.2, 0.4, 0.8 … s, each with a quarter of jitter. */
export const jobOptions: JobsOptions = {
  attempts: 8,
  backoff: { type: 'exponential', delay: 200, jitter: 0.25 },
  removeOnComplete: { age: 600, count: 1000 },
  // Kept for people to look at.
  removeOnFail: { age: 7 * 24 * 3600, count: 10_000 },
  stackTraceLimit: 3,
};

export function openQueue(lane: Lane, connection: Redis): Queue<JobData> {
  return new Queue<JobData>(queueName(lane), {
    connection,
    prefix: queuePrefix,
    defaultJobOptions: jobOptions,
    skipWaitingForReady: true,
    streams: { events: { maxLen: 1000 } },
  });
}
