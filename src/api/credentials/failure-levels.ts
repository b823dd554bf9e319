import type { FailureReport } from '../../shared/identity/failed-lookup-repository.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';

/** Where failures are counted: a client's address or a kind of token, with the failures that it has free per minute. */
export interface Source {
  readonly name: string;
  readonly perMinute: number;
}

interface Level {
  readonly perMinute: number;
  /** As of `at`, a time of `performance.now()`. */
  value: number;
  at: number;
  /** Failures that the other replicas have not been told of. */
  unshared: number;
  /** Look-ups on their way, which may fail. */
  looking: number;
}

interface FailureLevelsOptions {
  /** Adds failures to the counts of all replicas, and returns the levels with that. */
  readonly report: (
    reports: readonly FailureReport[],
  ) => Promise<readonly { readonly source: string; readonly level: number }[]>;
  readonly logger: Logger;
  /** Shortest time between two reports, in ms. */
  readonly reportEveryMs?: number;
}

/** Sources that one process remembers. */
const capacity = 10_000;
const reportedAtOnce = 500;
/** A few typos are nothing to tell the others of. */
const sharedFrom = 0.1;
/** A level never rises so far that it takes more than a minute to be let in again. */
const highestLevel = 2;

/**
 * Counts failed look-ups by source as levels that drain off: a source is exhausted while its level is above what a minute has
 * free. Counted in memory; what adds up is told to the other replicas at most once a second, in one statement, whose answer
 * has what they have seen.
 */
export class FailureLevels {
  readonly #levels = new Map<string, Level>();
  /** Those with failures enough to tell of. */
  readonly #due = new Map<string, Level>();
  readonly #report: FailureLevelsOptions['report'];
  readonly #logger: Logger;
  readonly #reportEveryMs: number;
  #timer: NodeJS.Timeout | null = null;
  #reporting: Promise<void> | null = null;
  #lastReport = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor({ report, logger, reportEveryMs = 1_000 }: FailureLevelsOptions) {
    this.#report = report;
    this.#logger = logger;
    this.#reportEveryMs = reportEveryMs;
  }

  /**
   * Lets a look-up go ahead, or returns null when one of the sources is exhausted. Call the result when it has ended, with
   * whether it failed. Those on their way count, or many at once would all get through.
   */
  admit(sources: readonly Source[]): ((failed: boolean) => void) | null {
    const levels = sources.map((source) => this.#levelOf(source));
    if (levels.some((level) => current(level) + level.looking >= level.perMinute)) return null;
    for (const level of levels) level.looking++;
    return (failed) => {
      for (const level of levels) level.looking--;
      if (failed) this.note(sources);
    };
  }

  /** Counts a failure. */
  note(sources: readonly Source[]): void {
    for (const source of sources) {
      const level = this.#levelOf(source);
      setLevel(level, current(level) + 1);
      level.unshared++;
      if (current(level) >= level.perMinute * sharedFrom) this.#due.set(source.name, level);
    }
    this.#reportSoon();
  }

  /** Ends the reports; resolves when the last one has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#reporting;
  }

  #levelOf({ name, perMinute }: Source): Level {
    const found = this.#levels.get(name);
    const level = found ?? { perMinute, value: 0, at: performance.now(), unshared: 0, looking: 0 };
    // The last used is the last to be dropped.
    if (found) this.#levels.delete(name);
    this.#levels.set(name, level);
    if (this.#levels.size > capacity) {
      const [oldest = ''] = this.#levels.keys();
      this.#levels.delete(oldest);
      this.#due.delete(oldest);
    }
    return level;
  }

  #reportSoon(): void {
    if (this.#isClosed || this.#timer || this.#reporting || this.#due.size === 0) return;
    const waitMs = Math.max(0, this.#lastReport + this.#reportEveryMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#reporting = this.#share().finally(() => {
        this.#reporting = null;
        this.#reportSoon();
      });
    }, waitMs);
    this.#timer.unref();
  }

  async #share(): Promise<void> {
    this.#lastReport = performance.now();
    const told = [...this.#due]
      .slice(0, reportedAtOnce)
      .map(([source, level]) => ({ source, level, failures: level.unshared }));
    for (const { source, level } of told) {
      level.unshared = 0;
      this.#due.delete(source);
    }
    try {
      const rows = await this.#report(
        told.map(({ source, level, failures }) => ({
          source,
          failures,
          perSecond: level.perMinute / 60,
          highest: highest(level),
        })),
      );
      for (const { source, level: shared } of rows) {
        const level = this.#levels.get(source);
        if (level) setLevel(level, shared + level.unshared);
      }
    } catch (error) {
      // They are told the next time.
      for (const { source, level, failures } of told) {
        level.unshared = Math.min(highest(level), level.unshared + failures);
        this.#due.set(source, level);
      }
      this.#logger.debug({ err: error }, 'failed lookups could not be shared');
    }
  }
}

function current(level: Level): number {
  return Math.max(0, level.value - ((performance.now() - level.at) * level.perMinute) / 60_000);
}

function setLevel(level: Level, value: number): void {
  level.value = Math.min(highest(level), value);
  level.at = performance.now();
}

function highest({ perMinute }: Level): number {
  return perMinute * highestLevel;
}
