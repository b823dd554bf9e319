import type { AppContext } from '../shared/context.ts';
import { InProcessDispatcher } from '../shared/platform/queue/in-process-dispatcher.ts';
import { dropHandover } from './handover.ts';
import { createProcessors } from './registry.ts';

/** The workers of a server that does its jobs itself. Closed with the context. */
export function startInProcessJobs(context: AppContext): InProcessDispatcher {
  const { config, lifecycle, logger } = context;
  const dispatcher = new InProcessDispatcher(createProcessors(context), {
    concurrency: config.jobs.concurrency,
    waitMs: config.jobs.waitSeconds * 1000,
    logger,
    onGivenUp: (job) => dropHandover(context, job),
  });
  lifecycle.onClose('work', 'jobs', () => dispatcher.close());
  return dispatcher;
}
