import { expect, jest, test } from '@jest/globals';
import { followClock, readClock } from './clock.ts';

test('the clock is right for the first time that a page shows, also if the former page had none', () => {
  jest.useFakeTimers();
  try {
    for (let page = 0; page < 2; page++) {
      jest.advanceTimersByTime(3_600_000);
      const leave = followClock(() => {});
      expect(readClock().getTime()).toBe(Date.now());
      leave();
    }
  } finally {
    jest.useRealTimers();
  }
});
