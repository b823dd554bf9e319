import { compactJournal } from '../../shared/jobs/definitions.ts';
import { runInOrder } from '../../shared/platform/db/connection-gate.ts';
import type { ApiContext } from '../platform/api-context.ts';

/**
 * Enqueues compaction of the journal of an ended update. No call waits for that, because the queue may be elsewhere. Only logs a
 * failure: the sweep compacts the journal, too.
 */
export function compactSoon({ dispatcher, logger }: ApiContext, updateId: string): void {
  runInOrder(() => dispatcher.enqueue(compactJournal.create({ updateId }))).catch((error: unknown) =>
    logger.warn({ updateId, err: error }, 'journal left to the background task'),
  );
}
