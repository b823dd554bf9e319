import { useSyncExternalStore } from 'react';
import { followClock, readClock } from './clock.ts';
import { duration, relativeTime } from './relative-time.ts';
import { timeTexts } from './texts.tsx';
import { exactTime, shortTime, useTimeDisplay } from './time-display.ts';

function useNow(): Date {
  return useSyncExternalStore(followClock, readClock);
}

/** A time as the user wants to see it. On hover, it is exact, in the reader's zone and in UTC. */
export function Time({ at }: { readonly at: string }) {
  const time = new Date(at);
  const now = useNow();
  const display = useTimeDisplay();
  return (
    <time dateTime={at} title={exactTime(time)}>
      {display === 'relative' ? relativeTime(time, now) : shortTime(time, display, now)}
    </time>
  );
}

const isoTime = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/**
 * A text of the server, with its times in the format of the user. The times are never relative, because the surrounding text would not fit.
 */
export function TextWithTimes({ text }: { readonly text: string }) {
  const display = useTimeDisplay();
  const now = useNow();
  return text.split(isoTime).map((part, at) => {
    if (at % 2 === 0) return part;
    const time = new Date(part);
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: the position identifies a part.
      <time key={at} dateTime={part} title={exactTime(time)}>
        {shortTime(time, display === 'relative' ? 'local' : display, now)}
      </time>
    );
  });
}

/** How long something has lasted, as of now. */
export function Since({ at }: { readonly at: string }) {
  const time = new Date(at);
  return (
    <time dateTime={at} title={timeTexts.since(exactTime(time))}>
      {duration((useNow().getTime() - time.getTime()) / 1000)}
    </time>
  );
}
