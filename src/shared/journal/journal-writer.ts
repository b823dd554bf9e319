import { type LeaseFence, LeaseLostError } from '../updates/lease.ts';
import type { JournalBacklog } from './ahead/journal-backlog.ts';
import { splitJournalBatch } from './journal-batch.ts';
import type { JournalRepository } from './journal-repository.ts';

/**
 * A snapshot is due every `entriesPerSnapshot` entries and, in a long journal, whenever it has grown by a quarter. This limits both
 * the replay at the end and the cost of the snapshots, each of which contains all changes since the update began.
 */
const entriesPerSnapshot = 5_000;
const snapshotGrowth = 1.25;

/** What a batch has made due. */
export interface Appended {
  /** A snapshot of the journal; see `isSnapshotDue`. */
  readonly snapshotDue: boolean;
  /** Compacting ahead; see JournalBacklog. */
  readonly aheadDue: boolean;
}

/** Stores batches of journal entries. Splits them without parsing the entries. */
export class JournalWriter {
  readonly #journal: JournalRepository;
  readonly #backlog: JournalBacklog;

  constructor(journal: JournalRepository, backlog: JournalBacklog) {
    this.#journal = journal;
    this.#backlog = backlog;
  }

  /**
   * Resolves once all entries of the batch (an inflated PATCH body) are committed. Entries that already exist are kept.
   * Throws InvalidJournalBatchError, PayloadTooLargeError and LeaseLostError; nothing is changed
   * then.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<Appended> {
    const appended = await this.#journal.append(fence, await splitJournalBatch(body));
    if (!appended) throw new LeaseLostError();
    const { added, entryCount } = appended;
    const aheadDue = added > 0 && this.#backlog.add(fence.updateId, added, body.length);
    return { snapshotDue: isSnapshotDue(entryCount, added), aheadDue };
  }
}

/** Whether the last `added` entries made the journal reach or pass a count at which a snapshot is due. */
export function isSnapshotDue(entryCount: number, added: number): boolean {
  return snapshotsWithin(entryCount) > snapshotsWithin(entryCount - added);
}

/** The number of snapshots due within the first `entryCount` entries. */
function snapshotsWithin(entryCount: number): number {
  // Above this count, a quarter of the journal is more than the fixed step.
  const linearLimit = entriesPerSnapshot / (snapshotGrowth - 1);
  const geometricSteps = Math.log(Math.max(entryCount / linearLimit, 1)) / Math.log(snapshotGrowth);
  return Math.floor(Math.min(entryCount, linearLimit) / entriesPerSnapshot) + Math.floor(geometricSteps);
}
