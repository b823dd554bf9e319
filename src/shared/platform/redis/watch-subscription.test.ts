import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { watchSubscription } from './redis.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function open(answer: () => Promise<unknown>) {
  const cluster = { status: 'ready', subscribe: jest.fn(answer), disconnect: jest.fn() };
  const end = watchSubscription(cluster as unknown as Cluster, 'holdfast:done:1');
  return { cluster, end };
}

test('a connection that does not answer for 15 s is replaced', async () => {
  const { cluster, end } = open(() => new Promise(() => {}));
  await jest.advanceTimersByTimeAsync(15_000);
  expect(cluster.disconnect).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(2_500);
  expect(cluster.disconnect.mock.calls).toEqual([[true]]);
  end();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(cluster.disconnect).toHaveBeenCalledTimes(1);
});

test.each([
  ['an answer', () => Promise.resolve(1)],
  ['a refusal', () => Promise.reject(Object.assign(new Error('NOPERM'), { name: 'ReplyError' }))],
])('%s keeps it', async (_, answer) => {
  const { cluster } = open(answer);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(cluster.disconnect).not.toHaveBeenCalled();
});

test('a cluster that connects is left alone', async () => {
  const { cluster } = open(() => new Promise(() => {}));
  cluster.status = 'reconnecting';
  await jest.advanceTimersByTimeAsync(60_000);
  expect(cluster.subscribe).not.toHaveBeenCalled();
  expect(cluster.disconnect).not.toHaveBeenCalled();
});
