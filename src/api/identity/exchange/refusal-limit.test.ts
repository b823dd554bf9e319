import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { RefusalLimit } from './refusal-limit.ts';

beforeEach(() => {
  jest.useFakeTimers();
  // The cache takes 0 for no time.
  jest.advanceTimersByTime(1);
});
afterEach(() => {
  jest.useRealTimers();
});

function open() {
  const limit = new RefusalLimit();
  const counts: number[] = [];
  const report = async (leftOut: number): Promise<void> => void counts.push(leftOut);
  const take = (subject: string, issuer = 'issuer') => limit.take(issuer, subject, 'no policy', report);
  return { limit, counts, take };
}

test('the same refusal is recorded once in 10 s', () => {
  const { take } = open();
  expect([take('repo:acme/web'), take('repo:acme/web')]).toEqual(['refusal', null]);
  jest.advanceTimersByTime(10_001);
  expect(take('repo:acme/web')).toBe('refusal');
});

test('with ever new subjects, an issuer causes ten events a minute, one about the others, and one with their number at its end', () => {
  const { counts, take } = open();
  take('repo:evil/first');
  jest.advanceTimersByTime(10_000);
  const taken = Array.from({ length: 49 }, (_, at) => take(`repo:evil/${at}`));
  expect(taken.filter((each) => each === 'refusal')).toHaveLength(9);
  expect(taken.slice(9, 11)).toEqual(['further', null]);
  expect(take('repo:acme/web', 'another')).toBe('refusal');
  jest.advanceTimersByTime(49_999);
  expect(counts).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(counts).toEqual([40]);
  expect(take('repo:evil/x')).toBe('refusal');
  jest.advanceTimersByTime(60_000);
  expect(counts).toEqual([40]);
});

test('the number is recorded when the process ends, once', async () => {
  const { counts, limit, take } = open();
  for (let at = 0; at < 15; at++) take(`repo:evil/${at}`);
  await limit.close();
  jest.advanceTimersByTime(60_000);
  expect(counts).toEqual([5]);
});
