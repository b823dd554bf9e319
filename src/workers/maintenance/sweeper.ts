import type { AppContext } from '../../shared/context.ts';
import { createReceiptRepository } from '../../shared/platform/queue/receipt-repository.ts';
import { expireLeases } from './expire-leases.ts';
import { sweepBlobs } from './sweep-blobs.ts';

/** Nobody waits for a job as long as this. */
const receiptLifeSeconds = 24 * 3600;

/** Runs the sweeps every `config.sweepSeconds`, one at a time; a failed sweep is logged and comes round again. */
export function startSweeper(context: AppContext): void {
  const { config, lifecycle, logger } = context;
  const receipts = createReceiptRepository(context.db);
  const sweeps: Record<string, () => Promise<unknown>> = {
    'expire-leases': () => expireLeases(context),
    'sweep-blobs': () => sweepBlobs(context),
    // What a worker that was killed in mid-upload has left in the store.
    'sweep-uploads': () => context.blobs.sweepUnfinished(config.blobGraceSeconds * 1000),
    'sweep-receipts': () => receipts.deleteOlderThan(receiptLifeSeconds),
  };
  let running: Promise<void> = Promise.resolve();
  const sweep = async (): Promise<void> => {
    for (const [name, work] of Object.entries(sweeps)) {
      try {
        await work();
      } catch (error) {
        logger.warn({ sweep: name, err: error }, 'sweep failed');
      }
    }
  };
  const timer = setInterval(() => {
    running = running.then(sweep);
  }, config.sweepSeconds * 1000);
  timer.unref();
  lifecycle.onClose('work', 'sweeper', async () => {
    clearInterval(timer);
    await running;
  });
}
