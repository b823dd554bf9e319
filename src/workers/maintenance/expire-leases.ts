import type { AppContext } from '../../shared/context.ts';
import { expireUpdate } from '../../shared/updates/update-closer.ts';

const batchSize = 100;

/**
 * Ends updates whose lease, or whose time to be started, is over, and folds the journals of those that ended without it.
 * One that cannot be helped does not hold up the others. Safe on any number of replicas. Returns how many updates this run
 * ended.
 */
export async function expireLeases({ config, db, folder, logger, metrics, updates }: AppContext): Promise<number> {
  let ended = 0;
  const attempt = async (updateId: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      logger.error({ updateId, err: error }, 'sweep: update passed over');
    }
  };
  for (const updateId of await updates.clipLeases(config.leaseSeconds)) {
    logger.warn({ updateId }, 'lease cut to its full length from now: the clock of the database was set back');
  }
  for (const updateId of await updates.listExpired(batchSize)) {
    await attempt(updateId, async () => {
      if (!(await expireUpdate(db, updateId))) return;
      ended++;
      metrics.leasesExpired.inc();
      logger.info({ updateId }, 'lease expired: update ended');
    });
  }
  for (const updateId of await updates.listWithJournal(batchSize)) {
    await attempt(updateId, () => folder.fold(updateId));
  }
  return ended;
}
