import { expect, test } from '@jest/globals';
import { clockTime, exactTime, shortTime } from './time-display.ts';

const now = new Date('2026-03-01T12:00:00Z');

test('a time in a row is short, with the year only where it is needed', () => {
  const near = shortTime(new Date('2026-02-03T23:05:00Z'), 'utc', now);
  expect([near.includes('05'), near.includes('2026')]).toEqual([true, false]);
  const far = shortTime(new Date('2025-02-03T23:05:00Z'), 'utc', now);
  expect([far.includes('05'), far.includes('2025')]).toEqual([false, true]);
});

test('an exact time is in UTC, too', () => {
  expect(exactTime(now)).toMatch(/2026.*UTC/);
});

test('a time of day has 24 hours, the first of which is 0, in the chosen zone', () => {
  expect(clockTime(new Date('2026-03-01T00:00:05Z'), 'utc')).toBe('00:00:05');
  expect(clockTime(new Date('2026-03-01T23:59:59Z'), 'utc')).toBe('23:59:59');
});
