/** Imports of hundreds of MB must not delay small writes. */
export const queueNames = ['small', 'large'] as const;
export type QueueName = (typeof queueNames)[number];

export function queueFor(bytes: number, largeBytes: number): QueueName {
  return bytes >= largeBytes ? 'large' : 'small';
}

export interface QueueState {
  /** Also counts jobs that wait for their next attempt. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs that failed permanently, kept for inspection. */
  readonly failed: number;
  readonly oldestWaitingMs: number;
}

export type QueueStates = Readonly<Record<QueueName, QueueState>>;

export const idleQueue: QueueState = { waiting: 0, active: 0, failed: 0, oldestWaitingMs: 0 };
