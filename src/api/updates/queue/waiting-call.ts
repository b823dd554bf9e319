/** Why a waiting call wakes up: it may be its turn, a newer run supersedes it, its time is over, its client is gone, or the process stops. */
export type Wake = 'turn' | 'superseded' | 'over' | 'gone' | 'draining';

/** A position in the queue of a stack at which a call of this process waits. */
export interface QueueEntry {
  readonly id: string;
  readonly stackId: string;
  /** When it was taken, by `performance.now()`. */
  readonly since: number;
}

/** A call that waits at its position. */
export interface WaitingCall extends QueueEntry {
  /** It may be its turn, and it has not checked yet. */
  isNext: boolean;
  isSuperseded: boolean;
  /** Webhooks were notified of its long wait. */
  isLateNotified: boolean;
  readonly alertSeconds: number;
  /** A limit defers it: the database notifies of changes. */
  isLimited: boolean;
  /** A rule defers it: before this time by `performance.now()`, its turn alone is no reason to check again. */
  deferredUntil: number;
  wake: () => void;
}

/** Waits until the call is woken, for at most `ms`. */
export async function pause(call: WaitingCall, ms: number, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  call.wake = wake;
  const timer = setTimeout(wake, ms);
  gone.addEventListener('abort', wake, { once: true });
  await promise;
  clearTimeout(timer);
  gone.removeEventListener('abort', wake);
}
