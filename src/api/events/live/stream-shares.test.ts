import { expect, test } from '@jest/globals';
import { type StreamShare, StreamShares } from './stream-shares.ts';

const who = 'your organization has';

function takeAll(shares: StreamShares, tenant: string, most?: number): StreamShare[] {
  const taken: StreamShare[] = [];
  for (;;) {
    let share: StreamShare | null = null;
    try {
      share = shares.open();
      share.take(tenant, { who, ...(most === undefined ? {} : { most }) });
      taken.push(share);
    } catch (error) {
      expect(error).toMatchObject({ status: 429, code: 'too-many-streams', retryAfterSeconds: 30 });
      share?.end();
      return taken;
    }
  }
}

test('a single tenant gets most streams, and each later tenant still gets some', () => {
  const shares = new StreamShares(1_000);
  const counts = ['a', 'b', 'c', 'd'].map((tenant) => takeAll(shares, tenant).length);
  expect(counts[0]).toBe(750);
  for (const count of counts.slice(1)) expect(count).toBeGreaterThan(10);
  expect(takeAll(shares, 'a')).toEqual([]);
});

test('tenants that open streams alternately get the same number', () => {
  const shares = new StreamShares(700);
  const counts = { a: 0, b: 0 };
  for (let at = 0; at < 2_000; at++) {
    const tenant = at % 2 === 0 ? 'a' : 'b';
    const share = shares.open();
    try {
      share.take(tenant, { who });
      counts[tenant]++;
    } catch {
      share.end();
    }
  }
  expect(counts).toEqual({ a: 300, b: 300 });
});

test('an ended stream is released exactly once', () => {
  const shares = new StreamShares(8);
  const taken = takeAll(shares, 'a', 4);
  expect(taken).toHaveLength(4);
  taken[0]?.end();
  taken[0]?.end();
  expect(takeAll(shares, 'a', 4)).toHaveLength(1);
});

test('a stream counts for each organization of its topics', () => {
  const shares = new StreamShares(8);
  for (const share of takeAll(shares, 'a')) share.take('b', { who });
  expect(takeAll(shares, 'b')).toEqual([]);
});
