import { createHash, type Hash, hash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import {
  constants,
  createZstdCompress,
  createZstdDecompress,
  zstdCompress,
  zstdCompressSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib';

const compressWhole = promisify(zstdCompress);
const decompressWhole = promisify(zstdDecompress);

/** Documents up to this size are compressed and read in one call rather than as a stream. */
export const wholeLimitBytes = 1024 * 1024;
/** Documents up to this size are compressed in this thread, in 1 ms: a round trip to another one costs half as much again. */
const syncLimitBytes = 512 * 1024;
/** Documents up to this size are decompressed in this thread, in 0.5 ms at most: to hand them to another one takes about as long. */
const syncReadBytes = 256 * 1024;
/** Chunk size of decoded bytes. Node's default of 16 KiB would cost a large document a thousand event loop ticks. */
const openChunkBytes = 128 * 1024;

/** Lets an encoder accept further chunks while it compresses one in a thread. */
const incrementalOptions = { chunkSize: 64 * 1024, writableHighWaterMark: 512 * 1024 };

/**
 * On states, level 1 compresses as well as level 3 (0.029 and 0.032 of the size in one of many similar resources, 0.163 in one full of
 * ciphertexts) for half to a third of the CPU time. The checksum lets a reader detect most damage within the frame. Frames without one
 * can be read too.
 */
const zstdOptions = {
  params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 },
};

/**
 * Options to compress a document of `sizeBytes` in one call. With its size known, zstd uses smaller tables for small documents, which
 * takes half of the time.
 */
export function wholeZstdOptions(sizeBytes: number) {
  const chunkSize = Math.max(Math.min(maxEncodedBytes(sizeBytes), wholeChunkBytes), minChunkBytes);
  return { ...zstdOptions, pledgedSrcSize: sizeBytes, chunkSize };
}

/** Options to decompress a document of `sizeBytes` in one call: with Node's chunks of 16 KiB it takes an event loop tick for each. */
export function wholeUnzstdOptions(sizeBytes: number) {
  // A byte more, or another chunk is allocated when the last one is full.
  return {
    maxOutputLength: Math.max(1, sizeBytes),
    chunkSize: Math.max(Math.min(sizeBytes + 1, maxChunkBytes), minChunkBytes),
  };
}

const wholeChunkBytes = 64 * 1024;
const minChunkBytes = 64;
const maxChunkBytes = 1024 * 1024 + 1;

/** The hash and size that the bytes of a document must have. */
export interface DocumentDigest {
  readonly sha256: Uint8Array;
  readonly sizeBytes: number;
}

/** A whole document in its stored form. */
export interface EncodedDocument extends DocumentDigest {
  readonly bytes: Uint8Array;
}

/** The stored bytes do not yield the document that was written. */
export class DamagedBytesError extends Error {
  override readonly name: string = 'DamagedBytesError';
}

/** Checks, chunk by chunk, that the text of a document is the one that was written. */
class DigestCheck {
  readonly #expected: DocumentDigest;
  readonly #hash: Hash = createHash('sha256');
  #sizeBytes = 0;

  constructor(expected: DocumentDigest) {
    this.#expected = expected;
  }

  /** Throws DamagedBytesError as soon as the text is longer than expected. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.byteLength;
    if (this.#sizeBytes > this.#expected.sizeBytes) {
      throw new DamagedBytesError(
        `The document is longer than the ${this.#expected.sizeBytes} bytes that were written`,
      );
    }
    this.#hash.update(chunk);
  }

  /** Throws DamagedBytesError unless the chunks so far are the whole document. */
  end(): void {
    const { sha256, sizeBytes } = this.#expected;
    if (this.#sizeBytes !== sizeBytes) {
      throw new DamagedBytesError(`The document has ${this.#sizeBytes} of the ${sizeBytes} bytes that were written`);
    }
    if (!this.#hash.digest().equals(sha256)) {
      throw new DamagedBytesError('The SHA-256 of the document does not match the bytes that were written');
    }
  }
}

export function sha256Of(text: Buffer): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Hashes and compresses synchronously: for worker threads and small documents. */
export function encodeDocument(text: Buffer): EncodedDocument {
  return {
    sha256: sha256Of(text),
    sizeBytes: text.length,
    bytes: zstdCompressSync(text, wholeZstdOptions(text.length)),
  };
}

/** The text of a document encoded by `encodeDocument` or by a stream with the same codec. Throws DamagedBytesError. */
export function decodeDocument(document: EncodedDocument): Buffer {
  let text: Buffer;
  try {
    text = zstdDecompressSync(document.bytes, wholeUnzstdOptions(document.sizeBytes));
  } catch (error) {
    throw asDamage(error);
  }
  checkText(text, document);
  return text;
}

/** Throws DamagedBytesError unless the text has the expected hash and size. */
function checkText(text: Buffer, expected: DocumentDigest): void {
  const check = new DigestCheck(expected);
  check.update(text);
  check.end();
}

/** Turns a decoder's error about its input into DamagedBytesError. Returns other errors (of the machine or the source) as is. */
export function asDamage(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string' || code === 'ZSTD_error_memory_allocation') return error;
  if (!/^(ZSTD_error_|Z_|ERR_BUFFER_TOO_LARGE$)/.test(code)) return error;
  return new DamagedBytesError('The stored bytes cannot be decompressed', { cause: error });
}

/** Upper limit for the compressed size of a document of `sizeBytes`. */
export function maxEncodedBytes(sizeBytes: number): number {
  return sizeBytes + Math.ceil(sizeBytes / 128) + 1024;
}

/** Compresses a document of at most `wholeLimitBytes`. */
export async function compress(text: Buffer): Promise<Buffer> {
  const options = wholeZstdOptions(text.length);
  return text.length <= syncLimitBytes ? zstdCompressSync(text, options) : compressWhole(text, options);
}

/** Compresses a document of any size. */
export async function* compressed(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const encoder = createZstdCompress({ ...zstdOptions, ...incrementalOptions });
  const stream = pipeline(Readable.from(text), encoder, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}

/** Reverses `compress`. Throws DamagedBytesError unless the text is the expected one. */
export async function decompressed(encoded: Buffer, expected: DocumentDigest): Promise<Buffer> {
  const { sha256, sizeBytes } = expected;
  if (sizeBytes <= syncReadBytes) return decodeDocument({ sha256, sizeBytes, bytes: encoded });
  const text = await decompressWhole(encoded, wholeUnzstdOptions(sizeBytes)).catch((error: unknown) => {
    throw asDamage(error);
  });
  checkText(text, expected);
  return text;
}

/** Reverses `compressed`, and checks like `checked`. */
export async function* decompressedStream(
  encoded: Iterable<Buffer> | AsyncIterable<Buffer>,
  expected: DocumentDigest,
): AsyncGenerator<Buffer> {
  const decoder = createZstdDecompress({ chunkSize: openChunkBytes });
  // If the caller stops early, its return() ends this generator, which must not leave the blob's socket open.
  const stream = pipeline(Readable.from(encoded), decoder, () => {});
  try {
    yield* checked(stream as AsyncIterable<Buffer>, expected);
  } catch (error) {
    throw asDamage(error);
  } finally {
    stream.destroy();
  }
}

/** Passes a text through, but its last chunk only once all of it is the expected one. Throws DamagedBytesError. */
export async function* checked(text: AsyncIterable<Buffer>, expected: DocumentDigest): AsyncGenerator<Buffer> {
  const check = new DigestCheck(expected);
  let held: Buffer | null = null;
  for await (const chunk of text) {
    check.update(chunk);
    if (held) yield held;
    held = chunk;
  }
  check.end();
  if (held) yield held;
}

/** Called with the hash once a document has been read completely; may throw to reject it. */
export type Verify = (sha256: Buffer) => void | Promise<void>;

/** The text of a document that is read once and hashed on the way. */
export class HashedText {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #verify: Verify | undefined;
  readonly #hash = createHash('sha256');
  #sizeBytes = 0;
  #digest: (DocumentDigest & { sha256: Buffer }) | null = null;

  constructor(source: AsyncIterable<Buffer>, verify: Verify | undefined) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#verify = verify;
  }

  /** Hash and size; null until the text has been read completely and was verified. */
  get digest(): (DocumentDigest & { readonly sha256: Buffer }) | null {
    return this.#digest;
  }

  /** Reads until there are more than `limitBytes`, or to the end. */
  async readHead(limitBytes: number): Promise<Buffer[]> {
    const head: Buffer[] = [];
    while (this.#sizeBytes <= limitBytes) {
      const chunk = await this.#next();
      if (!chunk) break;
      head.push(chunk);
    }
    return head;
  }

  /** The whole text, of which `head` was read already. It ends only if the text was verified. */
  async *from(head: readonly Buffer[]): AsyncGenerator<Buffer> {
    yield* head;
    for (let chunk = await this.#next(); chunk; chunk = await this.#next()) yield chunk;
  }

  /** Call when no more will be read. */
  close(): void {
    // Not awaited: a source that waits for its own source returns only after that.
    if (!this.#digest) this.#chunks.return?.()?.catch(() => undefined);
  }

  async #next(): Promise<Buffer | null> {
    const { done, value } = await this.#chunks.next();
    if (done !== true) {
      this.#hash.update(value);
      this.#sizeBytes += value.length;
      return value;
    }
    const sha256 = this.#hash.digest();
    await this.#verify?.(sha256);
    this.#digest = { sha256, sizeBytes: this.#sizeBytes };
    return null;
  }
}
