import { Cron } from 'croner';
import { LRUCache } from 'lru-cache';
import { type Static, Type } from 'typebox';
import { InvalidRequestError } from '../../platform/errors/errors.ts';

const minuteMs = 60_000;
/** Maximum adjacent windows that are joined, so that finding the end takes a few ms. */
const maxJoined = 32;

/** A window begins at each time of the cron expression. */
export const FreezeWindow = Type.Object(
  {
    /** Minute, hour, day, month and day of the week. */
    cron: Type.String({ maxLength: 200 }),
    /** For example Europe/Berlin. */
    timeZone: Type.String({ minLength: 1, maxLength: 60 }),
    minutes: Type.Integer({ minimum: 1, maximum: 31 * 24 * 60 }),
  },
  { additionalProperties: false },
);
export type FreezeWindow = Static<typeof FreezeWindow>;

/** Throws InvalidRequestError if the end or a window is invalid, or if a window hardly ever closes. */
export function checkFreeze({ until, windows = [] }: { until?: string; windows?: readonly FreezeWindow[] }): void {
  // The format allows a leap second.
  if (until !== undefined && Number.isNaN(Date.parse(until)))
    throw new InvalidRequestError(`${JSON.stringify(until)} is not a time`);
  for (const window of windows) {
    const shown = `${JSON.stringify(window.cron)} in ${JSON.stringify(window.timeZone)}`;
    let next: Date | null;
    let isJoined: boolean;
    try {
      const schedule = scheduleOf(window);
      next = schedule.cron.nextRun();
      isJoined = next !== null && schedule.endOfRow(next).isCut;
    } catch (cause) {
      throw new InvalidRequestError(
        `The window ${shown} is not valid: five fields of cron (minute, hour, day, month, day of week) and a time zone such as Europe/Berlin`,
        { cause },
      );
    }
    if (next === null) throw new InvalidRequestError(`The window ${shown} never begins`);
    if (isJoined)
      throw new InvalidRequestError(
        `The window ${shown} begins again before its ${window.minutes} minutes are over, more than ${maxJoined} times in a row: let it begin once and last longer, or leave out the windows if the freeze should last until thawed`,
      );
  }
}

export function endOfWindow(window: FreezeWindow, now: Date): Date | null {
  return scheduleOf(window).endAt(now);
}

export interface WindowTimes {
  readonly from: Date;
  readonly until: Date;
}

/** Earliest first. Adjacent windows are not joined. */
export function nextWindows(windows: readonly FreezeWindow[], now: Date, most: number): WindowTimes[] {
  return windows
    .flatMap((window) => scheduleOf(window).next(now, most))
    .sort((a, b) => a.from.getTime() - b.from.getTime())
    .slice(0, most);
}

/** All stacks of an organization use the same windows. */
const schedules = new LRUCache<string, Schedule>({ max: 5_000 });

function scheduleOf(window: FreezeWindow): Schedule {
  const key = `${window.minutes} ${window.timeZone} ${window.cron}`;
  let schedule = schedules.get(key);
  if (!schedule) {
    schedule = new Schedule(window);
    schedules.set(key, schedule);
  }
  return schedule;
}

/** A result is valid, and kept, until the window next begins or ends. */
class Schedule {
  readonly cron: Cron;
  readonly #durationMs: number;
  #open: { readonly from: number; readonly until: number; readonly end: Date | null } | undefined;
  #next:
    | { readonly from: number; readonly until: number; readonly most: number; readonly times: WindowTimes[] }
    | undefined;

  constructor({ cron, minutes, timeZone }: FreezeWindow) {
    if (!/^\S+( \S+){4}$/.test(cron)) throw new TypeError('not five fields');
    this.cron = new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });
    this.#durationMs = minutes * minuteMs;
  }

  endAt(now: Date): Date | null {
    const time = now.getTime();
    if (!this.#open || time < this.#open.from || time >= this.#open.until) {
      const begin = this.cron.nextRun(new Date(time - this.#durationMs));
      const end = begin === null || begin > now ? null : this.endOfRow(begin).end;
      this.#open = { from: time, until: (end ?? begin)?.getTime() ?? Number.POSITIVE_INFINITY, end };
    }
    return this.#open.end;
  }

  /** Joins windows without a gap from `begin` on. `isCut`: the search stopped early. */
  endOfRow(begin: Date): { readonly end: Date; readonly isCut: boolean } {
    let end = new Date(begin.getTime() + this.#durationMs);
    let last = begin;
    for (let joined = 0; joined < maxJoined; joined++) {
      const next = this.cron.nextRun(last);
      if (next === null || next > end) return { end, isCut: false };
      last = next;
      end = new Date(next.getTime() + this.#durationMs);
    }
    return { end, isCut: true };
  }

  next(now: Date, most: number): readonly WindowTimes[] {
    const time = now.getTime();
    if (!this.#next || this.#next.most < most || time < this.#next.from || time >= this.#next.until) {
      const times = this.cron
        .nextRuns(most, now)
        .map((from) => ({ from, until: new Date(from.getTime() + this.#durationMs) }));
      this.#next = { from: time, until: times[0]?.from.getTime() ?? Number.POSITIVE_INFINITY, most, times };
    }
    return this.#next.times.slice(0, most);
  }
}
