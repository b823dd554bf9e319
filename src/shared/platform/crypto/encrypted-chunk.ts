import { createCipheriv, createDecipheriv } from 'node:crypto';

const algorithm = 'aes-256-gcm';
export const chunkKeyBytes = 32;
export const tagBytes = 16;
const nonceBytes = 12;
/** Large enough to be fast, small enough to free each output buffer at once. */
const sliceBytes = 64 * 1024;

/**
 * Encrypts in place (AES-256-GCM) and returns the tag. The nonce is the chunk number: each key encrypts one body and uses each number once.
 * `name` is authenticated as well.
 */
export function encryptChunk(key: Buffer, at: number, name: string, chunk: Buffer): Buffer {
  const cipher = createCipheriv(algorithm, key, nonceOf(at));
  cipher.setAAD(Buffer.from(name));
  runInPlace(cipher, chunk);
  cipher.final();
  return cipher.getAuthTag();
}

/** Decrypts in place. `encrypted` ends with the tag. Returns null if the bytes were not encrypted with this key, number and name. */
export function openChunk(key: Buffer, at: number, name: string, encrypted: Buffer): Buffer | null {
  if (encrypted.length < tagBytes) return null;
  const chunk = encrypted.subarray(0, encrypted.length - tagBytes);
  const decipher = createDecipheriv(algorithm, key, nonceOf(at), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(encrypted.subarray(chunk.length));
  runInPlace(decipher, chunk);
  try {
    decipher.final();
    return chunk;
  } catch {
    return null;
  }
}

function nonceOf(at: number): Buffer {
  const nonce = Buffer.alloc(nonceBytes);
  nonce.writeUInt32BE(at, nonceBytes - 4);
  return nonce;
}

/** Node returns a new buffer from each update. Unless freed at once, a hundred megabytes would wait for the garbage collector. */
function runInPlace(cipher: { update(bytes: Buffer): Buffer }, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    const output = cipher.update(bytes.subarray(at, at + sliceBytes));
    output.copy(bytes, at);
    const memory = output.buffer as ArrayBuffer;
    if (memory.byteLength === output.length) memory.transfer(0);
  }
}
