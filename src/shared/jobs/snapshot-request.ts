import type { Logger } from '../platform/logger/logger.ts';
import { advanceFold, type Job } from './definitions.ts';

/** Asks a worker for a fold point. What was written stays committed when the queue does not take the job. */
export function createSnapshotRequest(enqueue: (job: Job) => Promise<void>, logger: Logger) {
  return async (updateId: string): Promise<void> => {
    try {
      await enqueue(advanceFold.create({ updateId }));
    } catch (error) {
      logger.warn({ updateId, err: error }, 'snapshot not taken');
    }
  };
}
