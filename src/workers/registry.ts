import type { AppContext } from '../shared/context.ts';
import type { JobProcessors } from '../shared/platform/queue/jobs.ts';
import { handedOver } from './handover.ts';

/** What each job does. A job without an entry does not compile. */
export function createProcessors(context: AppContext): JobProcessors {
  const { config, eventWriter, folder, importer, journalWriter, writer } = context;
  const { maxBodyBytes } = config.limits;
  return {
    'apply-checkpoint': (job) => {
      const { body, encoding } = handedOver(context, job);
      return writer.write({ kind: job.kind, fence: job.fence, fullOrder: job.fullOrder, body, encoding });
    },
    'import-deployment': (job) => {
      const { body, encoding } = handedOver(context, job);
      const { stackId, updateId, requestedBy } = job;
      return importer.import({ stackId, updateId, requestedBy, body, encoding });
    },
    'append-journal': async (job) => {
      const entries = await handedOver(context, job).inflated(maxBodyBytes);
      const { foldPointDue } = await journalWriter.append(job.fence, entries);
      if (foldPointDue) await folder.advance(job.fence.updateId);
    },
    'append-events': async (job) =>
      eventWriter.append(job.fence, await handedOver(context, job).inflated(maxBodyBytes)),
    'fold-journal': (job) => folder.fold(job.updateId),
    'advance-fold': (job) => folder.advance(job.updateId),
  };
}
