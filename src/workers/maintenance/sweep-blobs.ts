import type { AppContext } from '../../shared/context.ts';
import { createBlobRepository } from '../../shared/documents/blob-repository.ts';

const batchSize = 200;
const deletesAtOnce = 8;
/** A store that refuses so many in a row refuses all. */
const faultLimit = 16;
const faultPauseSeconds = 60;

/**
 * Deletes blobs that nothing has referred to for long enough. First they are condemned, under a lock that no new reference can
 * pass, then their objects go. The rows stay for the grace period, at whose end the objects are deleted once more: a
 * request to store one may have been on its way all the time. Whatever stops in between is taken up by the next run. Returns
 * how many objects were deleted for the first time; throws the first fault after the others have been tried.
 */
export async function sweepBlobs(context: AppContext, signal?: AbortSignal): Promise<number> {
  const { blobRows, blobs, config, db, metrics } = context;
  const { blobGraceSeconds, blobRetentionSeconds } = config;
  await blobRows.clipWaits(Math.max(blobGraceSeconds, faultPauseSeconds));
  await condemnUnreferenced(db, Math.max(blobGraceSeconds, blobRetentionSeconds), signal);
  let swept = 0;
  let faultsInRow = 0;
  const faults: unknown[] = [];
  for (;;) {
    const deletions = await blobRows.listDeletions(batchSize);
    const waiting = [...deletions];
    const deleteNext = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        if (signal?.aborted || faultsInRow >= faultLimit) return;
        const { deletedBefore, key } = next;
        try {
          await blobs.delete(key);
          faultsInRow = 0;
          if (deletedBefore) {
            await blobRows.delete(key);
            continue;
          }
          await blobRows.noteDeleted(key, blobGraceSeconds);
          metrics.blobsSwept.inc();
          swept++;
        } catch (error) {
          faultsInRow++;
          faults.push(error);
          await blobRows.postponeDeletion(key, faultPauseSeconds).catch(() => {});
        }
      }
    };
    await Promise.all(Array.from({ length: deletesAtOnce }, deleteNext));
    if (faults.length > 0 && (faultsInRow >= faultLimit || deletions.length < batchSize)) throw faults[0];
    // Every write of a large state leaves the one before behind: all must go, or they pile up under load.
    if (signal?.aborted || deletions.length < batchSize) return swept;
  }
}

async function condemnUnreferenced(
  db: AppContext['db'],
  seconds: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  let found: number;
  do {
    found = await db.inTransaction(async (tx) => {
      const rows = createBlobRepository(tx);
      const keys = await rows.lockUnreferenced(seconds, batchSize);
      if (keys.length > 0) await rows.condemn(keys);
      return keys.length;
    });
  } while (found === batchSize && !signal?.aborted);
}
