import type { AppContext } from '../shared/context.ts';
import type { JobProcessors } from '../shared/platform/queue/jobs.ts';
import { handedOver } from './handover.ts';

/** What each job does. A job without an entry does not compile. */
export function createProcessors(context: AppContext): JobProcessors {
  const { eventWriter, folder, importer, journalWriter, wholeBodies, writer } = context;
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
      const { body, encoding } = handedOver(context, job);
      const append = (entries: Buffer) => journalWriter.append(job.fence, entries);
      const { foldPointDue } = await wholeBodies.use(body, encoding, append);
      if (foldPointDue) await folder.advance(job.fence.updateId);
    },
    'append-events': (job) => {
      const { body, encoding } = handedOver(context, job);
      return wholeBodies.use(body, encoding, (events) => eventWriter.append(job.fence, events));
    },
    'fold-journal': (job) => folder.fold(job.updateId),
    'advance-fold': (job) => folder.advance(job.updateId),
  };
}
