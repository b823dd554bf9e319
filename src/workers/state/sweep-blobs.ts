import type { AppContext } from '../../shared/context.ts';
import { type BlobDeletion, createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';
import { deletesPerLook, findDeletionBar, mayGoOnDeleting } from '../platform/store-deletions.ts';

const batchSize = 200;
const faultPauseSeconds = 60;

/**
 * First marks blobs that have been unreferenced for long enough as pending deletion, under a lock that prevents new references, then
 * deletes their objects. The rows stay for the grace period, after which the objects are deleted again, because an upload may have been in
 * flight all that time. The next run resumes an interrupted one. Deletes nothing if another site has taken over, or another copy of the
 * database owns the store. Returns the number of objects deleted for the first time. Throws the first fault after trying the others, or
 * once all concurrent deletions have failed.
 */
export async function sweepBlobs(context: AppContext, signal?: AbortSignal): Promise<number> {
  const { blobRows, blobs, config, db, metrics } = context;
  if (!(await mayDelete(context))) return 0;
  const { blobGraceSeconds, blobRetentionSeconds } = config;
  await blobRows.clipWaits(Math.max(blobGraceSeconds, faultPauseSeconds));
  await markUnreferenced(db, Math.max(blobGraceSeconds, blobRetentionSeconds), signal);
  let swept = 0;
  const faults: unknown[] = [];
  const deleteOne = async ({ deletedBefore, key }: BlobDeletion): Promise<void> => {
    try {
      await blobs.delete(key);
      if (deletedBefore) {
        await blobRows.delete(key);
        return;
      }
      await blobRows.noteDeleted(key, blobGraceSeconds);
      metrics.blobsSwept.inc();
      swept++;
    } catch (error) {
      faults.push(error);
      await blobRows.postponeDeletion(key, faultPauseSeconds).catch(() => {});
    }
  };
  for (;;) {
    const deletions = await blobRows.listDeletions(batchSize);
    for (let at = 0; at < deletions.length; at += deletesPerLook) {
      if (signal?.aborted) return swept;
      if (!(await mayGoOnDeleting(context))) return swept;
      const before = faults.length;
      await Promise.all(deletions.slice(at, at + deletesPerLook).map(deleteOne));
      if (faults.length - before === deletesPerLook) throw faults[0];
    }
    // Every write of a large state leaves the previous blob behind. Delete all: they pile up under load.
    if (deletions.length === batchSize && (await mayDelete(context))) continue;
    for (const fault of faults) throw fault;
    return swept;
  }
}

async function mayDelete(context: AppContext): Promise<boolean> {
  const { logger, metrics } = context;
  const bar = await findDeletionBar(context);
  if (bar !== 'another copy') return bar === null;
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
