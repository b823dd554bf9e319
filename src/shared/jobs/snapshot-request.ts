import type { Logger } from '../platform/logger/logger.ts';
import { type Job, snapshotJournal } from './definitions.ts';

/** Requests a snapshot from a worker. Logs a warning if the queue does not accept the job. */
export function createSnapshotRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    try {
      await enqueue(snapshotJournal.create({ updateId }));
    } catch (error) {
      logger.warn({ updateId, err: error }, 'snapshot not taken');
    }
  };
}

/** Requests from a worker that it compacts a journal ahead. The call does not wait for the queue. */
export function createIncrementalRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    enqueue(snapshotJournal.create({ updateId, ahead: true })).catch((error: unknown) =>
      logger.debug({ updateId, err: error }, 'journal not compacted ahead'),
    );
  };
}
