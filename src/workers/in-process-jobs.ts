import type { AppContext } from '../shared/context.ts';
import { registerQueueGauges } from '../shared/jobs/queue-metrics.ts';
import { InProcessDispatcher } from './platform/in-process-dispatcher.ts';
import { createJobHandlers, dropPayload, jobServicesOf } from './platform/job-handlers.ts';

/** The workers are closed with the context. */
export function startInProcessJobs(context: AppContext): InProcessDispatcher {
  const { config, lifecycle, logger, metrics } = context;
  const services = jobServicesOf(context, (job) => dispatcher.enqueue(job));
  const handlers = createJobHandlers(services, context);
  const dispatcher: InProcessDispatcher = new InProcessDispatcher(handlers, {
    concurrency: { small: config.jobs.concurrency, large: config.jobs.largeConcurrency },
    largeBytes: config.limits.largeBytes,
    waitMs: config.jobs.waitSeconds * 1000,
    logger,
    onEnded: (job) => dropPayload(context, job),
  });
  registerQueueGauges(metrics, () => dispatcher.state().queues);
  lifecycle.onClose('work', 'jobs', () => dispatcher.close());
  return dispatcher;
}
