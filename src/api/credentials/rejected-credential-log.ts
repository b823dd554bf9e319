import { LRUCache } from 'lru-cache';
import type { Logger } from '../../shared/platform/logger/logger.ts';

const everyMs = 10_000;
/** Addresses that one process remembers. */
const capacity = 10_000;
/** Lines of all addresses together, in `everyMs`. */
const linesAtOnce = 50;

interface Refusal {
  readonly address: string;
  readonly credential: string;
  /** What is public of it: its prefix, or `other`. */
  readonly kind: string;
  readonly reason: string;
}

/** Tells of wrong tokens, with no part of them: a line per address and 10 s at most, with how many there were since the last. */
export class RejectedTokenLog {
  readonly #logger: Logger;
  readonly #seen = new LRUCache<string, { lineAt: number; since: number }>({ max: capacity });
  #windowAt = Number.NEGATIVE_INFINITY;
  #lines = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note({ address, ...refusal }: Refusal): void {
    const now = performance.now();
    const seen = this.#seen.get(address) ?? { lineAt: Number.NEGATIVE_INFINITY, since: 0 };
    seen.since++;
    this.#seen.set(address, seen);
    if (now - seen.lineAt < everyMs || !this.#mayWrite(now)) return;
    this.#logger.warn({ address, ...refusal, refused: seen.since }, 'wrong credentials');
    seen.lineAt = now;
    seen.since = 0;
  }

  #mayWrite(now: number): boolean {
    if (now - this.#windowAt >= everyMs) {
      this.#windowAt = now;
      this.#lines = 0;
    }
    return this.#lines++ < linesAtOnce;
  }
}
