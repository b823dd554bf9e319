import { createHash } from 'node:crypto';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** Level 3 takes about 3 ms/MB here; higher levels win little on state documents. */
export const zstdOptions = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };

/** A whole document as it is stored. */
export interface EncodedDocument {
  readonly sha256: Uint8Array;
  readonly sizeBytes: number;
  readonly bytes: Uint8Array;
}

/** Hashes and compresses in one go: for a thread of its own, or for little. */
export function encodeDocument(text: Buffer): EncodedDocument {
  const sha256 = createHash('sha256').update(text).digest();
  return { sha256, sizeBytes: text.length, bytes: zstdCompressSync(text, zstdOptions) };
}

/** The text of bytes that `encodeDocument`, or a stream with the same codec, has made. */
export function decodeDocument(bytes: Uint8Array): Buffer {
  return zstdDecompressSync(bytes);
}
