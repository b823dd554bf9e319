import type { AppContext } from '../shared/context.ts';
import type { JobProcessors } from '../shared/platform/queue/jobs.ts';
import { handedOver } from './handover.ts';

/** What each job does. A job without an entry does not compile. */
export function createProcessors(context: AppContext): JobProcessors {
  const { bodyBuffer, compactor, eventWriter, importer, journalWriter, renamer, writer } = context;
  return {
    'apply-checkpoint': (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      return writer.write({ kind: job.kind, fence: job.fence, arrivalSequence: job.arrivalSequence, body, encoding });
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
      const { snapshotDue } = await bodyBuffer.use(body, encoding, append, job.fence.stackId);
      if (snapshotDue) await compactor.takeSnapshot(job.fence.updateId);
    },
    'append-events': (job, seal) => {
      const { body, encoding } = handedOver(context, job, seal);
      const append = (events: Buffer) => eventWriter.append(job.fence, events);
      return bodyBuffer.use(body, encoding, append, job.fence.stackId);
    },
    'fold-journal': (job) => compactor.compact(job.updateId),
    'advance-fold': (job) => compactor.takeSnapshot(job.updateId),
  };
}
