import { freeBuffer } from '../../../platform/bytes/buffers.ts';
import { ByteBudget } from '../../../platform/payloads/byte-budget.ts';
import { inSlices } from '../../../platform/slices/slices.ts';
import { checkChunk, decodeChunk } from './chunk-codec.ts';
import { chunkSizes } from './chunk-cutter.ts';
import type { ChunkRepository, ChunkRow, StoredChunkRow } from './chunk-repository.ts';

/** Objects of a chain that are read while one is decoded. */
const objectsAhead = 4;
/** Chunks that are decoded while a reader takes one. */
const chunksAhead = 2;
/** Shared by all readers of a process. A chunk takes its text, the text of its base, and a copy. */
const decodingBytes = 4 * 3 * chunkSizes.max;

/** Returns whether the chunk can be read now. */
export type RepairChunk = (chunk: ChunkRow, error: unknown) => Promise<boolean>;

/** Reads chunks through their chains of bases. Holds two texts and a few compressed chunks at a time, however long the chain is. */
export class ChunkReader {
  readonly #rows: ChunkRepository;
  readonly #readStored: (chunk: StoredChunkRow) => Promise<Buffer>;
  readonly #onMissing: () => Error;
  readonly #decoding = new ByteBudget(decodingBytes);

  /** `readStored` returns unencrypted bytes. `onMissing` returns the error for chunks that are gone. */
  constructor(rows: ChunkRepository, readStored: (chunk: StoredChunkRow) => Promise<Buffer>, onMissing: () => Error) {
    this.#rows = rows;
    this.#readStored = readStored;
    this.#onMissing = onMissing;
  }

  /**
   * The text is unchecked except for the checksums of its frames. `rows` may use another connection. `repair` lets a reader that already
   * has part of the text get the rest. Throws DamagedBytesError.
   */
  async *open(checkpointId: string, rows = this.#rows, repair?: RepairChunk): AsyncGenerator<Buffer> {
    const chunks = await rows.list(checkpointId);
    if (chunks.length === 0) throw this.#onMissing();
    const ahead: Promise<Buffer>[] = [];
    for (const at of chunks.keys()) {
      for (const chunk of chunks.slice(at + ahead.length, at + 1 + chunksAhead))
        ahead.push(startEarly(this.#decode(chunk, rows)));
      const text = (ahead.shift() as Promise<Buffer>).catch(async (error: unknown) => {
        const damaged = chunks[at] as ChunkRow;
        if (!(await repair?.(damaged, error))) throw error;
        return this.#decode(damaged, rows);
      });
      yield* inSlices([await text]);
    }
  }

  /** Checks the hash. Throws DamagedBytesError. */
  async read(chunk: ChunkRow): Promise<Buffer> {
    const text = await this.#decode(chunk);
    await checkChunk(text, chunk);
    return text;
  }

  async #decode({ id, sizeBytes }: Pick<ChunkRow, 'id' | 'sizeBytes'>, rows = this.#rows): Promise<Buffer> {
    const bytes = 3 * sizeBytes;
    await this.#decoding.acquire(bytes, null);
    try {
      const chain = await rows.readChain(id);
      if (chain.length === 0) throw this.#onMissing();
      let text: Buffer | null = null;
      const ahead: Promise<Buffer>[] = [];
      for (const [at, chunk] of chain.entries()) {
        while (ahead.length < objectsAhead && at + ahead.length < chain.length) {
          ahead.push(startEarly(this.#readStored(chain[at + ahead.length] as StoredChunkRow)));
        }
        const base: Buffer | null = text;
        text = await decodeChunk((await ahead.shift()) as Buffer, base, chunk.sizeBytes);
        // Only this step needs the base. Without this call, chains would fill the memory faster than it is collected.
        if (base) freeBuffer(base);
      }
      return text as Buffer;
    } finally {
      this.#decoding.release(bytes);
    }
  }
}

/** Handles the rejection of a promise that is awaited later, or never if an earlier one fails. */
function startEarly<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
