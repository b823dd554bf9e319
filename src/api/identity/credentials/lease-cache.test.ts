import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { CachedLease } from '../../platform/http/request.ts';
import { LeaseCache } from './lease-cache.ts';

const ref = { organization: 'org', project: 'proj', stack: 'dev' };
const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();
const leaseOf = (updateId: string): CachedLease => ({
  updateId,
  stackId: 'stack',
  epoch: 1,
  journalVersion: 1,
  exclusive: true,
  baseBytes: 0,
  dryRun: false,
});

describe('LeaseCache', () => {
  it('finds a lease only by its update, stack and token together', () => {
    const cache = new LeaseCache();
    const lease = leaseOf(randomUUID());
    cache.remember(ref, hashOf('a'), lease);
    expect(cache.find(lease.updateId, { ...ref }, hashOf('a'))).toBe(lease);
    expect(cache.find(lease.updateId, ref, hashOf('b'))).toBeNull();
    expect(cache.find(randomUUID(), ref, hashOf('a'))).toBeNull();
    for (const part of ['organization', 'project', 'stack'] as const) {
      expect(cache.find(lease.updateId, { ...ref, [part]: 'other' }, hashOf('a'))).toBeNull();
    }
  });

  it('is bounded: evicts the lease that was remembered the longest ago', () => {
    const cache = new LeaseCache();
    const ids = Array.from({ length: 10_001 }, () => randomUUID());
    for (const id of ids.slice(0, 10_000)) cache.remember(ref, hashOf('a'), leaseOf(id));
    cache.remember(ref, hashOf('a'), leaseOf(ids[0] as string));
    cache.remember(ref, hashOf('a'), leaseOf(ids[10_000] as string));
    const cached = ids.filter((id) => cache.find(id, ref, hashOf('a')) !== null);
    expect(cached).toEqual(ids.filter((_, index) => index !== 1));
  });
});
