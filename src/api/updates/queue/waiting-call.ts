import type { LostEntry } from '../../../shared/updates/update-queue-process-repository.ts';
import type { QueueEntryRow } from '../../../shared/updates/update-queue-repository.ts';

/**
 * Why a waiting call wakes up: it may be its turn, a newer run supersedes it, its time is over, its client is gone, or the process stops.
 */
export type Wake = 'turn' | 'superseded' | 'over' | 'gone' | 'draining';

/** A position in the queue of a stack, held by a call of this process. */
export interface QueueEntry {
  readonly id: string;
  readonly stackId: string;
  /** When the position was taken, by `performance.now()`. */
  readonly since: number;
}

/** A call that waits at its position. */
export interface WaitingCall extends QueueEntry {
  readonly organizationId: string;
  /** The entry of the call, to be restored if the database loses it. */
  readonly entry: LostEntry;
  /** The call sleeps until it is woken, and changes nothing meanwhile. */
  isAsleep: boolean;
  /** Another process has resumed the entry: the client has called again. */
  isElsewhere: boolean;
  /** It may be the call's turn, and the call has not checked yet. */
  isNext: boolean;
  isSuperseded: boolean;
  /** Webhooks were notified of the call's long wait. */
  isLateNotified: boolean;
  readonly alertSeconds: number;
  /** A limit defers the call: the database notifies of changes. */
  isLimited: boolean;
  /** A rule defers the call: before this time by `performance.now()`, its turn alone is no reason to check again. */
  deferredUntil: number;
  wake: () => void;
}

/** A call that begins to wait at an entry. */
export function waitingCall(
  { supersededBy, waitedSeconds, ...entry }: QueueEntryRow & LostEntry,
  { alertSeconds, organizationId }: Pick<WaitingCall, 'alertSeconds' | 'organizationId'>,
): WaitingCall {
  return {
    id: entry.id,
    organizationId,
    stackId: entry.stackId,
    since: performance.now() - waitedSeconds * 1000,
    entry,
    isAsleep: false,
    isElsewhere: false,
    // The stack may have been released before the entry was taken.
    isNext: true,
    isSuperseded: supersededBy !== null,
    isLateNotified: false,
    alertSeconds,
    isLimited: false,
    deferredUntil: 0,
    wake: () => {},
  };
}

/** The entry of the call, to be restored. */
export function lostEntry({ entry, isLateNotified, since }: WaitingCall) {
  return { ...entry, isLateNotified, waitedSeconds: (performance.now() - since) / 1000 };
}

/** Waits until the call is woken, for at most `ms`. */
export async function pause(call: WaitingCall, ms: number, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  call.wake = wake;
  const timer = setTimeout(wake, ms);
  gone.addEventListener('abort', wake, { once: true });
  call.isAsleep = true;
  await promise;
  call.isAsleep = false;
  clearTimeout(timer);
  gone.removeEventListener('abort', wake);
}
