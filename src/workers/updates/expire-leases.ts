import type { AppContext } from '../../shared/context.ts';
import { JournalClaimedError } from '../../shared/state/journal/journal-compactor.ts';
import { expireUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { noteEnded } from '../../shared/updates/end-revoked-leases.ts';

const batchSize = 100;
/** Failed journals, which each later batch skips. */
const maxFailed = 1_000;
/** Journals per claim. Small, because claimed journals that a stopping process does not reach have to wait. */
const journalsAtOnce = 10;

/**
 * Ends updates whose lease or start deadline expired. An update that fails does not block the others. Safe on any number
 * of replicas. Returns how many updates this run ended.
 */
export async function endExpiredUpdates(context: AppContext, signal?: AbortSignal): Promise<number> {
  const { config, db, logger, metrics, updates } = context;
  for (const updateId of await updates.clipLeases(config.leaseSeconds)) {
    logger.warn({ updateId }, 'lease shortened to its full duration from now: the clock of the database was set back');
  }
  let ended = 0;
  const seen: string[] = [];
  for (;;) {
    const expired = await updates.listExpired(batchSize, seen);
    for (const updateId of expired) {
      if (signal?.aborted) return ended;
      // Never listed twice in a run, whether it can be ended or not.
      seen.push(updateId);
      try {
        const update = await expireUpdate(db, updateId);
        if (!update) continue;
        ended++;
        noteEnded(context, update);
      } catch (error) {
        metrics.tasksPostponed.labels('expire-leases').inc();
        logger.error({ updateId, err: error }, 'task: update skipped');
      }
    }
    if (expired.length < batchSize) return ended;
  }
}

/** Compacts the journals of ended updates. Failed ones are retried with growing delays. */
export async function compactEndedUpdates(context: AppContext, signal?: AbortSignal): Promise<void> {
  const { compactions, compactor, logger, metrics } = context;
  for (;;) {
    const claimed = await compactions.claimUncompacted(journalsAtOnce);
    for (const updateId of claimed) {
      if (signal?.aborted) return;
      try {
        await compactor.compact(updateId, false);
      } catch (error) {
        // Another process compacts it.
        if (error instanceof JournalClaimedError) continue;
        metrics.tasksPostponed.labels('compact-journals').inc();
        logger.error({ updateId, err: error }, 'task: journal of an ended update could not be compacted');
      }
    }
    if (claimed.length < journalsAtOnce) return;
  }
}

/** Deletes compacted journals that have been kept for `config.journalGraceSeconds`. Throws the first fault after trying the others. */
export async function deleteKeptJournals(context: AppContext, signal?: AbortSignal): Promise<void> {
  const { compactions, config, logger } = context;
  const failed: string[] = [];
  const faults: unknown[] = [];
  for (;;) {
    const kept = await compactions.listKeptLongerThan(config.journalGraceSeconds, batchSize, failed);
    for (const updateId of kept) {
      if (signal?.aborted) return;
      try {
        await compactions.delete(updateId);
      } catch (error) {
        logger.error({ updateId, err: error }, 'task: journal could not be deleted after its grace period');
        failed.push(updateId);
        faults.push(error);
      }
    }
    if (kept.length === batchSize && failed.length < maxFailed) continue;
    if (faults.length > 0) throw faults[0];
    return;
  }
}
