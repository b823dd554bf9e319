import { Cron } from 'croner';
import { type Static, Type } from 'typebox';
import { InvalidRequestError } from '../../platform/errors/errors.ts';

const minuteMs = 60_000;
/** Windows that follow each other without a gap are one; beyond this many, the end is not looked for. */
const maxJoined = 1_000;

/** Begins at each time that the cron expression names. */
export const FreezeWindow = Type.Object(
  {
    /** Minute, hour, day, month and day of the week. */
    cron: Type.String({ maxLength: 200 }),
    /** As in Europe/Berlin. */
    timeZone: Type.String({ minLength: 1, maxLength: 60 }),
    /** How long it lasts. */
    minutes: Type.Integer({ minimum: 1, maximum: 31 * 24 * 60 }),
  },
  { additionalProperties: false },
);
export type FreezeWindow = Static<typeof FreezeWindow>;

/** Throws InvalidRequestError if the end or a window cannot be understood. */
export function checkFreeze({ until, windows = [] }: { until?: string; windows?: readonly FreezeWindow[] }): void {
  // The format allows a leap second.
  if (until !== undefined && Number.isNaN(Date.parse(until)))
    throw new InvalidRequestError(`There is no time ${JSON.stringify(until)}`);
  for (const window of windows) {
    const shown = `${JSON.stringify(window.cron)} in ${JSON.stringify(window.timeZone)}`;
    let next: Date | null;
    try {
      next = toCron(window).nextRun();
    } catch (cause) {
      throw new InvalidRequestError(
        `The window ${shown} is not valid: five fields of cron (minute, hour, day, month, day of week) and a time zone such as Europe/Berlin`,
        { cause },
      );
    }
    if (next === null) throw new InvalidRequestError(`The window ${shown} never begins`);
  }
}

/** The end of the window that is open; null if none is. */
export function endOfWindow(window: FreezeWindow, now: Date): Date | null {
  const cron = toCron(window);
  const durationMs = window.minutes * minuteMs;
  let begin = cron.nextRun(new Date(now.getTime() - durationMs));
  if (begin === null || begin > now) return null;
  let end = new Date(begin.getTime() + durationMs);
  for (let joined = 0; joined < maxJoined; joined++) {
    begin = cron.nextRun(begin);
    if (begin === null || begin > end) break;
    end = new Date(begin.getTime() + durationMs);
  }
  return end;
}

/** A time for which windows are open. */
export interface WindowTimes {
  readonly from: Date;
  readonly until: Date;
}

/** The next times that begin after `now`, of all windows, the earliest first. Windows that meet are not joined. */
export function nextWindows(windows: readonly FreezeWindow[], now: Date, most: number): WindowTimes[] {
  return windows
    .flatMap((window) =>
      toCron(window)
        .nextRuns(most, now)
        .map((from) => ({ from, until: new Date(from.getTime() + window.minutes * minuteMs) })),
    )
    .sort((a, b) => a.from.getTime() - b.from.getTime())
    .slice(0, most);
}

function toCron({ cron, timeZone }: FreezeWindow): Cron {
  if (!/^\S+( \S+){4}$/.test(cron)) throw new TypeError('not five fields');
  return new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });
}
