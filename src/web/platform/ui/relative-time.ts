import { timeTexts } from './texts.tsx';

/** Each with the number from which it is used: one day means up to two. */
const steps = [
  ['year', 365 * 24 * 3600, 2],
  ['month', 30 * 24 * 3600, 2],
  ['day', 24 * 3600, 2],
  ['hour', 3600, 1],
  ['minute', 60, 1],
] as const;

const words = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'long' });

/** "3 minutes ago". Below a minute, and for clock skew, "just now". */
export function relativeTime(time: Date, now: Date): string {
  const seconds = (time.getTime() - now.getTime()) / 1000;
  for (const [unit, size, least] of steps)
    if (Math.abs(seconds) >= least * size) return words.format(Math.trunc(seconds / size), unit);
  return timeTexts.justNow;
}

/** "<1 s", "42 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". */
export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 1) return timeTexts.underASecond;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return timeTexts.seconds(whole);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return timeTexts.minutes(minutes, whole % 60);
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? timeTexts.hours(hours, minutes % 60) : timeTexts.days(Math.floor(hours / 24), hours % 24);
}
