/** Parts of a JSON text, to be sent as one chunk. */
export class JsonBytes {
  #parts: (string | Buffer)[] = [];
  /** Text after the last part. */
  #text = '';
  #length = 0;

  /** The length in bytes of buffers and characters of strings. */
  get length(): number {
    return this.#length;
  }

  /** A buffer must not change until `take`. */
  add(part: string | Buffer): void {
    this.#length += part.length;
    if (typeof part === 'string') {
      this.#text += part;
      return;
    }
    if (this.#text !== '') this.#parts.push(this.#text);
    this.#text = '';
    this.#parts.push(part);
  }

  /** Copied into their own memory. */
  take(): Buffer {
    if (this.#parts.length === 0) {
      const text = Buffer.from(this.#text);
      this.#text = '';
      this.#length = 0;
      return text;
    }
    const parts = [...this.#parts, this.#text];
    let size = 0;
    for (const part of parts) size += typeof part === 'string' ? Buffer.byteLength(part) : part.length;
    const bytes = Buffer.allocUnsafeSlow(size);
    let at = 0;
    for (const part of parts) at += typeof part === 'string' ? bytes.write(part, at) : part.copy(bytes, at);
    this.#parts = [];
    this.#text = '';
    this.#length = 0;
    return bytes;
  }
}
