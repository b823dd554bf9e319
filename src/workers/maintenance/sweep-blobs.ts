import { createBlobRepository } from '../../shared/checkpoints/blob-repository.ts';
import type { AppContext } from '../../shared/context.ts';

const batchSize = 200;
const deletesAtOnce = 8;

/**
 * Deletes blobs that no checkpoint refers to and that are older than the grace period. First they are condemned, under a lock
 * that no new reference can pass, then their objects go, then their rows: whatever stops in between is taken up by the next
 * run. Returns how many were deleted; throws the first fault after all others have been tried.
 */
export async function sweepBlobs({ blobRows, blobs, config, db, metrics }: AppContext): Promise<number> {
  let deleted = 0;
  for (;;) {
    await db.inTransaction(async (tx) => {
      const rows = createBlobRepository(tx);
      const orphans = await rows.lockOrphans(config.blobGraceSeconds, batchSize);
      if (orphans.length > 0) await rows.condemn(orphans);
    });
    const condemned = await blobRows.listCondemned(batchSize);
    const waiting = [...condemned];
    const faults: unknown[] = [];
    const deleteNext = async (): Promise<void> => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
        try {
          await blobs.delete(key);
          await blobRows.delete(key);
          metrics.blobsSwept.inc();
          deleted++;
        } catch (error) {
          faults.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: deletesAtOnce }, deleteNext));
    if (faults.length > 0) throw faults[0];
    // Every write of a large state leaves the one before behind: all must go, or they pile up under load.
    if (condemned.length < batchSize) return deleted;
  }
}
