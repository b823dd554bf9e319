import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 43 base-62 digits hold 256 bits. */
const randomDigits = 43;
const checksumDigits = 6;
const bodyPattern = new RegExp(`^[0-9A-Za-z]{${randomDigits + checksumDigits}}$`);

/** The form is known without a lookup. `whole`: our format and a correct checksum. `faulty`: our format and a wrong checksum. */
export type TokenForm = 'whole' | 'faulty' | 'other';

/** Returns 256 random bits, and the hash that is stored instead. The last 6 digits are a checksum of the rest. */
export function mintToken(prefix: string): { token: string; hash: Buffer } {
  const body = `${prefix}${makeRandomDigits()}`;
  const token = `${body}${checksumOf(body)}`;
  return { token, hash: hashToken(token) };
}

export function tokenForm(token: string, prefix: string): TokenForm {
  if (!token.startsWith(prefix)) return 'other';
  const body = token.slice(prefix.length);
  if (bodyPattern.test(body)) {
    return checksumOf(token.slice(0, -checksumDigits)) === token.slice(-checksumDigits) ? 'whole' : 'faulty';
  }
  return 'other';
}

/** Random tokens need no salt or stretching. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** Takes constant time. */
export function sameHash(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

function makeRandomDigits(): string {
  let text = '';
  while (text.length < randomDigits) {
    for (const byte of randomBytes(randomDigits)) {
      // Bytes from 248 up would make the first digits more likely than the others.
      if (byte < 248 && text.length < randomDigits) text += digits[byte % 62];
    }
  }
  return text;
}

/** CRC-32 in base 62. Detects typos; does not authenticate. */
function checksumOf(text: string): string {
  let remainder = crc32(text);
  let checksum = '';
  for (let digit = 0; digit < checksumDigits; digit++) {
    checksum = `${digits[remainder % 62]}${checksum}`;
    remainder = Math.floor(remainder / 62);
  }
  return checksum;
}
