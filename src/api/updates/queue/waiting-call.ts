import type { LostEntry } from '../../../shared/updates/update-queue-process-repository.ts';
import type { QueueEntryRow } from '../../../shared/updates/update-queue-repository.ts';

export type Wake = 'turn' | 'superseded' | 'over' | 'gone' | 'draining';

export interface QueueEntry {
  readonly id: string;
  readonly stackId: string;
  /** When the position was taken, by `performance.now()`. */
  readonly since: number;
}

export interface WaitingCall extends QueueEntry {
  readonly organizationId: string;
  /** The entry to be restored if the database loses it. */
  readonly entry: LostEntry;
  /** The call changes nothing until it is woken. */
  isAsleep: boolean;
  /** The client has called again, and another process holds the call. */
  isElsewhere: boolean;
  /** It may be the call's turn, and the call has not checked yet. */
  isNext: boolean;
  isSuperseded: boolean;
  isLateNotified: boolean;
  readonly alertSeconds: number;
  /** A limit defers the call: the database notifies of changes. */
  isLimited: boolean;
  /** A rule defers the call: before this time by `performance.now()`, its turn alone is no reason to check again. */
  deferredUntil: number;
  wake: () => void;
}

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

export function lostEntry({ entry, isLateNotified, since }: WaitingCall) {
  return { ...entry, isLateNotified, waitedSeconds: (performance.now() - since) / 1000 };
}

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
