import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { nextSlice, slicesOf } from '../../../platform/slices/slices.ts';
import { asDamage, DamagedBytesError, type DocumentDigest } from '../document-codec.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/**
 * The window covers a chunk and its dictionary, up to 2 MiB each. With the default tables of this level, most of the dictionary would not
 * be found. Higher levels and larger tables take two to four times the CPU for the same bytes.
 */
const params = {
  [constants.ZSTD_c_compressionLevel]: 3,
  [constants.ZSTD_c_windowLog]: 22,
  [constants.ZSTD_c_hashLog]: 20,
  [constants.ZSTD_c_checksumFlag]: 1,
};

const encodedChunkBytes = 256 * 1024;

/** Compresses outside the event loop, with the text of the base as the dictionary. */
export function encodeChunk(text: Buffer, dictionary: Buffer | null): Promise<Buffer> {
  return compress(text, { params, chunkSize: encodedChunkBytes, ...(dictionary && { dictionary }) });
}

/** Throws DamagedBytesError. */
export async function decodeChunk(bytes: Buffer, dictionary: Buffer | null, sizeBytes: number): Promise<Buffer> {
  // One output chunk with spare space: each further chunk, even after an exactly full one, takes another round trip to a thread.
  const options = { maxOutputLength: Math.max(1, sizeBytes), chunkSize: sizeBytes + 64 };
  try {
    return await decompress(bytes, { ...options, ...(dictionary && { dictionary }) });
  } catch (error) {
    throw asDamage(error);
  }
}

export async function hashInSlices(text: Buffer): Promise<Buffer> {
  const hash = createHash('sha256');
  for (const slice of slicesOf(text)) {
    if (slice !== text) await nextSlice();
    hash.update(slice);
  }
  return hash.digest();
}

/** Throws DamagedBytesError. */
export async function checkChunk(text: Buffer, { sha256, sizeBytes }: DocumentDigest): Promise<void> {
  if (text.length === sizeBytes && (await hashInSlices(text)).equals(sha256)) return;
  throw new DamagedBytesError('A chunk of the document is not the one that was written');
}
