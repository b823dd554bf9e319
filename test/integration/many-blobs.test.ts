import { expect, test } from '@jest/globals';
import { copyManyBlobs } from '../../bench/support/many-blobs.ts';

// `npm run bench blob-copy` does the same with a million.

test('ten times as many blobs take ten times as many calls to copy, and no more memory', async () => {
  // Loads code.
  await copyManyBlobs(10_000);
  const few = await copyManyBlobs(10_000);
  const many = await copyManyBlobs(100_000);
  expect([few.blobs, many.blobs]).toEqual([10_000, 100_000]);
  expect([few.copied, many.copied]).toEqual([8_000, 80_000]);
  for (const [name, count] of Object.entries(few.calls)) {
    const ratio = (many.calls[name] ?? 0) / count;
    expect({ name, isLinear: ratio > 8 && ratio < 10.5 }).toEqual({ name, isLinear: true });
  }
  const floor = 4 * 2 ** 20;
  expect((many.heapBytes + floor) / (few.heapBytes + floor)).toBeLessThan(2);
});
