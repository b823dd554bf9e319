import { joined } from '../../../platform/bytes/buffers.ts';
import { JsonSyntaxError } from '../../../platform/json/json-scanner.ts';
import { inSlices } from '../../../platform/slices/slices.ts';
import { ResourceBoundaries, type ResourceBoundary } from '../../deployments/resource-boundaries.ts';

/** A part of a document's text. */
export interface TextChunk {
  readonly text: Buffer;
  /** Identifies the resource with which it begins; null if it does not begin with one. */
  readonly cutKey: string | null;
}

/** Sizes of chunks, in bytes. */
export interface ChunkSizes {
  /** No cut at a resource makes a chunk smaller than this. */
  readonly min: number;
  /** Chunk size where no chunk of the base shows where to cut. */
  readonly target: number;
  /** A document up to this size is one chunk, and no chunk is larger. */
  readonly max: number;
}

const MiB = 1024 * 1024;
export const chunkSizes: ChunkSizes = { min: MiB / 2, target: MiB, max: 2 * MiB };

/**
 * Cuts a document into chunks, where resources begin. With the keys of a base it cuts at the same resources, so that a chunk and its
 * counterpart have much in common however many resources were added before them. Memory is bounded by the largest chunk.
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
  /** Null if the document is one chunk, or cannot be scanned. */
  #scanner: ResourceBoundaries | null;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Offset of the buffered bytes in the document. */
  #start = 0;
  #cutKey: string | null = null;
  /** The last resource that is far enough from the start of the chunk to cut there. */
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

  /** Cuts until the text before `end` is not longer than a chunk may be. */
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
