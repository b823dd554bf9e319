import type { AppContext } from '../../shared/context.ts';
import { checkSite } from '../../shared/platform/site/site-watch.ts';
import { ownsStore } from '../../shared/state/blobs/store-ownership.ts';
import { createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';

const batchSize = 200;
const concurrentDeletes = 8;
/** After this many consecutive faults the store is considered unavailable. */
const faultLimit = 16;
const faultPauseSeconds = 60;

/**
 * Deletes blobs that have been unreferenced for long enough. First it marks them as pending deletion under a lock that
 * prevents new references, then it deletes their objects. The rows stay for the grace period, after which the objects are deleted
 * again, because an upload may have been in flight all that time. The next run resumes an interrupted one. Returns how
 * many objects were deleted for the first time. Deletes nothing if another site has taken over, or another copy of the database owns
 * the store. Throws the
 * first fault after trying the others.
 */
export async function sweepBlobs(context: AppContext, signal?: AbortSignal): Promise<number> {
  const { blobRows, blobs, config, db, metrics } = context;
  if (!(await checkSite(context)) || !(await mayDelete(context))) return 0;
  const { blobGraceSeconds, blobRetentionSeconds } = config;
  await blobRows.clipWaits(Math.max(blobGraceSeconds, faultPauseSeconds));
  await markUnreferenced(db, Math.max(blobGraceSeconds, blobRetentionSeconds), signal);
  let swept = 0;
  let consecutiveFaults = 0;
  const faults: unknown[] = [];
  for (;;) {
    const deletions = await blobRows.listDeletions(batchSize);
    const remaining = [...deletions];
    const deleteNext = async (): Promise<void> => {
      for (let next = remaining.shift(); next !== undefined; next = remaining.shift()) {
        if (signal?.aborted || consecutiveFaults >= faultLimit) return;
        const { deletedBefore, key } = next;
        try {
          await blobs.delete(key);
          consecutiveFaults = 0;
          if (deletedBefore) {
            await blobRows.delete(key);
            continue;
          }
          await blobRows.noteDeleted(key, blobGraceSeconds);
          metrics.blobsSwept.inc();
          swept++;
        } catch (error) {
          consecutiveFaults++;
          faults.push(error);
          await blobRows.postponeDeletion(key, faultPauseSeconds).catch(() => {});
        }
      }
    };
    await Promise.all(Array.from({ length: concurrentDeletes }, deleteNext));
    if (faults.length > 0 && (consecutiveFaults >= faultLimit || deletions.length < batchSize)) throw faults[0];
    // Every write of a large state leaves the previous blob behind. Delete all of them, or they pile up under load.
    if (signal?.aborted || deletions.length < batchSize) return swept;
    // A restored database may have taken over, and put objects back.
    if (!(await mayDelete(context))) return swept;
  }
}

async function mayDelete({ blobs, db, logger, metrics }: AppContext): Promise<boolean> {
  if (await ownsStore({ blobs, db })) return true;
  metrics.blobSweepsRefused.inc();
  logger.error(
    'another copy of this database owns the blob store: nothing is deleted; if this one is the right one, run `holdfast admin take-over`',
  );
  return false;
}

async function markUnreferenced(db: AppContext['db'], seconds: number, signal: AbortSignal | undefined): Promise<void> {
  let found: number;
  do {
    found = await db.inTransaction(async (tx) => {
      const rows = createBlobRepository(tx);
      const keys = await rows.lockUnreferenced(seconds, batchSize);
      if (keys.length > 0) await rows.markForDeletion(keys);
      return keys.length;
    });
  } while (found === batchSize && !signal?.aborted);
}
