import { type ClusterContext, createClusterContext, createClusterQueue } from '../shared/cluster-context.ts';
import type { AppContext, ContextOverrides } from '../shared/context.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { startHeartbeat } from '../shared/platform/processes/heartbeat.ts';
import { startWatches } from '../shared/start-watches.ts';
import { startBackgroundWork } from './background-work.ts';
import { startHealthServer } from './platform/health-server.ts';
import { createJobHandlers, dropPayload, jobServicesOf } from './platform/job-handlers.ts';
import { startQueueWorkers } from './platform/queue-workers.ts';

/** The worker process runs the jobs of both queues and the sweeps. */
export async function startWorker(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
): Promise<{ context: AppContext; url: string }> {
  const context = await createClusterContext(config, logger, overrides, { opensSecrets: false });
  try {
    await startWatches(context);
    startHeartbeat(context, 'worker');
    startClusterJobs(context);
    startBackgroundWork(context, context.secrets.hasKeys ? 'all' : 'unsigned');
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
  const services = jobServicesOf(context, (job) => queue.enqueue(job));
  const workers = startQueueWorkers({
    connect: connectWorker,
    publisher: producer,
    handlers: createJobHandlers({ ...services, waitsForClaims: false }, context),
    admissions,
    jobResults,
    logger,
    metrics,
    concurrency: { small: config.jobs.concurrency, large: config.jobs.largeConcurrency },
    onEnded: (job) => dropPayload(context, job),
  });
  // Background tasks may take most of the shutdown time. Meanwhile, other workers take the jobs.
  lifecycle.onClose('intake', 'job intake', async () => workers.pause());
  lifecycle.onClose('work', 'workers', () => workers.close());
}
