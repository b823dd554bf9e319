import { LRUCache } from 'lru-cache';

/** About 70 bytes each. */
const maxKept = 300_000;

/** Sets of keys of resources that never change, by their source: the most recently requested ones. Calls at the same time share one read. */
export class KeptUrns {
  readonly #kept = new LRUCache<string, ReadonlySet<string>>({
    maxSize: maxKept,
    sizeCalculation: (urns) => urns.size + 1,
  });
  readonly #reading = new Map<string, Promise<ReadonlySet<string>>>();

  /** The set of the source, which `read` reads. Throws its errors. */
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
