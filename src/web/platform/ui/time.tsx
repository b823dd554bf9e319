import { useSyncExternalStore } from 'react';
import { duration, relativeTime } from './relative-time.ts';

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const listeners = new Set<() => void>();
let now = new Date();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for the whole page, so that all times change together. */
function useNow(): Date {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      timer ??= setInterval(() => {
        now = new Date();
        for (const each of listeners) each();
      }, 10_000);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
    () => now,
  );
}

/** A relative time; the exact one is shown on hover. */
export function Time({ at }: { readonly at: string }) {
  const time = new Date(at);
  return (
    <time dateTime={at} title={exact.format(time)}>
      {relativeTime(time, useNow())}
    </time>
  );
}

/** How long something has lasted, as of now. */
export function Since({ at }: { readonly at: string }) {
  const time = new Date(at);
  return (
    <time dateTime={at} title={`since ${exact.format(time)}`}>
      {duration((useNow().getTime() - time.getTime()) / 1000)}
    </time>
  );
}
