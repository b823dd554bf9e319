import type { AppContext } from '../../shared/context.ts';
import { expireLeases } from './expire-leases.ts';
import { sweepBlobs } from './sweep-blobs.ts';

/** Runs the sweeps every `config.sweepSeconds`, one at a time; a failed sweep is logged and comes round again. */
export function startSweeper(context: AppContext): void {
  const { config, lifecycle, logger } = context;
  let running: Promise<void> = Promise.resolve();
  const sweep = async (): Promise<void> => {
    for (const [name, work] of [
      ['expire-leases', expireLeases],
      ['sweep-blobs', sweepBlobs],
    ] as const) {
      try {
        await work(context);
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
