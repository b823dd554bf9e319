import { createHash, type Hash } from 'node:crypto';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/**
 * On states, level 1 compresses as well as level 3 (0.029 and 0.032 of the size in one of many similar resources, 0.163 in one full of
 * ciphertexts) for half to a third of the CPU time. The checksum lets a reader detect most damage within the frame. Frames without one
 * can be read too.
 */
export const zstdOptions = {
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
export class DigestCheck {
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

/** Hashes and compresses synchronously: for worker threads and small documents. */
export function encodeDocument(text: Buffer): EncodedDocument {
  const sha256 = createHash('sha256').update(text).digest();
  return { sha256, sizeBytes: text.length, bytes: zstdCompressSync(text, wholeZstdOptions(text.length)) };
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
export function checkText(text: Buffer, expected: DocumentDigest): void {
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
