import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { estimateTotal, progressText } from './progress.ts';

test('the time left follows from the speed of the step so far', () => {
  expect(progressText('blobs', { done: 40, total: 100, seconds: 4 })).toBe('blobs: 40 of 100, about 6 s left');
  expect(progressText('blobs', { done: 0, total: 100, seconds: 4 })).toBe('blobs: 0 of 100');
  expect(progressText('blobs', { done: 100, total: 100, seconds: 4 })).toBe('blobs: 100 of 100');
});

test('a step without a total has no time left', () => {
  expect(progressText('objects', { done: 40, total: null, seconds: 4 })).toBe('objects: 40');
});

test('a random id says about how many rows there are', () => {
  const ids = Array.from({ length: 10_000 }, () => randomUUID()).sort();
  for (const done of [1_000, 5_000, 9_999]) {
    const total = estimateTotal(done, ids[done - 1] as string);
    expect(Math.abs((total ?? 0) - ids.length)).toBeLessThan(ids.length / 4);
  }
  expect(estimateTotal(10_000, ids.at(-1) as string)).toBeGreaterThanOrEqual(10_000);
  expect(estimateTotal(5, 'proj/dev')).toBeNull();
});
