import { type LeaseFence, LeaseLostError } from '../updates/lease.ts';
import { splitJournalBatch } from './journal-entry.ts';
import type { JournalRepository } from './journal-repository.ts';

/** Takes batches of journal entries in: cut apart, never parsed, committed in one statement. */
export class JournalWriter {
  readonly #journal: JournalRepository;

  constructor(journal: JournalRepository) {
    this.#journal = journal;
  }

  /**
   * Resolves once all entries of the batch (an inflated PATCH body) are committed; entries that are there already are left.
   * Throws InvalidJournalBatchError and LeaseLostError, which change nothing.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<void> {
    const entries = splitJournalBatch(body).map((entry) => ({
      sequenceId: entry.sequenceId,
      text: entry.text.toString('utf8'),
    }));
    if (!(await this.#journal.append(fence, entries))) throw new LeaseLostError();
  }
}
