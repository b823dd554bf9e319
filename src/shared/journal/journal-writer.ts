import { type LeaseFence, LeaseLostError } from '../updates/lease.ts';
import { splitJournalBatch } from './journal-batch.ts';
import type { JournalRepository } from './journal-repository.ts';

/**
 * A snapshot is due after every so many entries, and in a long journal after every quarter more: that bounds what remains to be
 * replayed at the end, and what the snapshots cost, each of which holds all that changed since the update began.
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
   * Returns whether a snapshot is due. Throws InvalidJournalBatchError, PayloadTooLargeError and LeaseLostError, which change
   * nothing.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<{ snapshotDue: boolean }> {
    const appended = await this.#journal.append(fence, await splitJournalBatch(body));
    if (!appended) throw new LeaseLostError();
    const { added, entryCount } = appended;
    return { snapshotDue: isSnapshotDue(entryCount, added) };
  }
}

/** Whether a batch of `added` entries brought a journal to, or past, the place of a snapshot. */
export function isSnapshotDue(entryCount: number, added: number): boolean {
  return snapshotsWithin(entryCount) > snapshotsWithin(entryCount - added);
}

/** How many snapshots are due within so many entries. */
function snapshotsWithin(entryCount: number): number {
  // From here on a quarter is more than the fixed step.
  const even = entriesPerSnapshot / (snapshotGrowth - 1);
  const further = Math.log(Math.max(entryCount / even, 1)) / Math.log(snapshotGrowth);
  return Math.floor(Math.min(entryCount, even) / entriesPerSnapshot) + Math.floor(further);
}
