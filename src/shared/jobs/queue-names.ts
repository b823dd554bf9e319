/** Two lanes, so that imports of hundreds of MB do not hold up small writes. */
export const lanes = ['small', 'large'] as const;
export type QueueName = (typeof lanes)[number];

/** The lane of a body of this size. */
export function queueFor(bytes: number, largeBytes: number): QueueName {
  return bytes >= largeBytes ? 'large' : 'small';
}

export interface QueueState {
  /** Jobs that wait for a worker, or for their next attempt. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs given up that are still kept to be looked at. */
  readonly failed: number;
  readonly oldestWaitingMs: number;
}

export type QueueStates = Readonly<Record<QueueName, QueueState>>;

export const idleQueue: QueueState = { waiting: 0, active: 0, failed: 0, oldestWaitingMs: 0 };
