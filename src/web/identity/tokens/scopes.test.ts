import { expect, test } from '@jest/globals';
import { areWhole, newScope, withoutScope } from './scopes.ts';

test('one of two scopes that are the same is removed', () => {
  expect(withoutScope([newScope, newScope], 1)).toEqual([newScope]);
});

test('a token is not limited to nothing', () => {
  expect(areWhole([newScope, newScope])).toBe(true);
  for (const scopes of [[], [newScope, { ...newScope, permissions: [] }], [{ ...newScope, stacks: ' ' }]])
    expect(areWhole(scopes)).toBe(false);
});
