import type { RuleSettings } from './rule-kinds.ts';

const dayMs = 86_400_000;

/**
 * Applies the rule `keep-versions`. Days and months are in UTC. The last version of a day or month keeps this rank until the rule's period
 * ends, so the result does not depend on when the rule is applied.
 */
export class VersionRetention {
  readonly #newest: number;
  readonly #allFrom: number;
  readonly #dailyFrom: number;
  readonly #monthlyFrom: number;
  #count = 0;
  #day = '';
  #month = '';

  constructor({ daily = 0, days = 0, monthly = 0, newest = 1 }: RuleSettings<'keep-versions'>, now: Date) {
    this.#newest = newest;
    this.#allFrom = now.getTime() - days * dayMs;
    this.#dailyFrom = now.getTime() - daily * dayMs;
    this.#monthlyFrom = monthsBefore(now, monthly);
  }

  /** Call this for each version that has its state, newest first. */
  keeps(endedAt: Date): boolean {
    const time = endedAt.getTime();
    const day = endedAt.toISOString().slice(0, 10);
    const month = day.slice(0, 7);
    const isLastOfDay = day !== this.#day;
    const isLastOfMonth = month !== this.#month;
    this.#day = day;
    this.#month = month;
    this.#count++;
    return (
      this.#count <= this.#newest ||
      time > this.#allFrom ||
      (isLastOfDay && time > this.#dailyFrom) ||
      (isLastOfMonth && time > this.#monthlyFrom)
    );
  }
}

/** The same day of an earlier month, or the last day of that month. */
function monthsBefore(now: Date, months: number): number {
  const time = new Date(now);
  time.setUTCDate(1);
  time.setUTCMonth(time.getUTCMonth() - months);
  const lastDay = new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1, 0)).getUTCDate();
  time.setUTCDate(Math.min(now.getUTCDate(), lastDay));
  return time.getTime();
}
