import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { nextTurn, slicesOf } from '../platform/turns/turns.ts';
import { asDamage, DamagedBytesError, type DocumentDigest } from './document-codec.ts';

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/**
 * The window covers a piece and its dictionary, which have up to 4 MiB each. With the tables of the default, as small as the level
 * suggests, most of the dictionary would not be found. Higher levels take twice the time for a few per cent.
 */
const params = {
  [constants.ZSTD_c_compressionLevel]: 5,
  [constants.ZSTD_c_windowLog]: 23,
  [constants.ZSTD_c_hashLog]: 22,
  [constants.ZSTD_c_checksumFlag]: 1,
};

/** Chunk size of the encoder's output, in bytes. */
const encodedChunkBytes = 256 * 1024;

/** Compresses a piece, outside of the event loop, with the text of its base as dictionary; null for none. */
export function encodePiece(text: Buffer, dictionary: Buffer | null): Promise<Buffer> {
  return compress(text, { params, chunkSize: encodedChunkBytes, ...(dictionary && { dictionary }) });
}

/** Reverses `encodePiece`. Throws DamagedBytesError. */
export async function decodePiece(bytes: Buffer, dictionary: Buffer | null, sizeBytes: number): Promise<Buffer> {
  // One chunk: each would be a round trip to another thread.
  const options = { maxOutputLength: Math.max(1, sizeBytes), chunkSize: Math.max(64, sizeBytes) };
  try {
    return await decompress(bytes, { ...options, ...(dictionary && { dictionary }) });
  } catch (error) {
    throw asDamage(error);
  }
}

/** SHA-256 of a text in memory, in several turns of the event loop if it is long. */
export async function hashInTurns(text: Buffer): Promise<Buffer> {
  const hash = createHash('sha256');
  for (const slice of slicesOf(text)) {
    if (slice !== text) await nextTurn();
    hash.update(slice);
  }
  return hash.digest();
}

/** Throws DamagedBytesError unless the text of a piece is the one that was cut out. */
export async function checkPiece(text: Buffer, { sha256, sizeBytes }: DocumentDigest): Promise<void> {
  if (text.length === sizeBytes && (await hashInTurns(text)).equals(sha256)) return;
  throw new DamagedBytesError('A piece of the document is not the one that was written');
}
