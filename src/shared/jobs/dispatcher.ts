import { UnavailableError } from '../platform/errors/errors.ts';
import type { BodySeal } from '../platform/payloads/payload-store.ts';
import type { Job } from './definitions.ts';
import type { QueueStates } from './queue-names.ts';

export interface DispatchOptions {
  /** Size of the body handed over: decides the lane. */
  readonly bytes?: number;
  /** How the body handed over is sealed. */
  readonly seal?: BodySeal | null;
  /** Whose fair share of the workers the job counts to, e.g. the organization. */
  readonly share?: string;
  /** For work that the caller can do in another way: QueueAwayError at once when the queue cannot be asked any more. */
  readonly onlyWhileReachable?: boolean;
}

export interface DispatcherState {
  readonly waiting: number;
  readonly active: number;
  readonly oldestWaitingMs: number;
  readonly lanes: QueueStates;
}

/** The figures of all lanes together. */
export function sumQueues(lanes: QueueStates): DispatcherState {
  const each = Object.values(lanes);
  return {
    waiting: each.reduce((sum, lane) => sum + lane.waiting, 0),
    active: each.reduce((sum, lane) => sum + lane.active, 0),
    oldestWaitingMs: Math.max(...each.map((lane) => lane.oldestWaitingMs)),
    lanes,
  };
}

export function shuttingDown(): UnavailableError {
  return new UnavailableError('The server is shutting down; please retry', { retryAfterSeconds: 1 });
}

/** Hands jobs to workers, wherever these run. */
export interface JobDispatcher {
  /**
   * Runs the job and resolves once its effect is committed. Rejects with the typed refusal of the job, or with
   * UnavailableError when it failed, or its fate is not known within the wait (JobPendingError): then a repeat of the call is
   * safe.
   */
  run(job: Job, options?: DispatchOptions): Promise<void>;
  /** Sees that the job runs at some time; resolves once it is accepted. */
  enqueue(job: Job, options?: DispatchOptions): Promise<void>;
  state(): DispatcherState;
  /** Takes no more jobs and waits for the calls under way. */
  close(): Promise<void>;
}
