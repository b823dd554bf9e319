import { describe, expect, test } from '@jest/globals';
import { pauseMs } from './pace.ts';

describe('the pace of the bundle', () => {
  /** Small stacks a second, if a write takes 40 ms. */
  const perSecond = (waitedSeconds: number | null) => 1_000 / (40 + pauseMs(20_000, 40, waitedSeconds));

  test.each([
    ['new stacks', null, 3, 4],
    ['changes that have just been made', 5, 3, 4],
    ['changes that wait', 20, 10, 16],
  ])('of %s', (_, waited, least, most) => {
    expect(perSecond(waited)).toBeGreaterThan(least);
    expect(perSecond(waited)).toBeLessThan(most);
  });

  test('has pauses of at most half a minute, and none after a slow write', () => {
    expect(pauseMs(1_000_000_000, 0, null)).toBe(30_000);
    expect(pauseMs(1_000, 10_000, null)).toBe(0);
  });
});
