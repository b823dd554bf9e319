import { afterAll, expect, test } from '@jest/globals';

afterAll(() => {
  throw new Error('The hook fails');
});

test('passes', () => {
  expect(1).toBe(1);
});
