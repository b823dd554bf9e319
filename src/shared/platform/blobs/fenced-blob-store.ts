import type { ReadOnlyMode } from '../read-only/read-only-mode.ts';
import type { BlobPage, BlobRange, BlobStat, BlobStore } from './blob-store.ts';

/** Changes nothing in another store once another site has taken over: what writes or deletes throws ReadOnlyError then. */
export class FencedBlobStore implements BlobStore {
  readonly #store: BlobStore;
  readonly #readOnly: ReadOnlyMode;

  constructor(store: BlobStore, readOnly: ReadOnlyMode) {
    this.#store = store;
    this.#readOnly = readOnly;
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options?: { signal?: AbortSignal },
  ): Promise<{ storedBytes: number }> {
    this.#readOnly.assertNotFenced();
    return this.#store.put(key, body, options);
  }

  async delete(key: string): Promise<void> {
    this.#readOnly.assertNotFenced();
    return this.#store.delete(key);
  }

  async sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number> {
    this.#readOnly.assertNotFenced();
    return this.#store.sweepUnfinished(olderThanMs, prefixes);
  }

  open(key: string, options?: { signal?: AbortSignal; range?: BlobRange }): Promise<AsyncIterable<Buffer>> {
    return this.#store.open(key, options);
  }

  stat(key: string): Promise<BlobStat | null> {
    return this.#store.stat(key);
  }

  list(prefix: string, after?: string): Promise<BlobPage> {
    return this.#store.list(prefix, after);
  }

  findAbsent(keys: readonly string[]): Promise<string[]> {
    return this.#store.findAbsent(keys);
  }

  check(timeoutMs: number): Promise<void> {
    return this.#store.check(timeoutMs);
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
