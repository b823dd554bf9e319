import { createHash, type Hash } from 'node:crypto';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/**
 * Level 3 takes about 3 ms/MB here; higher levels win little on state documents. The checksum lets a reader see most damage
 * within the frame; frames without one are read as well.
 */
export const zstdOptions = {
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
};

/** What the bytes of a document must come to. */
export interface DocumentDigest {
  readonly sha256: Uint8Array;
  readonly sizeBytes: number;
}

/** A whole document as it is stored. */
export interface EncodedDocument extends DocumentDigest {
  readonly bytes: Uint8Array;
}

/** Stored bytes do not make the document that was written. */
export class DamagedBytesError extends Error {
  override readonly name: string = 'DamagedBytesError';
}

/** Follows the text of a document as it passes, and tells whether it is the one that was written. */
export class DigestCheck {
  readonly #expected: DocumentDigest;
  readonly #hash: Hash = createHash('sha256');
  #sizeBytes = 0;

  constructor(expected: DocumentDigest) {
    this.#expected = expected;
  }

  /** Throws DamagedBytesError as soon as there is more than there should be. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.byteLength;
    if (this.#sizeBytes > this.#expected.sizeBytes) {
      throw new DamagedBytesError(
        `The document is longer than the ${this.#expected.sizeBytes} bytes that were written`,
      );
    }
    this.#hash.update(chunk);
  }

  /** Throws DamagedBytesError unless what has passed is the whole document. */
  end(): void {
    const { sha256, sizeBytes } = this.#expected;
    if (this.#sizeBytes !== sizeBytes) {
      throw new DamagedBytesError(`The document has ${this.#sizeBytes} of the ${sizeBytes} bytes that were written`);
    }
    if (!this.#hash.digest().equals(sha256)) {
      throw new DamagedBytesError('The SHA-256 of the document is not that of the bytes that were written');
    }
  }
}

/** Hashes and compresses in one go: for a thread of its own, or for little. */
export function encodeDocument(text: Buffer): EncodedDocument {
  const sha256 = createHash('sha256').update(text).digest();
  return { sha256, sizeBytes: text.length, bytes: zstdCompressSync(text, zstdOptions) };
}

/** The text of what `encodeDocument`, or a stream with the same codec, has made. Throws DamagedBytesError. */
export function decodeDocument(document: EncodedDocument): Buffer {
  let text: Buffer;
  try {
    text = zstdDecompressSync(document.bytes, { maxOutputLength: Math.max(1, document.sizeBytes) });
  } catch (error) {
    throw asDamage(error);
  }
  checkText(text, document);
  return text;
}

/** Throws DamagedBytesError unless the text is the document. */
export function checkText(text: Buffer, expected: DocumentDigest): void {
  const check = new DigestCheck(expected);
  check.update(text);
  check.end();
}

/** The error as DamagedBytesError when it is a decoder's about its input; others are faults of the machine, or the source's. */
export function asDamage(error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string' || code === 'ZSTD_error_memory_allocation') return error;
  if (!/^(ZSTD_error_|Z_|ERR_BUFFER_TOO_LARGE$)/.test(code)) return error;
  return new DamagedBytesError('The stored bytes cannot be decompressed', { cause: error });
}

/** No document of this size takes more than this when it is compressed. */
export function mostEncodedBytes(sizeBytes: number): number {
  return sizeBytes + Math.ceil(sizeBytes / 128) + 1024;
}
