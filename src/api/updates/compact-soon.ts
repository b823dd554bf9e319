import { compactJournal } from '../../shared/jobs/definitions.ts';
import type { ApiContext } from '../api-context.ts';

/** Enqueues compaction of the journal of an ended update. Only logs a failure: the sweep compacts the journal, too. */
export async function compactSoon({ dispatcher, logger }: ApiContext, updateId: string): Promise<void> {
  try {
    await dispatcher.enqueue(compactJournal.create({ updateId }));
  } catch (error) {
    logger.warn({ updateId, err: error }, 'journal left to the sweep');
  }
}
