import { type BlobStore, BlobStoreUnavailableError } from '../../shared/platform/blobs/blob-store.ts';

const checkMs = 5_000;

/**
 * Tells the failure of one item, whose task goes on with the next, from a blob store that is away, for which every item would fail. Throws
 * BlobStoreUnavailableError for the latter.
 */
export async function assertStoreReachable(blobs: Pick<BlobStore, 'check'>, failure: unknown): Promise<void> {
  if (failure instanceof BlobStoreUnavailableError) await blobs.check(checkMs);
}
