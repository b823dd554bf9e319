import { expect, test } from '@jest/globals';

test('passes', () => {
  process.once('exit', () => void Promise.reject(new Error('Nobody awaits this after the last test')));
  expect(1).toBe(1);
});
