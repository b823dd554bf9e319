import { expect, test } from '@jest/globals';
import { TRPCClientError } from '@trpc/client';
import {
  errorCode,
  isGone,
  isUnreached,
  mayRetry,
  ProxyAnswerError,
  proxyAnswer,
  repeatAfter,
  retryDelay,
} from './api-error.ts';

function answered(code: string, retryAfterSeconds: number | null = null): unknown {
  return TRPCClientError.from({ error: { message: 'no', code: -32_000, data: { code, retryAfterSeconds } } });
}
const unreached = new TRPCClientError('fetch failed');

test('reads are retried when no server answers, when it fails, or when it refuses them for now', () => {
  for (const error of [
    unreached,
    answered('INTERNAL_SERVER_ERROR'),
    answered('SERVICE_UNAVAILABLE', 5),
    answered('TOO_MANY_REQUESTS', 2),
    answered('TOO_MANY_REQUESTS'),
  ]) {
    expect(mayRetry(0, error)).toBe(true);
    expect(mayRetry(2, error)).toBe(true);
    expect(mayRetry(3, error)).toBe(false);
  }
  for (const code of ['FORBIDDEN', 'NOT_FOUND', 'UNAUTHORIZED', 'BAD_REQUEST', 'CONFLICT'])
    expect(mayRetry(0, answered(code))).toBe(false);
});

test('a page does not wait minutes before it retries', () => {
  expect(mayRetry(0, answered('TOO_MANY_REQUESTS', 60))).toBe(false);
  expect(retryDelay(0, answered('SERVICE_UNAVAILABLE', 600))).toBe(10_000);
});

test('the retry waits as long as the server says, and longer each time', () => {
  expect(retryDelay(0, answered('TOO_MANY_REQUESTS', 3))).toBe(3_000);
  expect([0, 1, 2].map((failures) => retryDelay(failures, unreached))).toEqual([1_000, 2_000, 4_000]);
  expect(retryDelay(2, answered('SERVICE_UNAVAILABLE', 1))).toBe(4_000);
});

test('an error from a procedure has a code, a missing answer has none', () => {
  expect(errorCode(answered('FORBIDDEN'))).toBe('FORBIDDEN');
  expect([unreached, answered('FORBIDDEN'), new Error('other')].map(isUnreached)).toEqual([true, false, false]);
});

test('what a proxy answers in place of the server is named, with its status', () => {
  const of = (status: number) => TRPCClientError.from(new ProxyAnswerError(status));
  expect([proxyAnswer(unreached), proxyAnswer(answered('FORBIDDEN'))]).toEqual([null, null]);
  expect(proxyAnswer(of(502))).toMatch(/in place of the server \(status 502\)/);
  expect(proxyAnswer(of(200))).toMatch(/page of its own \(status 200\).*reload/);
  expect([isUnreached(of(502)), mayRetry(0, of(502)), of(502).message]).toEqual([true, true, proxyAnswer(of(502))]);
});

test('a page retries by itself while that may help, but not before it is allowed to', () => {
  expect(repeatAfter(unreached)).toBe(10_000);
  expect(repeatAfter(answered('SERVICE_UNAVAILABLE', 2))).toBe(10_000);
  expect(repeatAfter(answered('TOO_MANY_REQUESTS', 90))).toBe(90_000);
  for (const error of [null, new Error('other'), ...['FORBIDDEN', 'BAD_REQUEST'].map((code) => answered(code))])
    expect(repeatAfter(error)).toBe(false);
});

test('data that is gone or forbidden is no longer shown; data that cannot be read for now stays', () => {
  expect(['NOT_FOUND', 'FORBIDDEN'].map((code) => isGone(answered(code)))).toEqual([true, true]);
  for (const error of [unreached, answered('UNAUTHORIZED'), answered('SERVICE_UNAVAILABLE')])
    expect(isGone(error)).toBe(false);
});

test('a procedure that a server of another release lacks is no missing item: another server may have it', () => {
  const error = TRPCClientError.from({
    error: { message: 'no', code: -32_004, data: { code: 'NOT_FOUND', kind: 'other-release' } },
  });
  expect([isGone(error), mayRetry(0, error), repeatAfter(error)]).toEqual([false, true, 10_000]);
});
