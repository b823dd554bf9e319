import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 43 digits of base 62 have 256 bits. */
const randomDigits = 43;
const checksumDigits = 6;
const bodyPattern = new RegExp(`^[0-9A-Za-z]{${randomDigits + checksumDigits}}$`);
/** What builds before the checksum have minted. */
const olderBodyPattern = /^[0-9A-Za-z_-]{43}$/;

/**
 * What the text of a token tells without asking anybody: `whole` has our form and its checksum is right, `faulty` has our form
 * and a wrong checksum, `older` has the form of builds before the checksum, `other` is anything else.
 */
export type TokenForm = 'whole' | 'faulty' | 'older' | 'other';

/** A new random token (256 bits) and the hash that is stored in its place. Its last 6 digits are a checksum of all before. */
export function mintToken(prefix: string): { token: string; hash: Buffer } {
  const body = `${prefix}${makeRandomDigits()}`;
  const token = `${body}${checksumOf(body)}`;
  return { token, hash: hashToken(token) };
}

/** The form of a token that should begin with `prefix`. */
export function tokenForm(token: string, prefix: string): TokenForm {
  if (!token.startsWith(prefix)) return 'other';
  const body = token.slice(prefix.length);
  if (bodyPattern.test(body)) {
    return checksumOf(token.slice(0, -checksumDigits)) === token.slice(-checksumDigits) ? 'whole' : 'faulty';
  }
  return olderBodyPattern.test(body) ? 'older' : 'other';
}

/** SHA-256 of a token. Tokens are random, so no salt or stretching is needed. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Compares in constant time. */
export function sameHash(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

function makeRandomDigits(): string {
  let text = '';
  while (text.length < randomDigits) {
    for (const byte of randomBytes(randomDigits)) {
      // Bytes from 248 on would make the first digits more likely than the others.
      if (byte < 248 && text.length < randomDigits) text += digits[byte % 62];
    }
  }
  return text;
}

/** CRC-32 in base 62. It finds typos; it proves nothing. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let checksum = '';
  for (let digit = 0; digit < checksumDigits; digit++) {
    checksum = `${digits[rest % 62]}${checksum}`;
    rest = Math.floor(rest / 62);
  }
  return checksum;
}
