import type { Database } from '../platform/db/database.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { describeLoss } from './lease.ts';
import { type ExpiredUpdate, expireUpdate } from './update-closer.ts';
import { createUpdateRepository } from './update-repository.ts';

const batchSize = 100;

/**
 * Cancels the updates whose lease was taken away with the token, user or membership under which they were started. Their journals
 * are compacted by the next reader or sweep. Safe on any number of replicas. Returns those that this call ended.
 */
export async function endLostUpdates(db: Database): Promise<ExpiredUpdate[]> {
  const ended: ExpiredUpdate[] = [];
  for (;;) {
    const lost = await createUpdateRepository(db).listLost(batchSize);
    for (const updateId of lost) {
      const update = await expireUpdate(db, updateId);
      if (update) ended.push(update);
    }
    // Those left after a batch that was not full belong to stacks on their way out.
    if (lost.length < batchSize) return ended;
  }
}

/** Counts and logs an update that was ended because its lease is over. */
export function noteEnded(
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
  { updateId, reason }: ExpiredUpdate,
): void {
  if (reason === 'lease-expired') {
    metrics.leasesExpired.inc();
    logger.info({ updateId }, 'lease expired: update ended');
  } else {
    metrics.leasesLost.labels(reason).inc();
    logger.warn({ updateId, reason }, `update cancelled: ${describeLoss(reason)}`);
  }
}
