import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A new random token (256 bits) and the hash that is stored in its place. */
export function mintToken(prefix: string): { token: string; hash: Buffer } {
  const token = `${prefix}${randomBytes(32).toString('base64url')}`;
  return { token, hash: hashToken(token) };
}

/** SHA-256 of a token. Tokens are random, so no salt or stretching is needed. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Compares in constant time. */
export function sameHash(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
