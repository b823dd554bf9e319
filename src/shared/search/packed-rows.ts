import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { wholeUnzstdOptions, wholeZstdOptions } from '../state/checkpoints/document-codec.ts';

/** Compressing a block takes about 1 ms; a reader holds one at a time. */
const defaultBlockChars = 256 * 1024;

interface Block {
  readonly bytes: Buffer;
  readonly textBytes: number;
  /** Counted among all added rows. */
  readonly start: number;
}

/**
 * Rows by key, compressed in blocks: many rows take a tenth of the memory of objects, most of it outside of V8's heap. Rows are plain JSON.
 * If several rows have the same key, the last one counts.
 */
export class PackedRows<T extends { readonly key: string }> {
  readonly #blockChars: number;
  readonly #positions = new Map<string, number>();
  readonly #blocks: Block[] = [];
  #open: string[] = [];
  #openChars = 0;
  #openStart = 0;

  constructor(blockChars = defaultBlockChars) {
    this.#blockChars = blockChars;
  }

  get size(): number {
    return this.#positions.size;
  }

  has(key: string): boolean {
    return this.#positions.has(key);
  }

  set(row: T): void {
    this.#positions.set(row.key, this.#openStart + this.#open.length);
    const text = JSON.stringify(row);
    this.#open.push(text);
    this.#openChars += text.length;
    if (this.#openChars >= this.#blockChars) this.#close();
  }

  delete(key: string): void {
    this.#positions.delete(key);
  }

  /** In order of addition, a few hundred rows at a time. Can be called repeatedly. */
  *batches(): Generator<T[]> {
    for (const { bytes, start, textBytes } of this.#blocks) {
      const text = zstdDecompressSync(bytes, wholeUnzstdOptions(textBytes)).toString('utf8');
      yield* this.#current(text, start);
    }
    yield* this.#current(listOf(this.#open), this.#openStart);
  }

  *#current(list: string, start: number): Generator<T[]> {
    const rows = (JSON.parse(list) as T[]).filter(({ key }, at) => this.#positions.get(key) === start + at);
    if (rows.length > 0) yield rows;
  }

  #close(): void {
    const text = Buffer.from(listOf(this.#open));
    // Copied, because the result may be part of a larger chunk.
    const bytes = Buffer.from(zstdCompressSync(text, wholeZstdOptions(text.length)));
    this.#blocks.push({ bytes, textBytes: text.length, start: this.#openStart });
    this.#openStart += this.#open.length;
    this.#open = [];
    this.#openChars = 0;
  }
}

function listOf(texts: readonly string[]): string {
  return `[${texts.join(',')}]`;
}
