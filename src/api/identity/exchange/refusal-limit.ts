import { LRUCache } from 'lru-cache';

/** A repeated refusal is recorded once in this time. */
const repeatMs = 10_000;
const periodMs = 60_000;
/** Maximum number of events about one issuer, per period. */
const maxOwn = 10;
const remembered = 10_000;

/** `leftOut`: refusals that were only counted. Never rejects. */
type Report = (leftOut: number) => Promise<void>;

interface Period {
  readonly since: number;
  recorded: number;
  leftOut: number;
}

/** Some issuers sign any number of tokens for anybody, with any subject. */
export class RefusalLimit {
  readonly #repeats = new LRUCache<string, true>({
    ...{ max: remembered, ttl: repeatMs, ttlResolution: 0 },
    // Looked up at each call: tests replace the clock.
    perf: { now: () => performance.now() },
  });
  readonly #issuers = new LRUCache<string, Period>({ max: remembered });
  readonly #ends = new Set<() => Promise<void>>();

  /** `further`: an event which says that further refusals are only counted until `report` is called. Null: not recorded. */
  take(issuerId: string, subject: string, reason: string, report: Report): 'refusal' | 'further' | null {
    const key = JSON.stringify([issuerId, subject, reason]);
    if (this.#repeats.has(key)) return null;
    this.#repeats.set(key, true);
    const now = performance.now();
    let period = this.#issuers.get(issuerId);
    if (!period || now - period.since >= periodMs) {
      period = { since: now, recorded: 0, leftOut: 0 };
      this.#issuers.set(issuerId, period);
    }
    if (period.recorded > maxOwn) {
      period.leftOut++;
      return null;
    }
    period.recorded++;
    if (period.recorded <= maxOwn) return 'refusal';
    period.leftOut = 1;
    this.#reportAtEnd(period, report);
    return 'further';
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ends].map((end) => end()));
  }

  #reportAtEnd(period: Period, report: Report): void {
    const end = (): Promise<void> => {
      clearTimeout(timer);
      this.#ends.delete(end);
      return report(period.leftOut);
    };
    const timer = setTimeout(() => void end(), period.since + periodMs - performance.now()).unref();
    this.#ends.add(end);
  }
}
