import { freeBuffer } from './free-buffer.ts';

/** Memory that is to be freed: where its bytes in use end, and up to where they were used. */
interface Use {
  readonly end: number;
  spentTo: number;
  left: number;
}

const uses = new WeakMap<ArrayBufferLike, Use>();

/**
 * Has the memory of `text` freed as soon as all of its bytes were passed to `spend`. Only for memory that its owner hands out once, as
 * `text` or in parts, and does not use itself any more. Where nobody spends them, it waits for V8's collection, as any other.
 */
export function freeWhenSpent(text: Buffer): void {
  const { buffer, byteLength, byteOffset } = text;
  if (!uses.has(buffer)) uses.set(buffer, { end: byteOffset + byteLength, spentTo: byteOffset, left: byteLength });
}

/**
 * Does so for the memory of a decoder's output. A decoder with chunks of `chunkBytes` fills each with one or several outputs before it
 * takes the next; what remains of the last one is never used. Outputs that its reader left waiting are copied into memory of their own.
 */
export function freeDecoded({ buffer, byteLength }: Buffer, chunkBytes: number): void {
  if (buffer.byteLength === chunkBytes || buffer.byteLength === byteLength) freeWhenSpent(Buffer.from(buffer));
}

/** Says that the last reader of these bytes has read them. Parts of the same memory must come in order, as in a stream. */
export function spend(part: Buffer): void {
  const { buffer, byteLength, byteOffset } = part;
  const use = uses.get(buffer);
  if (!use) return;
  // Bytes that come twice, or from elsewhere, may be in use in a way that is not known here.
  if (byteOffset < use.spentTo || byteOffset + byteLength > use.end) {
    uses.delete(buffer);
    return;
  }
  use.spentTo = byteOffset + byteLength;
  use.left -= byteLength;
  if (use.left > 0) return;
  uses.delete(buffer);
  freeBuffer(part);
}

/** A stream that compresses. */
interface Encoder {
  /** How many bytes it has read. */
  readonly bytesWritten: number;
}

/**
 * Chunks on their way into an encoder, each spent once the encoder has read into the one after it, or has ended: while its output is full,
 * an encoder comes back to a chunk that it has read to the end. What generates the chunks may use each until it is asked for the next.
 */
export class SpentChunks {
  readonly #encoder: Encoder;
  readonly #unread: { readonly chunk: Buffer; readonly end: number }[] = [];
  #bytes = 0;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
  }

  async *from(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.#spend();
      this.#bytes += chunk.length;
      this.#unread.push({ chunk, end: this.#bytes });
      yield chunk;
    }
  }

  /** Call when the encoder has ended. Throws if it did not read each byte. */
  end(): void {
    if (this.#encoder.bytesWritten !== this.#bytes) {
      throw new Error(`${this.#encoder.bytesWritten} of ${this.#bytes} bytes of a text were compressed`);
    }
    for (const { chunk } of this.#unread.splice(0)) spend(chunk);
  }

  #spend(): void {
    for (let [next] = this.#unread; next && next.end < this.#encoder.bytesWritten; [next] = this.#unread) {
      spend(next.chunk);
      this.#unread.shift();
    }
  }
}
