import { expect, test } from '@jest/globals';
import { isSnapshotDue } from './journal-writer.ts';

const step = 5_000;

test('snapshots are due every 5,000 entries, and in a long journal whenever it has grown by a quarter', () => {
  const dueAt: number[] = [];
  for (let count = 100; count <= 80_000; count += 100) if (isSnapshotDue(step, count, 100)) dueAt.push(count);
  expect(dueAt).toEqual([5_000, 10_000, 15_000, 20_000, 25_000, 31_300, 39_100, 48_900, 61_100, 76_300]);
});

test('a batch that crosses a threshold makes a snapshot due, one that adds nothing does not', () => {
  expect(isSnapshotDue(step, 12_000, 9_000)).toBe(true);
  expect(isSnapshotDue(step, 5_000, 0)).toBe(false);
  expect(isSnapshotDue(step, 9_999, 4_999)).toBe(false);
});
