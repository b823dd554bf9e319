import { useSyncExternalStore } from 'react';

/** A value shared by the whole page that may change at any time. */
export function createFlag(initial: boolean) {
  let value = initial;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    set: (now: boolean): void => {
      if (now === value) return;
      value = now;
      for (const listener of listeners) listener();
    },
    use: (): boolean => useSyncExternalStore(subscribe, () => value),
  };
}
