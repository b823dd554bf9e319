import type { AppContext } from './context.ts';
import { repeatAtStart } from './platform/db/postgres-start.ts';
import { reportVolatileCommits } from './platform/db/volatile-commits.ts';
import { startSiteWatch } from './platform/site/site-watch.ts';
import { startRollbackMonitor } from './updates/rollback-detection/rollback-monitor.ts';

/** Every process needs these watches before it changes anything: for a database that was set back, and for a site that was replaced. */
export async function startWatches(context: AppContext): Promise<void> {
  const wait = { waitMs: context.config.startWaitMs, logger: context.logger };
  await repeatAtStart(() => startRollbackMonitor(context), wait);
  await repeatAtStart(() => startSiteWatch(context), wait);
  await repeatAtStart(() => reportVolatileCommits(context), wait);
}
