import { Cron } from 'croner';

/** A schedule is a cron expression of five fields, in UTC. */
export function isSchedule(schedule: string): boolean {
  try {
    return cronOf(schedule).nextRun() !== null;
  } catch {
    return false;
  }
}

/** Null stands for never. */
export function isDue(schedule: string, last: Date | null, now = new Date()): boolean {
  if (last === null) return true;
  const next = cronOf(schedule).nextRun(last);
  return next !== null && next <= now;
}

/** Since the first scheduled time after `last`; 0 if it is in the future. */
export function overdueMs(schedule: string, last: Date, now = new Date()): number {
  return Math.max(now.getTime() - (cronOf(schedule).nextRun(last)?.getTime() ?? Number.POSITIVE_INFINITY), 0);
}

export function nextTime(schedule: string, now = new Date()): Date | null {
  return cronOf(schedule).nextRun(now);
}

function cronOf(schedule: string): Cron {
  return new Cron(schedule, { timezone: 'UTC', mode: '5-part', paused: true });
}
