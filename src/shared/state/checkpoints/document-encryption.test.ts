import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { DataKey } from '../../secrets/data-keys.ts';
import { DamagedBytesError } from './document-codec.ts';
import { decryptBytes, decryptRange, encryptBytes } from './document-encryption.ts';

const chunk = 64 * 1024;
const header = 49;
const encryptedChunk = chunk + 16;
const objectKey = 'checkpoints/aa/1';

const newKey = (stackId: string | null = null): DataKey => ({ id: randomUUID(), stackId, bytes: randomBytes(32) });
const key = newKey();

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

const encrypted = (text: Buffer, by = key, at = objectKey, size = 16_384) =>
  collect(encryptBytes(by, at, chunksOf(text, size)));
const unencrypted = (bytes: Buffer, keys: readonly DataKey[] = [key], at = objectKey, size = 16_384) =>
  collect(decryptBytes(async (id) => keys.find((known) => known.id === id) ?? null, at, chunksOf(bytes, size)));

const lengths = fc.oneof(
  fc.constantFrom(0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 7),
  fc.integer({ min: 0, max: 300_000 }),
);
const sizes = fc.constantFrom(1_000, 16_384, chunk, encryptedChunk, 1_000_000);

test('decrypts what was encrypted, for any chunk sizes', async () => {
  await fc.assert(
    fc.asyncProperty(lengths, sizes, sizes, async (length, written, read) => {
      const text = randomBytes(length);
      const bytes = await encrypted(text, key, objectKey, written);
      expect(bytes.length).toBe(header + length + 16 * Math.max(1, Math.ceil(length / chunk)));
      expect((await unencrypted(bytes, [key], objectKey, read)).equals(text)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

/** Also counts the bytes that were read for the range. */
async function decryptedRange(bytes: Buffer, start: number, end: number, at = objectKey) {
  let readBytes = 0;
  const read = async (from: number, to: number): Promise<Buffer> => {
    readBytes += to - from;
    return bytes.subarray(from, to);
  };
  const found = await decryptRange(async () => key, at, { start, end, encryptedBytes: bytes.length }, read);
  return { found, readBytes };
}

test('decrypts any range, and reads little more than its chunks', async () => {
  const property = fc.asyncProperty(
    lengths.filter((length) => length > 0),
    fc.nat(),
    fc.nat(),
    async (length, one, other) => {
      const text = randomBytes(length);
      const bytes = await encrypted(text);
      const [start, last] = [one % length, other % length].sort((a, b) => a - b) as [number, number];
      const { found, readBytes } = await decryptedRange(bytes, start, last + 1);
      expect(found.equals(text.subarray(start, last + 1))).toBe(true);
      expect(readBytes).toBeLessThanOrEqual(header + (Math.ceil((last + 1 - start) / chunk) + 1) * encryptedChunk);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('a range of bytes that were changed, cut off, or moved is damage', async () => {
  const bytes = await encrypted(randomBytes(200_000));
  const changed = Buffer.from(bytes);
  changed.writeUInt8(changed.readUInt8(header + encryptedChunk + 5) ^ 1, header + encryptedChunk + 5);
  expect((await decryptedRange(changed, 0, 100)).found).toHaveLength(100);
  const cut = bytes.subarray(0, header + 2 * encryptedChunk);
  const swapped = Buffer.concat([
    bytes.subarray(0, header),
    bytes.subarray(header + encryptedChunk, header + 2 * encryptedChunk),
    bytes.subarray(header, header + encryptedChunk),
    bytes.subarray(header + 2 * encryptedChunk),
  ]);
  const ranges = [
    [changed, chunk, chunk + 10],
    [cut, chunk, chunk + 10],
    [swapped, 0, 10],
  ] as const;
  for (const [damaged, start, end] of ranges)
    await expect(decryptedRange(damaged, start, end)).rejects.toThrow(DamagedBytesError);
  await expect(decryptedRange(bytes, 0, 10, 'checkpoints/aa/2')).rejects.toThrow(DamagedBytesError);
});

test('encrypts the same bytes differently each time, and reveals nothing of them', async () => {
  const text = Buffer.alloc(100_000, 'secret');
  const [first, second] = [await encrypted(text), await encrypted(text)];
  expect(first.subarray(17).equals(second.subarray(17))).toBe(false);
  for (const bytes of [first, second]) expect(bytes.includes('secret')).toBe(false);
});

describe('rejects as damaged', () => {
  const text = randomBytes(3 * chunk);
  const expectDamaged = (bytes: Buffer, ...rest: [(readonly DataKey[])?, string?]) =>
    expect(unencrypted(bytes, ...rest)).rejects.toThrow(DamagedBytesError);
  const chunkAt = (bytes: Buffer, number: number) =>
    bytes.subarray(header + number * encryptedChunk, header + (number + 1) * encryptedChunk);

  test('bytes with one changed bit', async () => {
    const bytes = await encrypted(text);
    const positions = [
      ...Array(header).keys(),
      header,
      header + encryptedChunk - 1,
      header + encryptedChunk,
      bytes.length - 1,
    ];
    for (const position of positions) {
      const changed = Buffer.from(bytes);
      changed[position] = (changed[position] as number) ^ (1 << (position % 8));
      await expectDamaged(changed);
    }
  });

  test('bytes that were truncated, even between chunks, or extended', async () => {
    const bytes = await encrypted(text);
    const ends = [
      0,
      1,
      header - 1,
      header,
      header + 15,
      header + encryptedChunk,
      header + 2 * encryptedChunk,
      bytes.length - 1,
    ];
    for (const end of ends) await expectDamaged(bytes.subarray(0, end));
    await expectDamaged(Buffer.concat([bytes, Buffer.from([0])]));
    await expectDamaged(Buffer.concat([bytes, chunkAt(bytes, 2)]));
  });

  test('chunks that were reordered, repeated, omitted, or taken from another document', async () => {
    const [bytes, other] = [await encrypted(text), await encrypted(text)];
    const head = bytes.subarray(0, header);
    const [first, second, third] = [chunkAt(bytes, 0), chunkAt(bytes, 1), chunkAt(bytes, 2)];
    expect((await unencrypted(Buffer.concat([head, first, second, third]))).equals(text)).toBe(true);
    await expectDamaged(Buffer.concat([head, second, first, third]));
    await expectDamaged(Buffer.concat([head, first, first, second, third]));
    await expectDamaged(Buffer.concat([head, first, third]));
    await expectDamaged(Buffer.concat([head, first, chunkAt(other, 1), third]));
  });

  test('a whole document in place of another, or under another key', async () => {
    const bytes = await encrypted(text);
    await expectDamaged(bytes, [key], 'checkpoints/aa/2');
    await expectDamaged(bytes, []);
    await expectDamaged(bytes, [{ ...key, bytes: randomBytes(32) }]);
    const ofStack = newKey('a-stack');
    await expectDamaged(await encrypted(text, ofStack), [ofStack]);
  });
});

test('rethrows errors of the source unchanged, and ends it when the reader stops early', async () => {
  const bytes = await encrypted(randomBytes(3 * chunk));
  const failing = async function* (): AsyncGenerator<Buffer> {
    yield bytes.subarray(0, 100_000);
    throw new RangeError('the line broke');
  };
  await expect(collect(decryptBytes(async () => key, objectKey, failing()))).rejects.toThrow(RangeError);
  let isClosed = false;
  const watched = async function* (): AsyncGenerator<Buffer> {
    try {
      yield* chunksOf(bytes, 16_384);
    } finally {
      isClosed = true;
    }
  };
  for await (const part of decryptBytes(async () => key, objectKey, watched())) {
    expect(part.length).toBe(chunk);
    break;
  }
  expect(isClosed).toBe(true);
});
