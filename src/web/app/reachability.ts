import { useSyncExternalStore } from 'react';

let isReached = true;
const listeners = new Set<() => void>();

/** Says whether the server has answered the last time. */
export function noteReached(now: boolean): void {
  if (now === isReached) return;
  isReached = now;
  for (const listener of listeners) listener();
}

/** Whether the server answers, as far as the page has asked. */
export function useIsReached(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isReached,
  );
}
