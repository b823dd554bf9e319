import { createCipheriv, createDecipheriv } from 'node:crypto';

const algorithm = 'aes-256-gcm';
export const pieceKeyBytes = 32;
export const tagBytes = 16;
const nonceBytes = 12;
/** Large enough for speed, small enough for what OpenSSL makes of it to be given back at once. */
const sliceBytes = 64 * 1024;

/**
 * Encrypts a piece in place (AES-256-GCM) and returns its tag. The nonce is the number of the piece: a key is for one body, each of
 * whose numbers is used once. `name` is authenticated as well.
 */
export function sealPiece(key: Buffer, at: number, name: string, piece: Buffer): Buffer {
  const cipher = createCipheriv(algorithm, key, nonceOf(at));
  cipher.setAAD(Buffer.from(name));
  runInPlace(cipher, piece);
  cipher.final();
  return cipher.getAuthTag();
}

/** Decrypts a piece in place, whose tag stands at its end. Null when it is not what was sealed under this key, number and name. */
export function openPiece(key: Buffer, at: number, name: string, sealed: Buffer): Buffer | null {
  if (sealed.length < tagBytes) return null;
  const piece = sealed.subarray(0, sealed.length - tagBytes);
  const decipher = createDecipheriv(algorithm, key, nonceOf(at), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(piece.length));
  runInPlace(decipher, piece);
  try {
    decipher.final();
    return piece;
  } catch {
    return null;
  }
}

function nonceOf(at: number): Buffer {
  const nonce = Buffer.alloc(nonceBytes);
  nonce.writeUInt32BE(at, nonceBytes - 4);
  return nonce;
}

/**
 * Node writes into a new buffer each time. They are given back by hand: a hundred megabytes of them would wait for the garbage
 * collector.
 */
function runInPlace(cipher: { update(bytes: Buffer): Buffer }, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    const made = cipher.update(bytes.subarray(at, at + sliceBytes));
    made.copy(bytes, at);
    const memory = made.buffer as ArrayBuffer;
    if (memory.byteLength === made.length) memory.transfer(0);
  }
}
