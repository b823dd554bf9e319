/** Keeps just enough of a chunked text for the raw text of a value that ends. */
export class ScanWindow {
  readonly #maxBytes: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkStart = 0;
  /** Parts since the end of the last value; null if they became too long. */
  #parts: Buffer[] | null = [];
  #partsBytes = 0;
  #valueEnd = 0;

  /** `maxBytes` includes the name of a value and the white space before it. */
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
    // The caller may reuse the chunk's memory.
    else this.#parts?.push(Buffer.from(rest));
    this.#chunkStart += this.#chunk.length;
  }

  /** `offset` must lie in the current chunk. */
  byteAt(offset: number): number | undefined {
    return this.#chunk[offset - this.#chunkStart];
  }

  /** Returns the text of the value that just ended; null if it is too long. Call before `pass`. */
  textOf(start: number, end: number): Buffer | null {
    if (end - start > this.#maxBytes) return null;
    const from = start - this.#chunkStart;
    const to = end - this.#chunkStart;
    if (from >= 0) return this.#chunk.subarray(from, to);
    if (this.#parts === null || -from > this.#partsBytes) return null;
    return Buffer.concat([...this.#parts, this.#chunk.subarray(0, to)]).subarray(this.#partsBytes + from);
  }

  /** Discards all text up to `end`, where the last value ended. */
  pass(end: number): void {
    this.#valueEnd = end;
    if (this.#partsBytes === 0) return;
    this.#parts = [];
    this.#partsBytes = 0;
  }
}
