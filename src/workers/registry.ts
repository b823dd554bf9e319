import type { AppContext } from '../shared/context.ts';
import type { JobProcessors } from '../shared/platform/queue/jobs.ts';
import { handedOver } from './handover.ts';

/** What each job does. A job without an entry does not compile. */
export function createProcessors(context: AppContext): JobProcessors {
  const { eventWriter, folder, importer, journalWriter, renamer, wholeBodies, writer } = context;
  return {
    'apply-checkpoint': (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      const { kind, envelope = 'cli', fence, fullOrder } = job;
      return writer.write({ kind, envelope, fence, fullOrder, body, encoding });
    },
    'import-deployment': (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      const { stackId, updateId, admission, requestedBy } = job;
      return importer.import({ stackId, updateId, admission, requestedBy, body, encoding });
    },
    'rename-stack': (job) => renamer.rename(job),
    'append-journal': async (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      const append = (entries: Buffer) => journalWriter.append(job.fence, entries);
      const { foldPointDue } = await wholeBodies.use(body, encoding, append, job.fence.stackId);
      if (foldPointDue) await folder.advance(job.fence.updateId);
    },
    'append-events': (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      const append = (events: Buffer) => eventWriter.append(job.fence, events);
      return wholeBodies.use(body, encoding, append, job.fence.stackId);
    },
    'fold-journal': (job) => folder.fold(job.updateId),
    'advance-fold': (job) => folder.advance(job.updateId),
  };
}
