import { expect, test } from '@jest/globals';

test('fails, and so does its disposal', async () => {
  await using left = { [Symbol.asyncDispose]: () => Promise.reject(new Error('The disposal fails')) };
  expect(left).toBe('The test fails');
});
