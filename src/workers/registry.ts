import type { AppContext } from '../shared/context.ts';
import type { JobProcessors } from '../shared/platform/queue/jobs.ts';
import { withHandover } from './handover.ts';

/** What each job does. A job without an entry does not compile. */
export function createProcessors(context: AppContext): JobProcessors {
  const { config, eventWriter, folder, importer, journalWriter, writer } = context;
  return {
    'apply-checkpoint': (job) =>
      withHandover(context, job, ({ body, encoding }) =>
        writer.write({ kind: job.kind, fence: job.fence, fullOrder: job.fullOrder, body, encoding }),
      ),
    'import-deployment': (job) =>
      withHandover(context, job, ({ body, encoding }) =>
        importer.import({ stackId: job.stackId, updateId: job.updateId, requestedBy: job.requestedBy, body, encoding }),
      ),
    'append-journal': (job) =>
      withHandover(context, job, async ({ inflated }) => {
        const { foldPointDue } = await journalWriter.append(job.fence, await inflated(config.limits.maxBodyBytes));
        if (foldPointDue) await folder.advance(job.fence.updateId);
      }),
    'append-events': (job) =>
      withHandover(context, job, async ({ inflated }) =>
        eventWriter.append(job.fence, await inflated(config.limits.maxBodyBytes)),
      ),
    'fold-journal': (job) => folder.fold(job.updateId),
    'advance-fold': (job) => folder.advance(job.updateId),
  };
}
