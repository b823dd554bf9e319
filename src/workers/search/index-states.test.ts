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

test('stacks whose history failed are left out for an hour, few of them in one turn', async () => {
  const history = new HistoryRound();
  const stacks = Array.from({ length: 200 }, (_, at) => `stack${at}`);
  let statements = 0;
  /** Finds each stack once, then none, and begins again. */
  let found = [...stacks];
  const maybeOne = async () => {
    statements++;
    const id = found.shift();
    if (id === undefined) found = [...stacks];
    return id === undefined ? null : { id };
  };
  const db = { maybeOne } as unknown as Parameters<HistoryRound['next']>[0];
  for (const stack of stacks) {
    expect(await history.next(db)).toBe(stack);
    history.fail(stack);
  }
  expect(await history.next(db)).toBeNull();
  jest.advanceTimersByTime(60_000);
  statements = 0;
  expect(await history.next(db)).toBeNull();
  expect(statements).toBe(50);
  found.splice(0, 149);
  expect(await history.next(db)).toBeNull();
  jest.advanceTimersByTime(3_600_000);
  expect(await history.next(db)).toBe('stack0');
});
