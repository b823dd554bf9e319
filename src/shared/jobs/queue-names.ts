/** Two lanes, so that imports of hundreds of MB do not hold up small writes. */
export const lanes = ['small', 'large'] as const;
export type Lane = (typeof lanes)[number];

/** The lane of a body of this size. */
export function laneOf(bytes: number, largeBytes: number): Lane {
  return bytes >= largeBytes ? 'large' : 'small';
}

export interface LaneState {
  /** Jobs that wait for a worker, or for their next attempt. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs given up that are still kept to be looked at. */
  readonly failed: number;
  readonly oldestWaitingMs: number;
}

export type LaneStates = Readonly<Record<Lane, LaneState>>;

export const idleLane: LaneState = { waiting: 0, active: 0, failed: 0, oldestWaitingMs: 0 };
