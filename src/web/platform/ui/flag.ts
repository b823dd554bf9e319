import { useSyncExternalStore } from 'react';

/** The whole page shares the value, which may change at any time. */
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
