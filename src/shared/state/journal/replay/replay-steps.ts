import type { UpdateRow } from '../../../updates/update-repository.ts';
import type { CheckpointRepository, CheckpointRow } from '../../checkpoints/checkpoint-repository.ts';
import { isDamage } from '../../checkpoints/document-damage.ts';
import type { DocumentReader } from '../../checkpoints/document-reader.ts';
import type { OpenReplays, WarmReplay } from '../incremental/open-replays.ts';
import type { JournalRepository, ReadPage } from '../journal-repository.ts';
import type { JournalSnapshotRow } from '../journal-snapshot-repository.ts';
import type { JournalSnapshots } from '../journal-snapshots.ts';
import {
  InvalidJournalError,
  isShortReplay,
  type OpenReplay,
  type ReplayRunner,
  replayHere,
} from './runner/replay-runner.ts';
import { DamagedStartError, type JournalPage, type ReplayProgress, type ReplayStart } from './runner/replay-work.ts';

/** No page has been applied yet. */
export interface StartedReplay {
  readonly replay: OpenReplay;
  readonly page: ReadPage;
  /** Size of the base and the snapshot. */
  readonly bytes: number;
}

/** Parts that were already read. */
export interface FoundParts {
  /** Null if the update has none, or if the base is gone. */
  readonly base: CheckpointRow | null;
  readonly page: ReadPage | null;
}

/** There is no fault if everything was applied. */
export interface Applied {
  readonly progress: ReplayProgress;
  readonly fault: InvalidJournalError | null;
  /** Size of the entries that were read. */
  readonly bytes: number;
}

export interface ReplayParts {
  readonly checkpoints: CheckpointRepository;
  readonly documentReader: DocumentReader;
  readonly journal: JournalRepository;
  readonly journalSnapshots: JournalSnapshots;
  /** For replays that would block this thread for too long. */
  readonly largeReplays: ReplayRunner;
  readonly openReplays: OpenReplays;
}

export class ReplaySteps {
  readonly #checkpoints: CheckpointRepository;
  readonly #documentReader: DocumentReader;
  readonly #journal: JournalRepository;
  readonly #snapshots: JournalSnapshots;
  readonly #largeReplays: ReplayRunner;
  readonly #open: OpenReplays;

  constructor(parts: ReplayParts) {
    this.#checkpoints = parts.checkpoints;
    this.#documentReader = parts.documentReader;
    this.#journal = parts.journal;
    this.#snapshots = parts.journalSnapshots;
    this.#largeReplays = parts.largeReplays;
    this.#open = parts.openReplays;
  }

  /**
   * Opens a replay of the base and the last snapshot. Returns null if the base is gone, or if the memory limit does not allow incremental
   * compaction.
   */
  async start(
    update: UpdateRow,
    {
      limit = Number.POSITIVE_INFINITY,
      usesSnapshot = true,
      isAhead = false,
      found,
    }: {
      readonly limit?: number;
      readonly usesSnapshot?: boolean;
      readonly isAhead?: boolean;
      readonly found?: FoundParts | undefined;
    },
  ): Promise<StartedReplay | null> {
    const findBase = () => (update.baseCheckpointId ? this.#checkpoints.find(update.baseCheckpointId) : null);
    const [base, newest, pageFromBase] = await Promise.all([
      found ? found.base : findBase(),
      usesSnapshot ? this.#snapshots.find(update.id) : null,
      usesSnapshot ? null : (found?.page ?? this.#journal.readPage(update.id, 0)),
    ]);
    if (update.baseCheckpointId && !base) return null;
    const snapshot = newest && newest.entries <= limit ? newest : null;
    const bytes = (base?.sizeBytes ?? 0) + (snapshot?.sizeBytes ?? 0);
    if (isAhead && !this.#open.admits(update.id, bytes)) return null;
    // A snapshot has no gaps, so its number of entries is the last sequenceID.
    const expected = snapshot?.entries ?? 0;
    const [baseBytes, snapshotBytes, firstPage] = await Promise.all([
      base && this.#documentReader.readEncoded(base),
      snapshot && this.#readSnapshot(snapshot),
      pageFromBase ?? this.#journal.readPage(update.id, expected),
    ]);
    const size = {
      entries: firstPage.isLast ? firstPage.lengths.length : Number.POSITIVE_INFINITY,
      bytes: bytes + firstPage.text.byteLength,
    };
    const replay = await (isShortReplay(size) && !isAhead ? replayHere : this.#largeReplays).open({
      base: baseBytes,
      snapshot: snapshot && snapshotBytes && { document: snapshotBytes, entries: snapshot.entries },
    });
    const { lastSequenceId } = replay.initialProgress;
    if (lastSequenceId === expected) return { replay, page: firstPage, bytes };
    try {
      return { replay, page: await this.#journal.readPage(update.id, lastSequenceId), bytes };
    } catch (error) {
      replay.close();
      throw error;
    }
  }

  /** Applies the entries after `kept`; an incremental compaction stops at a gap. */
  async applyNew(updateId: string, { replay, progress, bytes }: WarmReplay, isAhead = false): Promise<Applied> {
    const page = await this.#journal.readPage(updateId, progress.lastSequenceId);
    return this.applyAll(updateId, replay, { progress, page, incrementalFrom: isAhead ? bytes : undefined });
  }

  /**
   * Reads each page while the previous one is applied. `incrementalFrom` is the size of the replay so far in an incremental compaction,
   * which stops before a gap, and when the replay has become too large to be kept.
   */
  async applyAll(
    updateId: string,
    replay: OpenReplay,
    from: { progress: ReplayProgress; page: ReadPage; limit?: number; incrementalFrom?: number | undefined },
  ): Promise<Applied> {
    const { limit = Number.POSITIVE_INFINITY, incrementalFrom } = from;
    let { progress, page } = from;
    let bytes = 0;
    const maxBytes =
      incrementalFrom === undefined ? Number.POSITIVE_INFINITY : this.#open.maxBytesEach - incrementalFrom;
    while (page.lengths.length > 0 && progress.entries < limit && bytes <= maxBytes) {
      const budget =
        incrementalFrom !== undefined ? contiguousEntries(page, progress.lastSequenceId) : limit - progress.entries;
      const isLast = page.isLast || budget < page.lengths.length;
      const next = isLast ? null : this.#journal.readPage(updateId, page.sequenceIds.at(-1) as number);
      bytes += page.text.byteLength;
      // Waits for both even if one fails, so that nothing is still running when the replay is closed.
      const [applied, read] = await Promise.allSettled([replay.apply(truncatePage(page, budget)), next]);
      if (applied.status === 'rejected') {
        if (!(applied.reason instanceof InvalidJournalError)) throw applied.reason;
        return { progress: await replay.progress(), fault: applied.reason, bytes };
      }
      progress = applied.value;
      if (read.status === 'rejected') throw read.reason;
      if (!read.value) break;
      page = read.value;
    }
    return { progress, fault: null, bytes };
  }

  async #readSnapshot(snapshot: JournalSnapshotRow): Promise<ReplayStart['base']> {
    try {
      return await this.#snapshots.readEncoded(snapshot);
    } catch (error) {
      if (isDamage(error)) throw new DamagedStartError('snapshot', error.message);
      throw error;
    }
  }
}

function truncatePage(page: JournalPage, maxEntries: number): JournalPage {
  if (page.lengths.length <= maxEntries) return page;
  return { ...page, sequenceIds: page.sequenceIds.slice(0, maxEntries), lengths: page.lengths.slice(0, maxEntries) };
}

function contiguousEntries({ sequenceIds }: JournalPage, lastSequenceId: number): number {
  const gap = sequenceIds.findIndex((sequenceId, at) => sequenceId !== lastSequenceId + 1 + at);
  return gap === -1 ? sequenceIds.length : gap;
}
