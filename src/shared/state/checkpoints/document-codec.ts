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

/** Larger documents are compressed and read as a stream. */
export const wholeLimitBytes = 1024 * 1024;
/** Up to this size, this thread compresses a document in 1 ms. A round trip to another thread would add half as much. */
const syncLimitBytes = 512 * 1024;
/** Up to this size, this thread decompresses a document in at most 0.5 ms. Handing it to another thread takes about as long. */
const syncReadBytes = 256 * 1024;
/** Node's default of 16 KiB would cost a large document a thousand event loop ticks. */
const openChunkBytes = 128 * 1024;

/** Lets an encoder accept more chunks while it compresses one in a thread. */
const incrementalOptions = { chunkSize: 64 * 1024, writableHighWaterMark: 512 * 1024 };

/**
 * On states, level 1 compresses as well as level 3 in a half to a third of the CPU time. Compressed sizes: 0.029 and 0.032 of a state with
 * many similar resources, 0.163 of a state full of ciphertexts. The checksum detects most damage within a frame; frames without one can be
 * read too.
 */
const zstdOptions = {
  params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 },
};

/** Because the size is known, zstd uses smaller tables for small documents, which halves the time. */
export function wholeZstdOptions(sizeBytes: number) {
  const chunkSize = Math.max(Math.min(maxEncodedBytes(sizeBytes), wholeChunkBytes), minChunkBytes);
  return { ...zstdOptions, pledgedSrcSize: sizeBytes, chunkSize };
}

/** Node's chunks of 16 KiB would take one event loop tick each. */
export function wholeUnzstdOptions(sizeBytes: number) {
  // One more byte avoids another chunk when the last one is exactly full.
  return {
    maxOutputLength: Math.max(1, sizeBytes),
    chunkSize: Math.max(Math.min(sizeBytes + 1, maxChunkBytes), minChunkBytes),
  };
}

const wholeChunkBytes = 64 * 1024;
const minChunkBytes = 64;
const maxChunkBytes = 1024 * 1024 + 1;

export interface DocumentDigest {
  readonly sha256: Uint8Array;
  readonly sizeBytes: number;
}

export interface EncodedDocument extends DocumentDigest {
  readonly bytes: Uint8Array;
}

export class DamagedBytesError extends Error {
  override readonly name: string = 'DamagedBytesError';
}

class DigestCheck {
  readonly #expected: DocumentDigest;
  readonly #hash: Hash = createHash('sha256');
  #sizeBytes = 0;

  constructor(expected: DocumentDigest) {
    this.#expected = expected;
  }

  /** Throws DamagedBytesError. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.byteLength;
    if (this.#sizeBytes > this.#expected.sizeBytes) {
      throw new DamagedBytesError(
        `The document is longer than the ${this.#expected.sizeBytes} bytes that were written`,
      );
    }
    this.#hash.update(chunk);
  }

  /** Throws DamagedBytesError. */
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

/** Blocks its thread: only for worker threads and small documents. */
export function encodeDocument(text: Buffer): EncodedDocument {
  return {
    sha256: sha256Of(text),
    sizeBytes: text.length,
    bytes: zstdCompressSync(text, wholeZstdOptions(text.length)),
  };
}

/** Also decodes a stream with the same codec. Throws DamagedBytesError. */
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

/** Throws DamagedBytesError. */
function checkText(text: Buffer, expected: DocumentDigest): void {
  const check = new DigestCheck(expected);
  check.update(text);
  check.end();
}

/** Turns errors about the input into DamagedBytesError. Returns other errors (of the machine or the source) unchanged. */
export function asDamage(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string' || code === 'ZSTD_error_memory_allocation') return error;
  if (!/^(ZSTD_error_|Z_|ERR_BUFFER_TOO_LARGE$)/.test(code)) return error;
  return new DamagedBytesError('The stored bytes cannot be decompressed', { cause: error });
}

export function maxEncodedBytes(sizeBytes: number): number {
  return sizeBytes + Math.ceil(sizeBytes / 128) + 1024;
}

/** Takes at most `wholeLimitBytes`. */
export async function compress(text: Buffer): Promise<Buffer> {
  const options = wholeZstdOptions(text.length);
  return text.length <= syncLimitBytes ? zstdCompressSync(text, options) : compressWhole(text, options);
}

export async function* compressed(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const encoder = createZstdCompress({ ...zstdOptions, ...incrementalOptions });
  const stream = pipeline(Readable.from(text), encoder, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}

/** Throws DamagedBytesError. */
export async function decompressed(encoded: Buffer, expected: DocumentDigest): Promise<Buffer> {
  const { sha256, sizeBytes } = expected;
  if (sizeBytes <= syncReadBytes) return decodeDocument({ sha256, sizeBytes, bytes: encoded });
  const text = await decompressWhole(encoded, wholeUnzstdOptions(sizeBytes)).catch((error: unknown) => {
    throw asDamage(error);
  });
  checkText(text, expected);
  return text;
}

/** Throws DamagedBytesError like `checked`. */
export async function* decompressedStream(
  encoded: Iterable<Buffer> | AsyncIterable<Buffer>,
  expected: DocumentDigest,
): AsyncGenerator<Buffer> {
  const decoder = createZstdDecompress({ chunkSize: openChunkBytes });
  // If the caller stops early, its return() ends this generator, which must then close the blob's socket.
  const stream = pipeline(Readable.from(encoded), decoder, () => {});
  try {
    yield* checked(stream as AsyncIterable<Buffer>, expected);
  } catch (error) {
    throw asDamage(error);
  } finally {
    stream.destroy();
  }
}

/** Yields the last chunk only after the whole text was found correct. Throws DamagedBytesError. */
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

/** May throw to reject the document, which has been read completely. */
export type Verify = (sha256: Buffer) => void | Promise<void>;

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

  /** Null until the text has been read completely and verified. */
  get digest(): (DocumentDigest & { readonly sha256: Buffer }) | null {
    return this.#digest;
  }

  /** Reads until more than `limitBytes` are read, or to the end. */
  async readHead(limitBytes: number): Promise<Buffer[]> {
    const head: Buffer[] = [];
    while (this.#sizeBytes <= limitBytes) {
      const chunk = await this.#next();
      if (!chunk) break;
      head.push(chunk);
    }
    return head;
  }

  /** `head` was already read. Ends without an error only if the text was verified. */
  async *from(head: readonly Buffer[]): AsyncGenerator<Buffer> {
    yield* head;
    for (let chunk = await this.#next(); chunk; chunk = await this.#next()) yield chunk;
  }

  close(): void {
    // Not awaited: a source that is waiting for its own source returns only afterwards.
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
