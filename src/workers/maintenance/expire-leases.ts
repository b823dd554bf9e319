import type { AppContext } from '../../shared/context.ts';
import { noteEnded } from '../../shared/updates/lost-leases.ts';
import { expireUpdate } from '../../shared/updates/update-closer.ts';

const batchSize = 100;
/** Few, since those that are claimed and not reached, as the process ends, wait for their next turn. */
const journalsAtOnce = 10;

/**
 * Ends updates whose lease is over, folds the journals of those that ended without it, and deletes folded journals that have
 * been kept for their time. Returns how many updates it ended.
 */
export async function expireLeases(context: AppContext): Promise<number> {
  const ended = await endExpiredUpdates(context);
  await foldEndedUpdates(context);
  await deleteKeptJournals(context);
  return ended;
}

/**
 * Ends updates whose lease, or whose time to be started, is over. One that cannot be helped does not hold up the others. Safe
 * on any number of replicas. Returns how many updates this run ended.
 */
export async function endExpiredUpdates(context: AppContext, signal?: AbortSignal): Promise<number> {
  const { config, db, logger, updates } = context;
  for (const updateId of await updates.clipLeases(config.leaseSeconds)) {
    logger.warn({ updateId }, 'lease shortened to its full duration from now: the clock of the database was set back');
  }
  let ended = 0;
  const passedOver: string[] = [];
  for (;;) {
    const expired = await updates.listExpired(batchSize, passedOver);
    for (const updateId of expired) {
      if (signal?.aborted) return ended;
      // Never seen twice in a run: it is ended now, or passed over.
      passedOver.push(updateId);
      try {
        const update = await expireUpdate(db, updateId);
        if (!update) continue;
        ended++;
        noteEnded(context, update);
      } catch (error) {
        logger.error({ updateId, err: error }, 'sweep: update skipped');
      }
    }
    if (expired.length < batchSize) return ended;
  }
}

/** Folds the journals of ended updates. One that cannot be folded is tried again after a pause, which grows. */
export async function foldEndedUpdates(context: AppContext, signal?: AbortSignal): Promise<void> {
  const { folder, folds, logger } = context;
  for (;;) {
    const claimed = await folds.claimUnfolded(journalsAtOnce);
    for (const updateId of claimed) {
      if (signal?.aborted) return;
      try {
        await folder.fold(updateId);
      } catch (error) {
        logger.error({ updateId, err: error }, 'sweep: journal of an ended update could not be compacted');
      }
    }
    if (claimed.length < journalsAtOnce) return;
  }
}

/** Deletes folded journals that have been kept for `config.journalGraceSeconds`. */
export async function deleteKeptJournals(context: AppContext, signal?: AbortSignal): Promise<void> {
  const { config, folds, logger } = context;
  for (;;) {
    const kept = await folds.listKeptLongerThan(config.journalGraceSeconds, batchSize);
    let deleted = 0;
    for (const updateId of kept) {
      if (signal?.aborted) return;
      try {
        await folds.delete(updateId);
        deleted++;
      } catch (error) {
        logger.error({ updateId, err: error }, 'sweep: journal could not be deleted after its grace period');
      }
    }
    if (kept.length < batchSize || deleted === 0) return;
  }
}
