import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { openPiece, pieceKeyBytes, sealPiece, tagBytes } from './sealed-piece.ts';

const key = randomBytes(pieceKeyBytes);
const sealed = (bytes: Buffer, at = 3, name = 'name'): Buffer => {
  const piece = Buffer.from(bytes);
  const tag = sealPiece(key, at, name, piece);
  return Buffer.concat([piece, tag]);
};

describe('a sealed piece', () => {
  it.each([0, 1, 65_535, 65_536, 65_537, 524_288])('of %i bytes opens to what it was', (size) => {
    const bytes = randomBytes(size);
    const closed = sealed(bytes);
    expect(closed).toHaveLength(size + tagBytes);
    if (size > 100) expect(closed.includes(bytes.subarray(0, 32))).toBe(false);
    expect(openPiece(key, 3, 'name', closed)?.equals(bytes)).toBe(true);
  });

  const bytes = randomBytes(100_000);
  it.each<[string, (piece: Buffer) => Buffer | null]>([
    ['another key', (piece) => openPiece(randomBytes(pieceKeyBytes), 3, 'name', piece)],
    ['another number', (piece) => openPiece(key, 4, 'name', piece)],
    ['another name', (piece) => openPiece(key, 3, 'names', piece)],
    ['its end cut off', (piece) => openPiece(key, 3, 'name', piece.subarray(0, -1))],
    ['its tag alone', (piece) => openPiece(key, 3, 'name', piece.subarray(-tagBytes))],
    ['less than a tag', (piece) => openPiece(key, 3, 'name', piece.subarray(0, 5))],
    ['a byte more', (piece) => openPiece(key, 3, 'name', Buffer.concat([piece, Buffer.of(0)]))],
    ['nothing', () => openPiece(key, 3, 'name', Buffer.alloc(0))],
  ])('does not open with %s', (_label, open) => {
    expect(open(sealed(bytes))).toBeNull();
  });

  it('does not open with any bit changed', () => {
    for (const at of [0, 1, 65_536, 99_999, 100_000, 100_015]) {
      const piece = sealed(bytes);
      piece[at] = (piece[at] as number) ^ (1 << (at % 8));
      expect(openPiece(key, 3, 'name', piece)).toBeNull();
    }
  });
});
