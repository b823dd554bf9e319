import { fail, type Outcome, ok, warn } from './check.ts';

const warnDays = 14;

/** `what` is the beginning of the sentence. */
export function leftOf(expiry: Date, what: string): Outcome {
  const days = Math.floor((expiry.getTime() - Date.now()) / 86_400_000);
  const fix = 'Renew the certificate, or repair its automatic renewal.';
  if (days < 0) return fail(`${what} expired on ${expiry.toISOString()}.`, fix);
  const seen = `${what} is valid for ${days} more days.`;
  return days < warnDays ? warn(seen, fix) : ok(seen);
}
