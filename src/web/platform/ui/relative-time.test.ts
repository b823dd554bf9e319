import { describe, expect, test } from '@jest/globals';
import { duration, relativeTime } from './relative-time.ts';

const now = new Date('2026-05-01T12:00:00Z');
const ago = (seconds: number): string => relativeTime(new Date(now.getTime() - seconds * 1000), now);

describe('relativeTime', () => {
  test.each([
    [0, 'just now'],
    [59, 'just now'],
    [60, '1 minute ago'],
    [3_599, '59 minutes ago'],
    [7_200, '2 hours ago'],
    [86_400, '24 hours ago'],
    // Neither "yesterday" nor "tomorrow": it may be another day.
    [47 * 3_600, '47 hours ago'],
    [-47 * 3_600, 'in 47 hours'],
    [48 * 3_600, '2 days ago'],
    [3 * 86_400, '3 days ago'],
    [45 * 86_400, '45 days ago'],
    [-59 * 86_400, 'in 59 days'],
    [70 * 86_400, '2 months ago'],
    [400 * 86_400, '13 months ago'],
    [800 * 86_400, '2 years ago'],
    // The clock of the server may be ahead.
    [-5, 'just now'],
  ])('%d seconds ago is "%s"', (seconds, text) => expect(ago(seconds)).toBe(text));
});

describe('duration', () => {
  test.each([
    [0, '0 s'],
    [0.2, '<1 s'],
    [42, '42 s'],
    [120, '2 min'],
    [200, '3 min 20 s'],
    [7_500, '2 h 5 min'],
    [36 * 3_600, '36 h'],
    [76 * 3_600, '3 d 4 h'],
    [1_400 * 86_400, '1,400 d'],
    // A clock that was set back meanwhile.
    [-3_600, '0 s'],
  ])('%d seconds are "%s"', (seconds, text) => expect(duration(seconds)).toBe(text));
});
