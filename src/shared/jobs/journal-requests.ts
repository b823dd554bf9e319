import type { Logger } from '../platform/logger/logger.ts';
import { type Job, snapshotJournal } from './job-list.ts';

/**
 * Returns a function that requests a snapshot from a worker. The call does not wait for the queue, since the entries are committed. Logs
 * a warning if the queue does not accept the job.
 */
export function createSnapshotRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    enqueue(snapshotJournal.create({ updateId })).catch((error: unknown) =>
      logger.warn({ updateId, err: error }, 'snapshot not taken'),
    );
  };
}

/** Returns a function that requests an incremental compaction from a worker. The call does not wait for the queue. */
export function createIncrementalRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    enqueue(snapshotJournal.create({ updateId, incremental: true })).catch((error: unknown) =>
      logger.debug({ updateId, err: error }, 'journal not compacted incrementally'),
    );
  };
}
