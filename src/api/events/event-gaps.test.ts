import { expect, test } from '@jest/globals';
import { EventGaps } from './event-gaps.ts';

test('a gap is awaited for some seconds, below what was there before them', () => {
  const gaps = new EventGaps();
  expect(gaps.note('a', 9, 0)).toBe(-1);
  expect(gaps.note('a', 20, 4_999)).toBe(-1);
  expect(gaps.note('a', 30, 5_000)).toBe(9);
  expect(gaps.note('a', 40, 9_000)).toBe(9);
  expect(gaps.note('a', 50, 10_000)).toBe(30);
  expect(gaps.note('b', 50, 10_000)).toBe(-1);
});

test('a stream that always skips sequences arrives, however rarely it is read', () => {
  const gaps = new EventGaps();
  let settled = -1;
  for (let at = 0; at <= 60_000; at += 7_000) settled = gaps.note('a', at, at);
  expect(settled).toBe(49_000);
});

test('the updates that were read last are remembered', () => {
  const gaps = new EventGaps();
  gaps.note('a', 1, 0);
  for (let other = 0; other < 9_999; other++) gaps.note(`${other}`, 1, 1);
  expect(gaps.note('a', 1, 6_000)).toBe(1);
  gaps.note('one more', 1, 6_000);
  expect(gaps.note('0', 1, 9_000)).toBe(-1);
  expect(gaps.note('a', 1, 9_000)).toBe(1);
});
