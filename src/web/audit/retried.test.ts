import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { TRPCClientError } from '@trpc/client';
import { retried } from './retried.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const failing = (code: string, times: number) => {
  const call = jest.fn(() =>
    call.mock.calls.length <= times
      ? Promise.reject(new TRPCClientError(code, { result: { error: { code: 0, message: code, data: { code } } } }))
      : Promise.resolve('part'),
  );
  return call;
};

test('a part that fails for a time is read again', async () => {
  const call = failing('SERVICE_UNAVAILABLE', 2);
  const part = retried(call);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(await part).toBe('part');
  expect(call).toHaveBeenCalledTimes(3);
});

test('a refusal is final', async () => {
  const call = failing('FORBIDDEN', 9);
  await expect(retried(call)).rejects.toThrow('FORBIDDEN');
  expect(call).toHaveBeenCalledTimes(1);
});
