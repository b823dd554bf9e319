import type { RateCounterReport } from '../../../shared/identity/rate-counter-repository.ts';
import { outsideCalls } from '../../../shared/platform/lifecycle/outside-calls.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';

/** A source of events, such as a client's address. */
export interface Source {
  readonly name: string;
  readonly perMinute: number;
}

export interface Admission<S extends Source = Source> {
  /** False: the event would take place later than the caller waits. */
  readonly isCounted: boolean;
  readonly waitMs: number;
  /** The last one to have capacity. */
  readonly source: S;
}

interface Counter {
  readonly perMinute: number;
  /** The value at the time `at` of `performance.now()`. */
  value: number;
  at: number;
  /** Events that the other replicas do not know of yet. */
  unreported: number;
  /** Lookups in progress, which may fail. */
  pending: number;
}

interface SharedRateCounterOptions {
  /** Adds to the counters shared by all replicas. */
  readonly report: (
    reports: readonly RateCounterReport[],
  ) => Promise<readonly { readonly source: string; readonly level: number }[]>;
  readonly logger: Logger;
  readonly reportEveryMs?: number;
}

/** Sources that one process remembers. */
const capacity = 10_000;
const maxReportsAtOnce = 500;
/** Fewer events, as a fraction of the limit, are not reported as long as the counter is below it, too. */
const reportFrom = 0.1;
/** The maximum as a multiple of the limit, so that a source is admitted again within a minute. */
const maxValueFactor = 2;

/**
 * Counts events by source, in counters that drain over time. A source is exhausted while its counter is at or above its limit per minute.
 * Counters are in memory. Significant ones are reported to the other replicas at most once a second, in one statement that returns the
 * totals of all replicas.
 */
export class SharedRateCounters {
  readonly #counters = new Map<string, Counter>();
  readonly #due = new Map<string, Counter>();
  readonly #report: SharedRateCounterOptions['report'];
  readonly #logger: Logger;
  readonly #reportEveryMs: number;
  #timer: NodeJS.Timeout | null = null;
  #reporting: Promise<void> | null = null;
  #lastReport = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor({ report, logger, reportEveryMs = 1_000 }: SharedRateCounterOptions) {
    this.#report = report;
    this.#logger = logger;
    this.#reportEveryMs = reportEveryMs;
  }

  /**
   * Null if one of the sources is exhausted. When the lookup has ended, call the result with whether it failed. Lookups in progress count
   * too; otherwise many concurrent ones would all be admitted.
   */
  admit(sources: readonly Source[]): ((failed: boolean) => void) | null {
    const counters = sources.map((source) => this.#counterOf(source));
    if (counters.some((counter) => current(counter) + counter.pending >= counter.perMinute)) return null;
    for (const counter of counters) counter.pending++;
    return (failed) => {
      for (const counter of counters) counter.pending--;
      if (failed) this.note(sources);
    };
  }

  /** Counts an event if all sources have capacity for it now (null), or will have it within `maxWaitMs`. */
  take<S extends Source>(sources: readonly S[], maxWaitMs: number): Admission<S> | null {
    const now = performance.now();
    const counters: Counter[] = [];
    let last: S | null = null;
    let longestMs = 0;
    for (const source of sources) {
      const counter = this.#counterOf(source);
      counters.push(counter);
      const waitMs = ((current(counter, now) + 1 - counter.perMinute) * 60_000) / counter.perMinute;
      if (waitMs <= longestMs) continue;
      longestMs = waitMs;
      last = source;
    }
    const isCounted = longestMs <= maxWaitMs;
    if (isCounted) for (const [at, counter] of counters.entries()) this.#count((sources[at] as S).name, counter, now);
    return last && { isCounted, waitMs: longestMs, source: last };
  }

  note(sources: readonly Source[]): void {
    const now = performance.now();
    for (const source of sources) this.#count(source.name, this.#counterOf(source), now);
  }

  /** Resolves when the last report has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#reporting;
  }

  #count(name: string, counter: Counter, now: number): void {
    setValue(counter, current(counter, now) + 1, now);
    counter.unreported++;
    // Steady events up to the limit drain as fast as they arrive, so their counter stays near 0.
    if (Math.max(counter.value, counter.unreported) < counter.perMinute * reportFrom) return;
    this.#due.set(name, counter);
    this.#reportSoon();
  }

  #counterOf({ name, perMinute }: Source): Counter {
    const found = this.#counters.get(name);
    const counter = found ?? { perMinute, value: 0, at: performance.now(), unreported: 0, pending: 0 };
    // Reinserted, so that the least recently used source is dropped first.
    if (found) this.#counters.delete(name);
    this.#counters.set(name, counter);
    if (this.#counters.size > capacity) {
      const [oldest = ''] = this.#counters.keys();
      this.#counters.delete(oldest);
      this.#due.delete(oldest);
    }
    return counter;
  }

  #reportSoon(): void {
    if (this.#isClosed || this.#timer || this.#reporting || this.#due.size === 0) return;
    const waitMs = Math.max(0, this.#lastReport + this.#reportEveryMs - performance.now());
    this.#timer = outsideCalls(() =>
      setTimeout(() => {
        this.#timer = null;
        this.#reporting = this.#sendReports().finally(() => {
          this.#reporting = null;
          this.#reportSoon();
        });
      }, waitMs),
    );
    this.#timer.unref();
  }

  async #sendReports(): Promise<void> {
    this.#lastReport = performance.now();
    const reports = [...this.#due]
      .slice(0, maxReportsAtOnce)
      .map(([source, counter]) => ({ source, counter, events: reportable(counter) }));
    for (const { source, counter } of reports) {
      counter.unreported = 0;
      this.#due.delete(source);
    }
    try {
      const rows = await this.#report(
        reports.map(({ source, counter, events }) => ({
          source,
          events,
          perSecond: counter.perMinute / 60,
          highest: maxValue(counter),
        })),
      );
      for (const { source, level: total } of rows) {
        const counter = this.#counters.get(source);
        if (counter) setValue(counter, total + counter.unreported);
      }
    } catch (error) {
      // The events are reported again next time.
      for (const { source, counter, events } of reports) {
        counter.unreported = Math.min(maxValue(counter), counter.unreported + events);
        this.#due.set(source, counter);
      }
      this.#logger.debug({ err: error }, 'counters could not be reported to other replicas');
    }
  }
}

function current(counter: Counter, now = performance.now()): number {
  return Math.max(0, counter.value - (Math.max(0, now - counter.at) * counter.perMinute) / 60_000);
}

function setValue(counter: Counter, value: number, now = performance.now()): void {
  counter.value = Math.min(maxValue(counter), value);
  counter.at = now;
}

/** After a long wait, as during an outage, most unreported events have drained: their sum would refuse a source below its limit. */
function reportable(counter: Counter): number {
  return Math.min(counter.unreported, Math.ceil(current(counter) + 2 * reportFrom * counter.perMinute));
}

function maxValue({ perMinute }: Counter): number {
  return perMinute * maxValueFactor;
}
