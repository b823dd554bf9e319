import { LRUCache } from 'lru-cache';
import { sameHash } from '../../../shared/platform/crypto/secret-token.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import type { CachedLease } from '../../platform/http/request.ts';

interface Entry {
  readonly ref: StackRef;
  readonly tokenHash: Buffer;
  readonly lease: CachedLease;
}

const capacity = 10_000;

/**
 * Leases that this process has read from Postgres, to save a round trip. Only for calls whose own statement checks the lease again when it
 * commits: one replica cannot know whether a lease is still valid.
 */
export class LeaseCache {
  readonly #byUpdate = new LRUCache<string, Entry>({ max: capacity });

  find(updateId: string, ref: StackRef, tokenHash: Buffer): CachedLease | null {
    // `peek`, not `get`: a call that Postgres has not confirmed must not keep an entry.
    const entry = this.#byUpdate.peek(updateId);
    if (!entry || !sameHash(entry.tokenHash, tokenHash)) return null;
    const { organization, project, stack } = entry.ref;
    if (organization !== ref.organization || project !== ref.project || stack !== ref.stack) return null;
    return entry.lease;
  }

  remember(ref: StackRef, tokenHash: Buffer, lease: CachedLease): void {
    this.#byUpdate.set(lease.updateId, { ref, tokenHash, lease });
  }

  forget(updateId: string): void {
    this.#byUpdate.delete(updateId);
  }
}
