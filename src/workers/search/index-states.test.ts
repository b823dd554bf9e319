import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { HistoryRound } from './index-states.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('the history has a turn when nothing else was due, and about every half minute otherwise', () => {
  const history = new HistoryRound();
  expect(history.takesTurn(0)).toBe(true);
  let turns = 0;
  for (let round = 0; round < 95; round++) {
    jest.advanceTimersByTime(1_000);
    if (history.takesTurn(1)) turns++;
  }
  expect(turns).toBe(3);
});
