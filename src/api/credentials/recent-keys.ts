/** Remembers up to `capacity` recently added keys, for at most `lifeMs` each. The least recently added is dropped first. */
export class RecentKeys {
  readonly #addedAt = new Map<string, number>();
  readonly #capacity: number;
  readonly #lifeMs: number;

  constructor(capacity: number, lifeMs: number) {
    this.#capacity = capacity;
    this.#lifeMs = lifeMs;
  }

  /** `at` is a `performance.now()` time. */
  add(key: string, at = performance.now()): void {
    this.#addedAt.delete(key);
    this.#addedAt.set(key, at);
    if (this.#addedAt.size <= this.#capacity) return;
    const [oldest] = this.#addedAt.keys();
    if (oldest !== undefined) this.#addedAt.delete(oldest);
  }

  has(key: string): boolean {
    const at = this.#addedAt.get(key);
    if (at === undefined) return false;
    if (performance.now() - at < this.#lifeMs) return true;
    this.#addedAt.delete(key);
    return false;
  }

  delete(key: string): void {
    this.#addedAt.delete(key);
  }
}
