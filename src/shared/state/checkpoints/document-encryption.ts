import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { DataKey } from '../../secrets/data-keys.ts';
import { keyIdBytes, keyIdOf, keyIdText } from '../../secrets/key-id.ts';
import { DamagedBytesError } from './document-codec.ts';

/**
 * Encrypted bytes consist of a header (format byte, id of the data key, salt) and chunks of 64 KiB (the last may be shorter), each
 * encrypted with AES-256-GCM and followed by its tag. Each object has its own key: HKDF of the data key and the salt. The nonce is the
 * chunk's number and a flag for the last chunk. The additional data is the header and the object's objectKey. Thus chunks cannot be
 * changed, omitted, repeated or reordered, the end cannot be cut off, and no object can replace another.
 */
const algorithm = 'aes-256-gcm';
const formatByte = 1;
const saltBytes = 32;
const headerBytes = 1 + keyIdBytes + saltBytes;
const chunkBytes = 64 * 1024;
const tagBytes = 16;

/** Runs in bounded memory. */
export async function* encryptBytes(
  { id, bytes }: DataKey,
  objectKey: string,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const header = Buffer.concat([Buffer.from([formatByte]), keyIdOf(id), randomBytes(saltBytes)]);
  const key = keyOfObject(bytes, header);
  const context = Buffer.concat([header, Buffer.from(objectKey)]);
  yield header;
  let number = 0;
  for await (const { chunk, isLast } of inChunks(source, chunkBytes, chunkBytes)) {
    const cipher = createCipheriv(algorithm, key, nonceOf(number++, isLast), { authTagLength: tagBytes });
    cipher.setAAD(context);
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()]);
  }
}

/**
 * Decrypts bytes `start` to `end` (exclusive) of the plaintext. Reads only the header and the chunks that contain them. Throws like
 * `decryptBytes`.
 */
export async function decryptRange(
  findKey: (id: string) => Promise<DataKey | null>,
  objectKey: string,
  { start, end, encryptedBytes }: { readonly start: number; readonly end: number; readonly encryptedBytes: number },
  read: (start: number, end: number) => Promise<Buffer>,
): Promise<Buffer> {
  const encryptedChunk = chunkBytes + tagBytes;
  const first = Math.floor(start / chunkBytes);
  const last = Math.ceil(end / chunkBytes) - 1;
  const total = Math.max(1, Math.ceil((encryptedBytes - headerBytes) / encryptedChunk));
  const [header, encrypted] = await Promise.all([
    read(0, headerBytes),
    read(headerBytes + first * encryptedChunk, Math.min(headerBytes + (last + 1) * encryptedChunk, encryptedBytes)),
  ]);
  const key = keyOfObject(await dataKeyOf(header, findKey), header);
  const context = Buffer.concat([header, Buffer.from(objectKey)]);
  const texts: Buffer[] = [];
  for (let number = first, at = 0; number <= last; number++, at += encryptedChunk) {
    texts.push(
      openChunk({ key, context, number, isLast: number === total - 1 }, encrypted.subarray(at, at + encryptedChunk)),
    );
  }
  return Buffer.concat(texts).subarray(start - first * chunkBytes, end - first * chunkBytes);
}

/** Yields only bytes that were encrypted for this objectKey. Throws DamagedBytesError, and the errors of `findKey` and `source`. */
export async function* decryptBytes(
  findKey: (id: string) => Promise<DataKey | null>,
  objectKey: string,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let key: Buffer = Buffer.alloc(0);
  let context: Buffer = Buffer.alloc(0);
  let number = 0;
  for await (const { chunk, isLast } of inChunks(source, headerBytes + chunkBytes + tagBytes, chunkBytes + tagBytes)) {
    let encrypted = chunk;
    if (number === 0) {
      const header = chunk.subarray(0, headerBytes);
      key = keyOfObject(await dataKeyOf(header, findKey), header);
      context = Buffer.concat([header, Buffer.from(objectKey)]);
      encrypted = chunk.subarray(headerBytes);
    }
    const text = openChunk({ key, context, number, isLast }, encrypted);
    number++;
    yield text;
  }
}

function openChunk(
  { key, context, number, isLast }: { key: Buffer; context: Buffer; number: number; isLast: boolean },
  encrypted: Buffer,
): Buffer {
  if (encrypted.length < tagBytes) throw new DamagedBytesError('The stored bytes end within an encrypted chunk');
  const decipher = createDecipheriv(algorithm, key, nonceOf(number, isLast), { authTagLength: tagBytes });
  decipher.setAAD(context);
  decipher.setAuthTag(encrypted.subarray(encrypted.length - tagBytes));
  const text = decipher.update(encrypted.subarray(0, encrypted.length - tagBytes));
  try {
    decipher.final();
  } catch (error) {
    throw new DamagedBytesError(`Chunk ${number} of the stored bytes is not the one that was encrypted here`, {
      cause: error,
    });
  }
  return text;
}

async function dataKeyOf(header: Buffer, findKey: (id: string) => Promise<DataKey | null>): Promise<Buffer> {
  if (header.length < headerBytes || header[0] !== formatByte) {
    throw new DamagedBytesError('The stored bytes do not start with the header of an encrypted document');
  }
  const id = keyIdText(header.subarray(1, 1 + keyIdBytes));
  const key = await findKey(id);
  if (key && key.stackId === null) return key.bytes;
  throw new DamagedBytesError(`The stored bytes refer to data key ${id}, which does not exist`);
}

function keyOfObject(dataKey: Buffer, header: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', dataKey, header.subarray(1 + keyIdBytes), 'holdfast document', 32));
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(number, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** The last chunk may be shorter; it is empty only if the source is empty. */
async function* inChunks(
  source: AsyncIterable<Buffer>,
  firstBytes: number,
  otherBytes: number,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let size = firstBytes;
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of source) {
    parts.push(part);
    bytes += part.length;
    // A full chunk may be the last.
    if (bytes <= size) continue;
    const all = parts.length === 1 ? part : Buffer.concat(parts, bytes);
    let at = 0;
    for (; all.length - at > size; size = otherBytes) {
      yield { chunk: all.subarray(at, at + size), isLast: false };
      at += size;
    }
    parts = [all.subarray(at)];
    bytes = all.length - at;
  }
  yield { chunk: Buffer.concat(parts, bytes), isLast: true };
}
