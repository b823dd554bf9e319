import { LRUCache } from 'lru-cache';
import type { Logger } from '../../../shared/platform/logger/logger.ts';

const everyMs = 10_000;
/** Addresses that a process remembers. */
const capacity = 10_000;
/** Lines for all addresses together, per `everyMs`. */
const maxLines = 50;

interface Rejection {
  readonly address: string;
  readonly credential: string;
  /** The prefix of the credential, or `other`. */
  readonly kind: string;
  readonly reason: string;
}

/** No line contains any part of a credential. At most one line per address every 10 s, with the number since the previous line. */
export class RejectedCredentialLog {
  readonly #logger: Logger;
  readonly #byAddress = new LRUCache<string, { loggedAt: number; since: number }>({ max: capacity });
  #windowStart = Number.NEGATIVE_INFINITY;
  #lines = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note({ address, ...rejection }: Rejection): void {
    const now = performance.now();
    const entry = this.#byAddress.get(address) ?? { loggedAt: Number.NEGATIVE_INFINITY, since: 0 };
    entry.since++;
    this.#byAddress.set(address, entry);
    if (now - entry.loggedAt < everyMs || !this.#mayWrite(now)) return;
    this.#logger.warn({ address, ...rejection, refused: entry.since }, 'wrong credentials');
    entry.loggedAt = now;
    entry.since = 0;
  }

  #mayWrite(now: number): boolean {
    if (now - this.#windowStart >= everyMs) {
      this.#windowStart = now;
      this.#lines = 0;
    }
    return this.#lines++ < maxLines;
  }
}
