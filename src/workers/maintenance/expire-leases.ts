import type { AppContext } from '../../shared/context.ts';
import { expireUpdate } from '../../shared/updates/update-closer.ts';

const batchSize = 100;

/**
 * Ends updates whose lease, or whose time to be started, is over, and folds the journals of those that ended without it.
 * Safe on any number of replicas. Returns how many updates this run ended.
 */
export async function expireLeases({ db, folder, logger, metrics, updates }: AppContext): Promise<number> {
  let ended = 0;
  for (const updateId of await updates.listExpired(batchSize)) {
    if (!(await expireUpdate(db, updateId))) continue;
    ended++;
    metrics.leasesExpired.inc();
    logger.info({ updateId }, 'lease expired: update ended');
  }
  for (const updateId of await updates.listWithJournal(batchSize)) {
    try {
      await folder.fold(updateId);
    } catch (error) {
      // One whose base cannot be read must not hold up the others.
      logger.warn({ updateId, err: error }, 'journal of an ended update not folded');
    }
  }
  return ended;
}
