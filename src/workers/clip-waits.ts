import { createBlobHoldRepository, holdSeconds } from '../shared/backup/blob-hold-repository.ts';
import type { AppContext } from '../shared/context.ts';
import { createCopyQueueRepository } from '../shared/platform/blobs/second/copy-queue-repository.ts';
import { createDueIndexRepository } from '../shared/search/due-index-repository.ts';
import { claimSeconds } from '../shared/webhooks/delivery-attempt.ts';
import { maxPauseSeconds } from '../shared/webhooks/delivery-outcome.ts';
import { createWebhookEventRepository } from '../shared/webhooks/webhook-event-repository.ts';
import { untilNoneLeft } from './platform/until-none-left.ts';

const rowsAtOnce = 5_000;

/**
 * Shortens the waits of queues with timed claims. Otherwise, the queues would stand still for as long as the database's clock was set back.
 * Other queues ignore these times by themselves.
 */
export async function clipWaits(
  { db, logger }: Pick<AppContext, 'db' | 'logger'>,
  signal: AbortSignal,
): Promise<number> {
  const events = createWebhookEventRepository(db);
  const clipped =
    (await createDueIndexRepository(db).clipWaits()) +
    (await untilNoneLeft(rowsAtOnce, signal, (limit) =>
      events.clipWaits({ claimSeconds, limit, pauseSeconds: maxPauseSeconds }),
    )) +
    (await createCopyQueueRepository(db).clipWaits()) +
    (await createBlobHoldRepository(db).clip(holdSeconds));
  if (clipped > 0) logger.warn({ clipped }, 'waits ended early: the clock of the database was set back');
  return clipped;
}
