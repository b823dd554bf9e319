import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { DataKey } from '../secrets/data-keys.ts';
import { DamagedBytesError } from './document-codec.ts';
import { sealBytes, unsealBytes } from './document-seal.ts';

const chunk = 64 * 1024;
const header = 49;
const sealedChunk = chunk + 16;
const place = 'checkpoints/aa/1';

const newKey = (stackId: string | null = null): DataKey => ({ id: randomUUID(), stackId, bytes: randomBytes(32) });
const key = newKey();

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

const sealed = (text: Buffer, by = key, at = place, size = 16_384) => collect(sealBytes(by, at, pieces(text, size)));
const unsealed = (bytes: Buffer, keys: readonly DataKey[] = [key], at = place, size = 16_384) =>
  collect(unsealBytes(async (id) => keys.find((known) => known.id === id) ?? null, at, pieces(bytes, size)));

const lengths = fc.oneof(
  fc.constantFrom(0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 7),
  fc.integer({ min: 0, max: 300_000 }),
);
const sizes = fc.constantFrom(1_000, 16_384, chunk, sealedChunk, 1_000_000);

test('what was sealed comes back, whatever the pieces it passes in', async () => {
  await fc.assert(
    fc.asyncProperty(lengths, sizes, sizes, async (length, written, read) => {
      const text = randomBytes(length);
      const bytes = await sealed(text, key, place, written);
      expect(bytes.length).toBe(header + length + 16 * Math.max(1, Math.ceil(length / chunk)));
      expect((await unsealed(bytes, [key], place, read)).equals(text)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

test('the same bytes are sealed otherwise each time, and show nothing of themselves', async () => {
  const text = Buffer.alloc(100_000, 'secret');
  const [first, second] = [await sealed(text), await sealed(text)];
  expect(first.subarray(17).equals(second.subarray(17))).toBe(false);
  for (const bytes of [first, second]) expect(bytes.includes('secret')).toBe(false);
});

describe('refused as damage are', () => {
  const text = randomBytes(3 * chunk);
  const refuse = (bytes: Buffer, ...rest: [(readonly DataKey[])?, string?]) =>
    expect(unsealed(bytes, ...rest)).rejects.toThrow(DamagedBytesError);
  const chunkAt = (bytes: Buffer, number: number) =>
    bytes.subarray(header + number * sealedChunk, header + (number + 1) * sealedChunk);

  test('bytes of which one bit was changed', async () => {
    const bytes = await sealed(text);
    const positions = [
      ...Array(header).keys(),
      header,
      header + sealedChunk - 1,
      header + sealedChunk,
      bytes.length - 1,
    ];
    for (const position of positions) {
      const changed = Buffer.from(bytes);
      changed[position] = (changed[position] as number) ^ (1 << (position % 8));
      await refuse(changed);
    }
  });

  test('bytes that were cut, between chunks as well, or to which something was added', async () => {
    const bytes = await sealed(text);
    const ends = [
      0,
      1,
      header - 1,
      header,
      header + 15,
      header + sealedChunk,
      header + 2 * sealedChunk,
      bytes.length - 1,
    ];
    for (const end of ends) await refuse(bytes.subarray(0, end));
    await refuse(Buffer.concat([bytes, Buffer.from([0])]));
    await refuse(Buffer.concat([bytes, chunkAt(bytes, 2)]));
  });

  test('chunks in another order, twice, left out, or of another document', async () => {
    const [bytes, other] = [await sealed(text), await sealed(text)];
    const head = bytes.subarray(0, header);
    const [first, second, third] = [chunkAt(bytes, 0), chunkAt(bytes, 1), chunkAt(bytes, 2)];
    expect((await unsealed(Buffer.concat([head, first, second, third]))).equals(text)).toBe(true);
    await refuse(Buffer.concat([head, second, first, third]));
    await refuse(Buffer.concat([head, first, first, second, third]));
    await refuse(Buffer.concat([head, first, third]));
    await refuse(Buffer.concat([head, first, chunkAt(other, 1), third]));
  });

  test('a whole document in the place of another, or under another key', async () => {
    const bytes = await sealed(text);
    await refuse(bytes, [key], 'checkpoints/aa/2');
    await refuse(bytes, []);
    await refuse(bytes, [{ ...key, bytes: randomBytes(32) }]);
    const ofStack = newKey('a-stack');
    await refuse(await sealed(text, ofStack), [ofStack]);
  });
});

test('a fault of the source is no damage, and a reader may stop early', async () => {
  const bytes = await sealed(randomBytes(3 * chunk));
  const failing = async function* (): AsyncGenerator<Buffer> {
    yield bytes.subarray(0, 100_000);
    throw new RangeError('the line broke');
  };
  await expect(collect(unsealBytes(async () => key, place, failing()))).rejects.toThrow(RangeError);
  let isClosed = false;
  const watched = async function* (): AsyncGenerator<Buffer> {
    try {
      yield* pieces(bytes, 16_384);
    } finally {
      isClosed = true;
    }
  };
  for await (const part of unsealBytes(async () => key, place, watched())) {
    expect(part.length).toBe(chunk);
    break;
  }
  expect(isClosed).toBe(true);
});
