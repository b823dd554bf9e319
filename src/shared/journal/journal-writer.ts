import { type LeaseFence, LeaseLostError } from '../updates/lease.ts';
import { splitJournalBatch } from './journal-batch.ts';
import type { JournalRepository } from './journal-repository.ts';

/**
 * A fold point is due after every so many entries, and of a long journal after every quarter more: what remains to be replayed
 * at the end is bounded, and so is what the points cost, each of which holds all that changed since the update began.
 */
const entriesPerSnapshot = 5_000;
const snapshotGrowth = 1.25;

/** Takes batches of journal entries in: cut apart, never parsed, committed in one statement. */
export class JournalWriter {
  readonly #journal: JournalRepository;

  constructor(journal: JournalRepository) {
    this.#journal = journal;
  }

  /**
   * Resolves once all entries of the batch (an inflated PATCH body) are committed; entries that are there already are left.
   * Says whether a fold point is due. Throws InvalidJournalBatchError, PayloadTooLargeError and LeaseLostError, which change
   * nothing.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<{ snapshotDue: boolean }> {
    const appended = await this.#journal.append(fence, await splitJournalBatch(body));
    if (!appended) throw new LeaseLostError();
    const { added, entryCount } = appended;
    return { snapshotDue: isSnapshotDue(entryCount, added) };
  }
}

/** Whether a batch of `added` entries brought a journal to, or past, the place of a fold point. */
export function isSnapshotDue(entryCount: number, added: number): boolean {
  return snapshotsWithin(entryCount) > snapshotsWithin(entryCount - added);
}

/** How many fold points a journal of so many entries has come by. */
function snapshotsWithin(entryCount: number): number {
  // From here on a quarter is more than the fixed step.
  const even = entriesPerSnapshot / (snapshotGrowth - 1);
  const further = Math.log(Math.max(entryCount / even, 1)) / Math.log(snapshotGrowth);
  return Math.floor(Math.min(entryCount, even) / entriesPerSnapshot) + Math.floor(further);
}
