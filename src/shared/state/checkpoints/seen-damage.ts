import { LRUCache } from 'lru-cache';

const maxSeen = 10_000;
const seenMs = 3_600_000;
/** As long as a marked document is not checked again. */
const trustedMs = 60_000;

/**
 * The damage that a process has found at a site that another one has replaced, where no row is marked. For a minute, nothing is checked again
 * or reported; for an hour, it is not reported as new.
 */
export class SeenDamage {
  readonly #seen = new LRUCache<string, number>({ max: maxSeen, ttl: seenMs });
  readonly #isFenced: () => boolean;

  constructor(isFenced: () => boolean) {
    this.#isFenced = isFenced;
  }

  /** Whether these bytes were just found damaged in all stores. `id`: of the row that has or names them. */
  isTrusted(id: string): boolean {
    const at = this.#isFenced() ? this.#seen.get(id) : undefined;
    return at !== undefined && performance.now() - at < trustedMs;
  }

  /** Notes damage that was proved. Returns whether it is new. */
  note(id: string): boolean {
    const isNew = !this.#seen.has(id);
    this.#seen.set(id, performance.now());
    return isNew;
  }
}
