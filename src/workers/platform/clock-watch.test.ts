import { expect, test } from '@jest/globals';
import { type ClockLook, isTrusted, lookAfter } from './clock-watch.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const start = Date.parse('2026-11-30T00:00:00Z');

/** Looks at these times, in ms since the start. */
const looks = (...times: number[]): ClockLook | null =>
  times.reduce<ClockLook | null>((look, at) => lookAfter(look, start + at), null);

test.each<[string, number[], number, boolean]>([
  ['nothing has been seen yet', [], 0, true],
  ['the clock runs', [0, minute], 2 * minute, true],
  ['it was off for some hours', [0], day - minute, true],
  ['the clock has jumped since the last look', [0, minute], 8 * day, false],
  ['it has jumped before the last look', [0, 8 * day], 8 * day + minute, false],
  [
    'it is still ahead some looks later',
    [0, 8 * day, 8 * day + minute, 8 * day + 2 * minute],
    8 * day + 3 * minute,
    false,
  ],
  ['much time had really passed', [0, 8 * day, 8 * day + 4 * minute], 8 * day + 9 * minute, true],
  ['it was corrected', [0, 8 * day], minute, true],
  ['it was corrected, and looked at since', [0, 8 * day, minute], 2 * minute, true],
  ['it was corrected, and jumps again', [0, 8 * day, minute], 8 * day, false],
])('whether tasks may delete by age: %s', (_, before, now, isAllowed) => {
  expect(isTrusted(looks(...before), start + now)).toBe(isAllowed);
});
