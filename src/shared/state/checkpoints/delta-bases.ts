import { LRUCache } from 'lru-cache';

/** Memory of all texts in a process, in bytes. */
const maxBytes = 16 * 1024 * 1024;
/** A text is dropped when its update has written no delta for this long, in ms. */
const idleMs = 60_000;

/** The checkpoint of an update that was committed last, as far as this process knows. */
export interface DeltaBase {
  readonly checkpointId: string;
  readonly text: Buffer;
}

/**
 * Texts of checkpoints that this process has written as deltas, for the next delta of the same update. One may be out of date: the
 * hash in the delta and the statement that commits it tell.
 */
export class DeltaBases {
  readonly #bases = new LRUCache<string, DeltaBase>({
    maxSize: maxBytes,
    sizeCalculation: ({ text }) => Math.max(text.length, 1),
    ttl: idleMs,
    ttlAutopurge: true,
  });

  /** Removes and returns the base for the next delta of the update. */
  take(updateId: string): DeltaBase | null {
    const base = this.#bases.get(updateId) ?? null;
    this.#bases.delete(updateId);
    return base;
  }

  keep(updateId: string, base: DeltaBase): void {
    this.#bases.set(updateId, base);
  }
}
