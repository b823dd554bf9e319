import { expect, test } from '@jest/globals';
import { positionOf, stepFrom } from './list-choice.ts';

test('the chosen entry stays chosen when others come before it, and none takes its place when it is gone', () => {
  const fixed = ['rules', 'add a rule', 'search'];
  const chosen = stepFrom(fixed, positionOf(fixed, null, 0), 1);
  expect(chosen).toBe('add a rule');
  const answered = ['stack a', 'stack b', ...fixed];
  expect(answered[positionOf(answered, chosen, 0)]).toBe('add a rule');
  expect(positionOf(['stack a', 'search'], chosen, 0)).toBe(-1);
});

test('begins with the first entry or with none, and goes round', () => {
  expect([positionOf(['a', 'b'], null, 0), positionOf(['a', 'b'], null, -1), positionOf([], null, 0)]).toEqual([
    0, -1, -1,
  ]);
  expect([stepFrom(['a', 'b'], 1, 1), stepFrom(['a', 'b'], 0, -1), stepFrom(['a', 'b'], -1, 1)]).toEqual([
    'a',
    'b',
    'a',
  ]);
  expect([stepFrom(['a', 'b'], -1, -1), stepFrom([], -1, 1)]).toEqual(['b', null]);
});
