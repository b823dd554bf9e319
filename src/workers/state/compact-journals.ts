import type { AppContext } from '../../shared/context.ts';
import { JournalClaimedError } from '../../shared/state/journal/journal-compactor.ts';

const batchSize = 100;
/** Later batches skip these. */
const maxFailed = 1_000;
/** The lanes are concurrent, because a large journal takes long. */
const journalsAtOnce = 2;

/** Failed journals are retried with growing delays. */
export async function compactEndedUpdates(context: AppContext, signal?: AbortSignal): Promise<void> {
  const lanes = Array.from({ length: journalsAtOnce }, () => compactInOrder(context, signal));
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === 'rejected') throw lane.reason;
}

async function compactInOrder(context: AppContext, signal?: AbortSignal): Promise<void> {
  const { compactions, compactor, logger, metrics } = context;
  while (!signal?.aborted) {
    // One at a time, because a claimed journal that is not compacted has to wait.
    const [updateId] = await compactions.claimUncompacted(1);
    if (updateId === undefined) return;
    try {
      await compactor.compact(updateId, false);
    } catch (error) {
      // Another process is compacting the journal.
      if (error instanceof JournalClaimedError) continue;
      metrics.tasksPostponed.labels('compact-journals').inc();
      logger.error({ updateId, err: error }, 'task: journal of an ended update could not be compacted');
    }
  }
}

/** Deletes compacted journals. Throws the first fault after trying the others. */
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
