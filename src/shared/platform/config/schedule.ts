import { Cron } from 'croner';

/** Whether `schedule` is five fields of cron. */
export function isSchedule(schedule: string): boolean {
  try {
    return cronOf(schedule).nextRun() !== null;
  } catch {
    return false;
  }
}

/** Whether a time of the schedule, in UTC, has passed since `last`; null: at once. */
export function isDue(schedule: string, last: Date | null, now = new Date()): boolean {
  if (last === null) return true;
  const next = cronOf(schedule).nextRun(last);
  return next !== null && next <= now;
}

/** Milliseconds since the first scheduled time (UTC) after `last`; 0 if it is still to come. */
export function overdueMs(schedule: string, last: Date, now = new Date()): number {
  return Math.max(now.getTime() - (cronOf(schedule).nextRun(last)?.getTime() ?? Number.POSITIVE_INFINITY), 0);
}

/** The next time of the schedule, in UTC. */
export function nextTime(schedule: string, now = new Date()): Date | null {
  return cronOf(schedule).nextRun(now);
}

function cronOf(schedule: string): Cron {
  return new Cron(schedule, { timezone: 'UTC', mode: '5-part', paused: true });
}
