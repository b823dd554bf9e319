import type { Logger } from '../platform/logger/logger.ts';
import { type Job, snapshotJournal } from './job-list.ts';

/** The request does not wait for the queue, since the entries are committed. */
export function createSnapshotRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    enqueue(snapshotJournal.create({ updateId })).catch((error: unknown) =>
      logger.warn({ updateId, err: error }, 'snapshot not taken'),
    );
  };
}

/** The request does not wait for the queue. */
export function createIncrementalRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    enqueue(snapshotJournal.create({ updateId, incremental: true })).catch((error: unknown) =>
      logger.debug({ updateId, err: error }, 'journal not compacted incrementally'),
    );
  };
}
