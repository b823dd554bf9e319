import { UnavailableError } from '../platform/errors/errors.ts';
import type { BodyEncryption } from '../platform/payloads/payload-store.ts';
import type { Job } from './job-list.ts';
import type { QueueStates } from './queue-names.ts';

export interface DispatchOptions {
  /** Size of the body in the payload store. Selects the queue. */
  readonly bytes?: number;
  /** Encrypts the body in the payload store. */
  readonly encryption?: BodyEncryption | null;
  /** The job uses the workers' share of this owner, e.g. of the organization. */
  readonly fairnessKey?: string;
  /** For optional jobs: throws QueueUnavailableError once the queue is unreachable. */
  readonly onlyWhileReachable?: boolean;
}

export interface DispatcherState {
  readonly waiting: number;
  readonly active: number;
  readonly oldestWaitingMs: number;
  readonly queues: QueueStates;
}

export function sumQueues(queues: QueueStates): DispatcherState {
  const each = Object.values(queues);
  return {
    waiting: each.reduce((sum, queue) => sum + queue.waiting, 0),
    active: each.reduce((sum, queue) => sum + queue.active, 0),
    oldestWaitingMs: Math.max(...each.map((queue) => queue.oldestWaitingMs)),
    queues,
  };
}

export function shuttingDown(): UnavailableError {
  return new UnavailableError('The server is shutting down; please retry', { retryAfterSeconds: 1 });
}

export interface JobDispatcher {
  /**
   * Resolves once the effect is committed. Rejects with the typed error of a rejected job, or with UnavailableError if the job failed, did
   * not begin within the wait (JobWithdrawnError), or did not end within it (JobPendingError). The call may then be repeated safely.
   */
  run(job: Job, options?: DispatchOptions): Promise<void>;
  /** Resolves once the job is accepted. */
  enqueue(job: Job, options?: DispatchOptions): Promise<void>;
  state(): DispatcherState;
  /** Accepts no more jobs and waits for running calls. */
  close(): Promise<void>;
}
