import { type ClusterContext, createClusterContext, createClusterQueue } from '../shared/cluster-context.ts';
import type { AppContext, ContextOverrides } from '../shared/context.ts';
import { createSnapshotRequest } from '../shared/jobs/snapshot-request.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { repeatAtStart } from '../shared/platform/db/postgres-start.ts';
import { reportVolatileCommits } from '../shared/platform/db/volatile-commits.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { startHeartbeat } from '../shared/platform/processes/heartbeat.ts';
import { startSiteWatch } from '../shared/platform/site/site-watch.ts';
import { startRollbackMonitor } from '../shared/updates/rollback-detection/rollback-monitor.ts';
import { startWebhooks } from '../shared/webhooks/webhook-dispatcher.ts';
import { createJobHandlers, dropPayload } from './platform/handlers.ts';
import { startHealthServer } from './platform/health-server.ts';
import { startQueueWorkers } from './platform/queue-workers.ts';
import { startScheduledTasks } from './scheduled-tasks.ts';
import { startIndexing } from './search/index-states.ts';
import { startScrub } from './state/scrub-loop.ts';

/** Starts a worker process, which runs the jobs of both queues and the sweeps. */
export async function startWorker(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
): Promise<{ context: AppContext; url: string }> {
  const context = await createClusterContext(config, logger, overrides, { opensSecrets: false });
  const wait = { waitMs: config.startWaitMs, logger };
  try {
    await repeatAtStart(() => startRollbackMonitor(context), wait);
    await repeatAtStart(() => startSiteWatch(context), wait);
    await repeatAtStart(() => reportVolatileCommits(context), wait);
    startHeartbeat(context, 'worker');
    startClusterJobs(context);
    startScheduledTasks(context);
    startScrub(context);
    startIndexing(context);
    startWebhooks(context, context.secrets.hasKeys ? 'all' : 'unsigned');
    return { context, url: await startHealthServer(context) };
  } catch (error) {
    await context.lifecycle.close();
    throw error;
  }
}

/** Runs queued jobs in this process. Running jobs finish when the context closes. */
export function startClusterJobs(context: ClusterContext): void {
  const { admissions, config, connectWorker, lifecycle, logger, metrics, producer, jobResults } = context;
  const queue = createClusterQueue(context);
  const requestSnapshot = createSnapshotRequest((job) => queue.enqueue(job), logger);
  const requestIncremental = async (updateId: string): Promise<void> => context.incrementalCompaction.request(updateId);
  const workers = startQueueWorkers({
    connect: connectWorker,
    publisher: producer,
    handlers: createJobHandlers({ ...context, waitsForClaims: false, requestSnapshot, requestIncremental }, context),
    admissions,
    jobResults,
    logger,
    metrics,
    concurrency: { small: config.jobs.concurrency, large: config.jobs.largeConcurrency },
    onEnded: (job) => dropPayload(context, job),
  });
  // Background tasks may take most of the time that a shutdown has; other workers take the jobs meanwhile.
  lifecycle.onClose('intake', 'job intake', async () => workers.pause());
  lifecycle.onClose('work', 'workers', () => workers.close());
}
