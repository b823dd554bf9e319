import { type BlobStore, BlobStoreUnavailableError } from '../../shared/platform/blobs/blob-store.ts';

const checkMs = 5_000;

/**
 * Distinguishes the failure of one item, after which the task continues, from a blob store that would fail for every item. Throws
 * BlobStoreUnavailableError for the latter.
 */
export async function assertStoreReachable(blobs: Pick<BlobStore, 'check'>, failure: unknown): Promise<void> {
  if (failure instanceof BlobStoreUnavailableError) await blobs.check(checkMs);
}
