import type { AppContext } from '../shared/context.ts';
import { InProcessDispatcher } from '../shared/jobs/in-process-dispatcher.ts';
import { registerLaneMetrics } from '../shared/jobs/queue-metrics.ts';
import { dropHandover } from './handover.ts';
import { createProcessors } from './registry.ts';

/** The workers of a server that does its jobs itself. Closed with the context. */
export function startInProcessJobs(context: AppContext): InProcessDispatcher {
  const { config, lifecycle, logger, metrics } = context;
  const dispatcher = new InProcessDispatcher(createProcessors(context), {
    concurrency: { small: config.jobs.concurrency, large: config.jobs.largeConcurrency },
    largeBytes: config.limits.largeBytes,
    waitMs: config.jobs.waitSeconds * 1000,
    logger,
    onEnded: (job) => dropHandover(context, job),
  });
  registerLaneMetrics(metrics, () => dispatcher.state().lanes);
  lifecycle.onClose('work', 'jobs', () => dispatcher.close());
  return dispatcher;
}
