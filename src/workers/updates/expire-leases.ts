import type { AppContext } from '../../shared/context.ts';
import { isLockTimeout } from '../../shared/platform/db/sqlstate.ts';
import { expireUpdate } from '../../shared/updates/cancel-or-expire.ts';
import { noteEnded } from '../../shared/updates/end-revoked-leases.ts';

const batchSize = 100;

/**
 * Ends updates whose lease or start deadline has expired. An update that fails, or that another transaction has locked, does not block
 * the others. Safe on any number of replicas. Returns the number of updates that this run ended.
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
        if (isLockTimeout(error))
          logger.info({ updateId }, 'task: update left to the next run, because another transaction has locked it');
        else logger.error({ updateId, err: error }, 'task: update skipped');
      }
    }
    if (expired.length < batchSize) return ended;
  }
}
