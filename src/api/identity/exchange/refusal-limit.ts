import { LRUCache } from 'lru-cache';

/** The same refusal is recorded once per this period, in ms. */
const repeatMs = 10_000;
const periodMs = 60_000;
/** Refusals of one issuer that are events of their own, per period. */
const maxOwn = 10;
const remembered = 10_000;

/** What of a refusal is recorded: it, or that further ones are not. */
export interface Recorded {
  readonly what: 'refusal' | 'further';
  /** Refusals of the issuer that were left out before. */
  readonly leftOut: number;
}

interface Period {
  since: number;
  recorded: number;
  leftOut: number;
}

/** Says which refused id tokens become events: some issuers sign any number of tokens for anybody, with any subject. */
export class RefusalLimit {
  readonly #now: () => number;
  readonly #repeats: LRUCache<string, true>;
  readonly #issuers = new LRUCache<string, Period>({ max: remembered });

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#repeats = new LRUCache({ max: remembered, ttl: repeatMs, ttlResolution: 0, perf: { now } });
  }

  /** Null: nothing is recorded. */
  take(issuerId: string, subject: string, reason: string): Recorded | null {
    const key = JSON.stringify([issuerId, subject, reason]);
    if (this.#repeats.has(key)) return null;
    this.#repeats.set(key, true);
    const now = this.#now();
    let period = this.#issuers.get(issuerId);
    if (!period || now - period.since >= periodMs) {
      period = { since: now, recorded: 0, leftOut: period?.leftOut ?? 0 };
      this.#issuers.set(issuerId, period);
    }
    if (period.recorded > maxOwn) {
      period.leftOut++;
      return null;
    }
    const { leftOut } = period;
    period.recorded++;
    const isOwn = period.recorded <= maxOwn;
    period.leftOut = isOwn ? 0 : 1;
    return { what: isOwn ? 'refusal' : 'further', leftOut };
  }
}
