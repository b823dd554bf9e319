import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type CachedLease, LeaseCache } from './lease-cache.ts';

const ref = { organization: 'org', project: 'proj', stack: 'dev' };
const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();
const leaseOf = (updateId: string): CachedLease => ({
  updateId,
  stackId: 'stack',
  epoch: 1,
  journalVersion: 1,
  exclusive: true,
});

describe('known leases', () => {
  it('know a lease by update, stack and token together', () => {
    const known = new LeaseCache();
    const lease = leaseOf(randomUUID());
    known.remember(ref, hashOf('a'), lease);
    expect(known.find(lease.updateId, { ...ref }, hashOf('a'))).toBe(lease);
    expect(known.find(lease.updateId, ref, hashOf('b'))).toBeNull();
    expect(known.find(randomUUID(), ref, hashOf('a'))).toBeNull();
    for (const part of ['organization', 'project', 'stack'] as const) {
      expect(known.find(lease.updateId, { ...ref, [part]: 'other' }, hashOf('a'))).toBeNull();
    }
  });

  it('are bounded: those not looked up in Postgres for the longest go first', () => {
    const known = new LeaseCache();
    const ids = Array.from({ length: 10_001 }, () => randomUUID());
    for (const id of ids.slice(0, 10_000)) known.remember(ref, hashOf('a'), leaseOf(id));
    known.remember(ref, hashOf('a'), leaseOf(ids[0] as string));
    known.remember(ref, hashOf('a'), leaseOf(ids[10_000] as string));
    const there = ids.filter((id) => known.find(id, ref, hashOf('a')) !== null);
    expect(there).toEqual(ids.filter((_, at) => at !== 1));
  });
});
