import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';

test('does not await what fails', async () => {
  void Promise.reject(new Error('Nobody awaits this'));
  await setImmediate();
  expect(1).toBe(1);
});
