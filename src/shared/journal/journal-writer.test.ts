import { expect, test } from '@jest/globals';
import { isSnapshotDue } from './journal-writer.ts';

test('snapshots are 5,000 entries apart, and of a long journal a quarter of it', () => {
  const places: number[] = [];
  for (let count = 100; count <= 80_000; count += 100) if (isSnapshotDue(count, 100)) places.push(count);
  expect(places).toEqual([5_000, 10_000, 15_000, 20_000, 25_000, 31_300, 39_100, 48_900, 61_100, 76_300]);
});

test('a batch that passes a place makes it due, one that adds nothing does not', () => {
  expect(isSnapshotDue(12_000, 9_000)).toBe(true);
  expect(isSnapshotDue(5_000, 0)).toBe(false);
  expect(isSnapshotDue(9_999, 4_999)).toBe(false);
});
