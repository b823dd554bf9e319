import { LRUCache } from 'lru-cache';

const maxSeen = 10_000;
const seenMs = 3_600_000;
/** Equals the time for which a marked document is not checked again. */
const trustedMs = 60_000;

/**
 * The damage found by this process at a site that another site has replaced, where no row is marked. Damage is not checked or reported
 * again for a minute, and not reported as new for an hour.
 */
export class SeenDamage {
  readonly #seen = new LRUCache<string, number>({ max: maxSeen, ttl: seenMs });
  readonly #isFenced: () => boolean;

  constructor(isFenced: () => boolean) {
    this.#isFenced = isFenced;
  }

  /** Whether the bytes of the row `id`, which contains or names them, were just found damaged in all stores. */
  isTrusted(id: string): boolean {
    const at = this.#isFenced() ? this.#seen.get(id) : undefined;
    return at !== undefined && performance.now() - at < trustedMs;
  }

  /** Records proven damage. Returns whether it is new. */
  note(id: string): boolean {
    const isNew = !this.#seen.has(id);
    this.#seen.set(id, performance.now());
    return isNew;
  }
}
