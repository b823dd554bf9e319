import { expect, test } from '@jest/globals';
import { RefusalLimit } from './refusal-limit.ts';

test('the same refusal is recorded once in 10 s', () => {
  let now = 1;
  const limit = new RefusalLimit(() => now);
  const take = () => limit.take('issuer', 'repo:acme/web', 'no policy');
  expect([take(), take()]).toEqual([{ what: 'refusal', leftOut: 0 }, null]);
  now += 10_001;
  expect(take()).toEqual({ what: 'refusal', leftOut: 0 });
});

test('with ever new subjects, an issuer causes ten events a minute, and one about the others; the next minute begins with their number', () => {
  let now = 1;
  const limit = new RefusalLimit(() => now);
  const take = (subject: string, issuer = 'issuer') => limit.take(issuer, subject, 'no policy');
  const taken = Array.from({ length: 50 }, (_, at) => take(`repo:evil/${at}`));
  expect(taken.filter((each) => each?.what === 'refusal')).toHaveLength(10);
  expect(taken.slice(10, 12)).toEqual([{ what: 'further', leftOut: 0 }, null]);
  expect(take('repo:acme/web', 'another')).toEqual({ what: 'refusal', leftOut: 0 });
  now += 60_000;
  expect([take('repo:evil/x'), take('repo:evil/y')]).toEqual([
    { what: 'refusal', leftOut: 40 },
    { what: 'refusal', leftOut: 0 },
  ]);
});
