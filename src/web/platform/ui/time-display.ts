import { useSyncExternalStore } from 'react';
import { dateLocale } from './locale.ts';
import { timeDisplayTexts } from './texts.tsx';

export const timeDisplays = ['relative', 'local', 'utc'] as const;
export type TimeDisplay = (typeof timeDisplays)[number];
export const timeDisplayNames = timeDisplayTexts satisfies Record<TimeDisplay, string>;

const key = 'holdfast.times';
const listeners = new Set<() => void>();
let chosen = read();

function read(): TimeDisplay {
  try {
    const stored = localStorage.getItem(key);
    return timeDisplays.find((each) => each === stored) ?? 'relative';
  } catch {
    return 'relative';
  }
}

/** Chooses how times are shown, for this browser. */
export function chooseTimeDisplay(display: TimeDisplay): void {
  chosen = display;
  try {
    localStorage.setItem(key, display);
  } catch {
    // The choice then lasts until the user leaves the page.
  }
  for (const listener of listeners) listener();
}

export function useTimeDisplay(): TimeDisplay {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      // Another tab changed it.
      const onStorage = (event: StorageEvent): void => {
        if (event.key !== key) return;
        chosen = read();
        listener();
      };
      addEventListener('storage', onStorage);
      return () => {
        listeners.delete(listener);
        removeEventListener('storage', onStorage);
      };
    },
    () => chosen,
  );
}

/** Undefined: the reader's own zone. */
export function zoneOf(display: TimeDisplay): 'UTC' | undefined {
  return display === 'utc' ? 'UTC' : undefined;
}

function format(timeZone: 'UTC' | undefined) {
  const zone = timeZone === undefined ? {} : { timeZone };
  return {
    exact: new Intl.DateTimeFormat(dateLocale, { dateStyle: 'medium', timeStyle: 'long', ...zone }),
    short: new Intl.DateTimeFormat(dateLocale, {
      month: 'short',
      day: 'numeric',
      hour: 'numeric',
      minute: '2-digit',
      ...zone,
    }),
    day: new Intl.DateTimeFormat(dateLocale, { dateStyle: 'medium', ...zone }),
    clock: new Intl.DateTimeFormat(dateLocale, {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      ...zone,
    }),
  };
}
const formats = { local: format(undefined), utc: format('UTC') };

const dayMs = 86_400_000;
const maxDays = 180;

/** A time that fits into a row: within the last and next months without the year, otherwise only the day. */
export function shortTime(time: Date, display: Exclude<TimeDisplay, 'relative'>, now: Date): string {
  const isNear = Math.abs(time.getTime() - now.getTime()) < maxDays * dayMs;
  return formats[display][isNear ? 'short' : 'day'].format(time);
}

/** A time of day, to the second. */
export function clockTime(time: Date, display: TimeDisplay): string {
  return formats[zoneOf(display) === undefined ? 'local' : 'utc'].clock.format(time);
}

/** A time to the second, in the reader's zone and in UTC. */
export function exactTime(time: Date): string {
  const [local, utc] = [formats.local.exact.format(time), formats.utc.exact.format(time)];
  return local === utc ? utc : `${local} (${utc})`;
}
