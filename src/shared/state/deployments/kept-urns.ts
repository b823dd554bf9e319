import { LRUCache } from 'lru-cache';

/** Each key takes about 70 bytes. */
const maxKept = 300_000;

/** Caches the most recently requested immutable sets by their source. Concurrent calls share one read. */
export class KeptUrns {
  readonly #kept = new LRUCache<string, ReadonlySet<string>>({
    maxSize: maxKept,
    sizeCalculation: (urns) => urns.size + 1,
  });
  readonly #reading = new Map<string, Promise<ReadonlySet<string>>>();

  async of(source: string, read: () => Promise<ReadonlySet<string>>): Promise<ReadonlySet<string>> {
    const kept = this.#kept.get(source);
    if (kept) return kept;
    let reading = this.#reading.get(source);
    if (!reading) {
      reading = read()
        .then((urns) => {
          this.#kept.set(source, urns);
          return urns;
        })
        .finally(() => this.#reading.delete(source));
      this.#reading.set(source, reading);
    }
    return reading;
  }
}
