/** Keeps just enough of a text that arrives in pieces to hand out the raw text of a value when it ends. */
export class RecentText {
  readonly #maxBytes: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkStart = 0;
  /** Parts of earlier chunks, from the end of the last value on; null when they got too long. */
  #parts: Buffer[] | null = [];
  #partsBytes = 0;
  #valueEnd = 0;

  /** `maxBytes`: longest text that is kept of a value; the spaces and the name before it count. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  beginChunk(chunk: Buffer): void {
    this.#chunk = chunk;
  }

  endChunk(): void {
    const rest = this.#chunk.subarray(Math.max(this.#valueEnd - this.#chunkStart, 0));
    this.#partsBytes += rest.length;
    if (this.#partsBytes > this.#maxBytes) this.#parts = null;
    // A copy: the caller may reuse the chunk's memory.
    else this.#parts?.push(Buffer.from(rest));
    this.#chunkStart += this.#chunk.length;
  }

  /** The byte at `offset`, which lies in the chunk at hand. */
  byteAt(offset: number): number | undefined {
    return this.#chunk[offset - this.#chunkStart];
  }

  /** The raw text of the value that has just ended; null when it is too long. To be asked before `pass`. */
  textOf(start: number, end: number): Buffer | null {
    if (end - start > this.#maxBytes) return null;
    const from = start - this.#chunkStart;
    const to = end - this.#chunkStart;
    if (from >= 0) return this.#chunk.subarray(from, to);
    if (this.#parts === null || -from > this.#partsBytes) return null;
    return Buffer.concat([...this.#parts, this.#chunk.subarray(0, to)]).subarray(this.#partsBytes + from);
  }

  /** Lets go of all text up to the end of the value that has just ended. */
  pass(end: number): void {
    this.#valueEnd = end;
    if (this.#partsBytes === 0) return;
    this.#parts = [];
    this.#partsBytes = 0;
  }
}
