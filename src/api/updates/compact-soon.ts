import { compactJournal } from '../../shared/jobs/definitions.ts';
import type { ApiContext } from '../api-context.ts';

/** Has the journal of an ended update folded. What is committed stays so when the queue is away: the sweep finds the journal, too. */
export async function compactSoon({ dispatcher, logger }: ApiContext, updateId: string): Promise<void> {
  try {
    await dispatcher.enqueue(compactJournal.create({ updateId }));
  } catch (error) {
    logger.warn({ updateId, err: error }, 'journal left to the sweep');
  }
}
