import { joined } from '../../../platform/bytes/buffers.ts';
import { JsonSyntaxError } from '../../../platform/json/json-scanner.ts';
import { inSlices } from '../../../platform/slices/slices.ts';
import { ResourceBoundaries, type ResourceBoundary } from '../../deployments/resource-boundaries.ts';

export interface TextChunk {
  readonly text: Buffer;
  /** The resource at the start of the text, if any. */
  readonly cutKey: string | null;
}

/** In bytes. */
export interface ChunkSizes {
  /** The minimum for a cut at a resource. */
  readonly min: number;
  /** Applies where no chunk of the base determines the cut. */
  readonly target: number;
  /** No chunk is larger, and a document up to this size is one chunk. */
  readonly max: number;
}

const MiB = 1024 * 1024;
export const chunkSizes: ChunkSizes = { min: MiB / 2, target: MiB, max: 2 * MiB };

/**
 * Cuts at the beginnings of resources, at those of `baseKeys` where possible, so that a chunk and its counterpart share most of their text
 * even if many resources were added before them. Memory is bounded by the largest chunk.
 */
export async function* cutAtResources(
  document: AsyncIterable<Buffer>,
  sizeBytes: number,
  baseKeys: ReadonlySet<string>,
  sizes: ChunkSizes = chunkSizes,
): AsyncGenerator<TextChunk> {
  const cutter = new ChunkCutter(sizeBytes, baseKeys, sizes);
  for await (const chunk of inSlices(document)) yield* cutter.write(chunk);
  yield* cutter.end();
}

class ChunkCutter {
  readonly #sizes: ChunkSizes;
  readonly #baseKeys: ReadonlySet<string>;
  /** Null if the document is a single chunk or cannot be scanned. */
  #scanner: ResourceBoundaries | null;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Offset in the document of the buffered bytes. */
  #start = 0;
  #cutKey: string | null = null;
  /** The last resource far enough from the start of the chunk for a cut. */
  #last: ResourceBoundary | null = null;

  constructor(sizeBytes: number, baseKeys: ReadonlySet<string>, sizes: ChunkSizes) {
    this.#scanner = sizeBytes <= sizes.max ? null : new ResourceBoundaries();
    this.#baseKeys = baseKeys;
    this.#sizes = sizes;
  }

  *write(chunk: Buffer): Generator<TextChunk> {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    for (const boundary of this.#scan(chunk)) {
      const size = boundary.start - this.#start;
      if (size > this.#sizes.max) yield* this.#shorten(boundary.start);
      if (boundary.start - this.#start < this.#sizes.min) continue;
      if (this.#isCut(boundary)) yield this.#cut(boundary);
      else this.#last = boundary;
    }
    yield* this.#shorten(this.#start + this.#bytes);
  }

  *end(): Generator<TextChunk> {
    if (this.#bytes > 0) yield this.#cut({ start: this.#start + this.#bytes, key: null });
  }

  #scan(chunk: Buffer): readonly ResourceBoundary[] {
    try {
      return this.#scanner?.write(chunk) ?? [];
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      this.#scanner = null;
      return [];
    }
  }

  #isCut({ start, key }: ResourceBoundary): boolean {
    if (this.#baseKeys.size > 0) return key !== null && this.#baseKeys.has(key);
    return start - this.#start >= this.#sizes.target;
  }

  *#shorten(end: number): Generator<TextChunk> {
    while (end - this.#start > this.#sizes.max) {
      const fallback = { start: this.#start + this.#sizes.max, key: null };
      yield this.#cut(this.#last && this.#last.start <= fallback.start ? this.#last : fallback);
    }
  }

  #cut({ start, key }: ResourceBoundary): TextChunk {
    const whole = joined(this.#parts, this.#bytes);
    const size = start - this.#start;
    const chunk = { text: whole.subarray(0, size), cutKey: this.#cutKey };
    this.#parts = size < whole.length ? [whole.subarray(size)] : [];
    this.#bytes = whole.length - size;
    this.#start = start;
    this.#cutKey = key;
    this.#last = null;
    return chunk;
  }
}
