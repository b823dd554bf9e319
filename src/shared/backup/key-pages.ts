import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

const keysOfPage = 5_000;

/** Takes about 40 bytes a key: as strings, a million keys would fill the heap of a worker. */
export class KeyPages {
  readonly #pages: Buffer[] = [];
  #open: string[] = [];
  length = 0;

  push(keys: readonly string[]): void {
    this.length += keys.length;
    for (const key of keys) {
      this.#open.push(key);
      if (this.#open.length === keysOfPage) this.#close();
    }
  }

  /** Yields a few thousand keys at a time, in order. */
  *pages(): Generator<string[]> {
    for (const page of this.#pages) yield zstdDecompressSync(page).toString().split('\n');
    if (this.#open.length > 0) yield this.#open;
  }

  #close(): void {
    // The result may be part of a larger buffer.
    this.#pages.push(Buffer.from(zstdCompressSync(this.#open.join('\n'))));
    this.#open = [];
  }
}
