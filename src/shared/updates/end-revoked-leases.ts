import type { Database } from '../platform/db/database.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { type ExpiredUpdate, expireUpdate } from './cancel-or-expire.ts';
import { describeLoss } from './lease-loss.ts';
import { createUpdateRepository } from './update-repository.ts';

const batchSize = 100;

/**
 * Cancels updates that lost their lease with the token, user or membership under which they were started. The next reader or sweep compacts
 * their journals. Safe on any number of replicas.
 */
export async function endRevokedLeases(db: Database): Promise<ExpiredUpdate[]> {
  const ended: ExpiredUpdate[] = [];
  for (;;) {
    const lost = await createUpdateRepository(db).listLost(batchSize);
    for (const updateId of lost) {
      const update = await expireUpdate(db, updateId);
      if (update) ended.push(update);
    }
    // After a partial batch, any remaining updates belong to stacks that are being deleted.
    if (lost.length < batchSize) return ended;
  }
}

export function noteEnded(
  { logger, metrics }: { readonly logger: Logger; readonly metrics: Metrics },
  { kind, reason, updateId }: ExpiredUpdate,
): void {
  metrics.updatesEnded.labels(kind, 'cancelled').inc();
  if (reason === 'lease-expired') {
    metrics.leasesExpired.inc();
    logger.info({ updateId }, 'lease expired: update ended');
  } else {
    metrics.leasesLost.labels(reason).inc();
    logger.warn({ updateId, reason }, `update cancelled: ${describeLoss(reason)}`);
  }
}
