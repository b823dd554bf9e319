import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { chunkKeyBytes, encryptChunk, openChunk, tagBytes } from './encrypted-chunk.ts';

const key = randomBytes(chunkKeyBytes);
const encrypted = (bytes: Buffer, at = 3, name = 'name'): Buffer => {
  const chunk = Buffer.from(bytes);
  const tag = encryptChunk(key, at, name, chunk);
  return Buffer.concat([chunk, tag]);
};

describe('an encrypted chunk', () => {
  it.each([0, 1, 65_535, 65_536, 65_537, 524_288])('of %i bytes is decrypted to its original content', (size) => {
    const bytes = randomBytes(size);
    const closed = encrypted(bytes);
    expect(closed).toHaveLength(size + tagBytes);
    if (size > 100) expect(closed.includes(bytes.subarray(0, 32))).toBe(false);
    expect(openChunk(key, 3, 'name', closed)?.equals(bytes)).toBe(true);
  });

  const bytes = randomBytes(100_000);
  it.each<[string, (chunk: Buffer) => Buffer | null]>([
    ['another key', (chunk) => openChunk(randomBytes(chunkKeyBytes), 3, 'name', chunk)],
    ['another number', (chunk) => openChunk(key, 4, 'name', chunk)],
    ['another name', (chunk) => openChunk(key, 3, 'names', chunk)],
    ['its end cut off', (chunk) => openChunk(key, 3, 'name', chunk.subarray(0, -1))],
    ['its tag alone', (chunk) => openChunk(key, 3, 'name', chunk.subarray(-tagBytes))],
    ['less than a tag', (chunk) => openChunk(key, 3, 'name', chunk.subarray(0, 5))],
    ['a byte more', (chunk) => openChunk(key, 3, 'name', Buffer.concat([chunk, Buffer.of(0)]))],
    ['nothing', () => openChunk(key, 3, 'name', Buffer.alloc(0))],
  ])('does not open with %s', (_label, open) => {
    expect(open(encrypted(bytes))).toBeNull();
  });

  it('does not open with any bit changed', () => {
    for (const at of [0, 1, 65_536, 99_999, 100_000, 100_015]) {
      const chunk = encrypted(bytes);
      chunk[at] = (chunk[at] as number) ^ (1 << (at % 8));
      expect(openChunk(key, 3, 'name', chunk)).toBeNull();
    }
  });
});
