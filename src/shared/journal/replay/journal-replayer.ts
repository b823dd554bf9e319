import type { CheckpointRepository } from '../../checkpoints/checkpoint-repository.ts';
import type { DocumentGuard } from '../../checkpoints/document-guard.ts';
import type { ManifestSource } from '../../deployments/write-document.ts';
import { isDamage } from '../../documents/document-damage.ts';
import { DocumentMissingError } from '../../documents/document-store.ts';
import type { UpdateRepository, UpdateRow } from '../../updates/update-repository.ts';
import type { JournalRepository } from '../journal-repository.ts';
import type { JournalSnapshotRow } from '../journal-snapshot-repository.ts';
import type { JournalSnapshots } from '../journal-snapshots.ts';
import {
  InvalidJournalError,
  isShortReplay,
  type OpenReplay,
  type ReplayRunner,
  replayHere,
} from './runner/replay-runner.ts';
import {
  DamagedStartError,
  type JournalPage,
  type ReplayedDocument,
  type ReplayProgress,
  type ReplayStart,
} from './runner/replay-work.ts';

/** A replay that has reached the end of the journal, an invalid entry or the requested limit. */
export interface CaughtUp {
  readonly replay: OpenReplay;
  readonly progress: ReplayProgress;
  /** Why it could not continue; null if no entry was invalid. */
  readonly fault: InvalidJournalError | null;
}

export interface ReplayBounds {
  /** Stop after this many entries, counted from the first. */
  readonly entries?: number;
  /** Start from the base instead of a snapshot, which an older release that knew fewer kinds may have taken. */
  readonly fromBase?: boolean;
}

/** The longest prefix of a journal that yields a valid deployment. */
export interface LongestPrefix {
  /** The end of the prefix. With 0 entries, the state is the base itself. */
  readonly progress: ReplayProgress;
  readonly replayed: ReplayedDocument | null;
  /** Why the next entry is not included; null if the prefix is the whole journal. */
  readonly fault: InvalidJournalError | null;
}

const attempts = 3;
const noProgress: ReplayProgress = { entries: 0, lastSequenceId: 0, hasGap: false, unknownKinds: null };

/** Reads the base, the snapshot and the journal pages of an update and passes them to a replay runner. */
export class JournalReplayer {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #guard: DocumentGuard;
  readonly #journal: JournalRepository;
  readonly #snapshots: JournalSnapshots;
  readonly #largeReplays: ReplayRunner;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    guard: DocumentGuard;
    journal: JournalRepository;
    journalSnapshots: JournalSnapshots;
    /** For replays that would block this thread for too long. */
    largeReplays: ReplayRunner;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#guard = parts.guard;
    this.#journal = parts.journal;
    this.#snapshots = parts.journalSnapshots;
    this.#largeReplays = parts.largeReplays;
  }

  async manifest(updateId: string): Promise<ManifestSource> {
    return { time: new Date().toISOString(), version: await this.#updates.findClientVersion(updateId) };
  }

  /**
   * Applies all entries, or those before the first invalid one, and then runs `work`. Returns null if the entries have been
   * compacted and deleted in the meantime. Drops a damaged snapshot and repairs a damaged base. Throws InvalidJournalError if the
   * base is not a valid deployment, and DocumentDamagedError if it is damaged beyond repair.
   */
  async catchUp<T>(
    update: UpdateRow,
    work: (caughtUp: CaughtUp) => Promise<T>,
    bounds: ReplayBounds = {},
  ): Promise<T | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#catchUp(update, work, bounds);
      } catch (error) {
        // The base was replaced by another checkpoint, possibly as a repair.
        if (error instanceof DocumentMissingError) return null;
        if (!(error instanceof DamagedStartError) || attempt === attempts) throw error;
        if (!(await this.#repairStart(update, error))) return null;
      }
    }
  }

  /** Drops the damaged snapshot or repairs the base. Returns whether the replay can be retried. Throws DocumentDamagedError. */
  async #repairStart(update: UpdateRow, damage: DamagedStartError): Promise<boolean> {
    if (damage.part === 'snapshot') {
      const snapshot = await this.#snapshots.find(update.id);
      if (snapshot) await this.#snapshots.drop(update.id, snapshot, damage);
      return true;
    }
    const { baseCheckpointId } = update;
    return baseCheckpointId !== null && (await this.#guard.recover(baseCheckpointId, damage)) !== null;
  }

  async #catchUp<T>(
    update: UpdateRow,
    work: (caughtUp: CaughtUp) => Promise<T>,
    { entries: limit = Number.POSITIVE_INFINITY, fromBase = false }: ReplayBounds,
  ): Promise<T | null> {
    const [base, found] = await Promise.all([
      update.baseCheckpointId ? this.#checkpoints.find(update.baseCheckpointId) : null,
      fromBase ? null : this.#snapshots.find(update.id),
    ]);
    if (update.baseCheckpointId && !base) return null;
    const snapshot = found && found.entries <= limit ? found : null;
    // A snapshot has no gaps, so the last sequenceID is the number of its entries.
    const expected = snapshot?.entries ?? 0;
    const [baseBytes, snapshotBytes, firstPage] = await Promise.all([
      base && this.#guard.readEncoded(base),
      snapshot && this.#readSnapshot(snapshot),
      this.#journal.readPage(update.id, expected),
    ]);
    const size = {
      entries: firstPage.isLast ? firstPage.lengths.length : Number.POSITIVE_INFINITY,
      bytes: (base?.sizeBytes ?? 0) + (snapshot?.sizeBytes ?? 0) + firstPage.text.byteLength,
    };
    const replay = await (isShortReplay(size) ? replayHere : this.#largeReplays).open({
      base: baseBytes,
      snapshot: snapshot && snapshotBytes && { document: snapshotBytes, entries: snapshot.entries },
    });
    try {
      const { initialProgress } = replay;
      const page =
        initialProgress.lastSequenceId === expected
          ? firstPage
          : await this.#journal.readPage(update.id, initialProgress.lastSequenceId);
      const { progress, fault } = await this.#applyAll(update.id, replay, page, limit);
      // Fewer entries than the update had: another compaction has committed them and the journal was deleted.
      if (!fault && progress.entries < Math.min(update.entryCount, limit)) return null;
      return await work({ replay, progress, fault });
    } finally {
      replay.close();
    }
  }

  /**
   * Finds the longest prefix of the journal, ordered by sequence id, that yields a valid deployment. Returns null as `catchUp` does.
   * If the fault only shows in the finished deployment, searches backwards from the end in doubling steps and then bisects.
   */
  async longestPrefix(update: UpdateRow, bounds: Omit<ReplayBounds, 'entries'> = {}): Promise<LongestPrefix | null> {
    const manifest = await this.manifest(update.id);
    const upTo = (entries: number): Promise<LongestPrefix | null> =>
      this.catchUp(
        update,
        async ({ replay, progress, fault }) => {
          if (progress.entries === 0 && fault) return { progress, replayed: null, fault };
          try {
            return { progress, replayed: await replay.encode(manifest), fault };
          } catch (error) {
            if (!(error instanceof InvalidJournalError)) throw error;
            return { progress, replayed: null, fault: error };
          }
        },
        { ...bounds, entries },
      );

    let best: LongestPrefix = { progress: noProgress, replayed: null, fault: null };
    let failing: LongestPrefix | null;
    try {
      failing = await upTo(Number.POSITIVE_INFINITY);
    } catch (error) {
      if (!(error instanceof InvalidJournalError)) throw error;
      return { ...best, fault: error };
    }
    if (!failing || failing.replayed || failing.progress.entries === 0) return failing;

    const end = failing.progress.entries;
    for (let step = 1; failing.progress.entries - best.progress.entries > 1; step *= 2) {
      const middle = Math.floor((best.progress.entries + failing.progress.entries) / 2);
      const probed = await upTo(best.replayed ? middle : Math.max(end - step, 1));
      if (!probed) return null;
      if (probed.replayed) best = probed;
      else failing = probed;
    }
    const prefix = `Journal entry ${failing.progress.lastSequenceId}: `;
    const message = failing.fault?.message ?? '';
    const fault = new InvalidJournalError(message.startsWith(prefix) ? message : prefix + message, {
      cause: failing.fault,
    });
    return { ...best, fault };
  }

  async #readSnapshot(snapshot: JournalSnapshotRow): Promise<ReplayStart['base']> {
    try {
      return await this.#snapshots.readEncoded(snapshot);
    } catch (error) {
      if (isDamage(error)) throw new DamagedStartError('snapshot', error.message);
      throw error;
    }
  }

  /** Applies this page and all that follow. Reads each page while the previous one is being applied. */
  async #applyAll(
    updateId: string,
    replay: OpenReplay,
    firstPage: JournalPage & { readonly isLast: boolean },
    limit: number,
  ): Promise<Pick<CaughtUp, 'progress' | 'fault'>> {
    let progress = replay.initialProgress;
    let page = firstPage;
    while (page.lengths.length > 0 && progress.entries < limit) {
      const next = page.isLast ? null : this.#journal.readPage(updateId, page.sequenceIds.at(-1) as number);
      // Waits for both even if one fails, so that nothing is still running when the replay is closed.
      const [applied, read] = await Promise.allSettled([
        replay.apply(truncatePage(page, limit - progress.entries)),
        next,
      ]);
      if (applied.status === 'rejected') {
        if (!(applied.reason instanceof InvalidJournalError)) throw applied.reason;
        return { progress: await replay.progress(), fault: applied.reason };
      }
      progress = applied.value;
      if (read.status === 'rejected') throw read.reason;
      if (!read.value) break;
      page = read.value;
    }
    return { progress, fault: null };
  }
}

function truncatePage(page: JournalPage, maxEntries: number): JournalPage {
  if (page.lengths.length <= maxEntries) return page;
  return { ...page, sequenceIds: page.sequenceIds.slice(0, maxEntries), lengths: page.lengths.slice(0, maxEntries) };
}
