import { createBlobRepository } from '../../shared/checkpoints/blob-repository.ts';
import type { AppContext } from '../../shared/context.ts';

const batchSize = 200;

/**
 * Deletes blobs that no checkpoint refers to and that are older than the grace period. First they are condemned, under a lock
 * that no new reference can pass, then their objects go, then their rows: whatever stops in between is taken up by the next
 * run. Returns how many were deleted.
 */
export async function sweepBlobs({ blobRows, blobs, config, db, metrics }: AppContext): Promise<number> {
  await db.inTransaction(async (tx) => {
    const rows = createBlobRepository(tx);
    const orphans = await rows.lockOrphans(config.blobGraceSeconds, batchSize);
    if (orphans.length > 0) await rows.condemn(orphans);
  });
  const condemned = await blobRows.listCondemned(batchSize);
  for (const key of condemned) {
    await blobs.delete(key);
    await blobRows.delete(key);
    metrics.blobsSwept.inc();
  }
  return condemned.length;
}
