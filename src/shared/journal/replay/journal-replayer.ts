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

/** A replay that has come to the end of the journal, or to where it was asked to stop. */
export interface CaughtUp {
  readonly replay: OpenReplay;
  readonly progress: ReplayProgress;
  /** Why it could go no further; null at the end. */
  readonly fault: InvalidJournalError | null;
}

export interface ReplayBounds {
  /** Stop after so many entries, counted from the first. */
  readonly entries?: number;
  /** Start from the base, not from a snapshot: that may be of a release that knew less. */
  readonly fromBase?: boolean;
}

/** The longest part of a journal, from its beginning, that makes a deployment. */
export interface LongestPrefix {
  /** How far it goes; with 0 entries the state is the base itself. */
  readonly progress: ReplayProgress;
  readonly replayed: ReplayedDocument | null;
  /** Why the journal does not go on after it; null when it is all there. */
  readonly fault: InvalidJournalError | null;
}

const attempts = 3;
const nothing: ReplayProgress = { entries: 0, lastSequenceId: 0, hasGap: false, unknownKinds: null };

/** Reads what a replay needs, page by page, and gives it to a runner of replays. */
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
    /** For replays that would hold up this thread. */
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
   * Does `work` where all entries have been applied, or all up to the one that cannot be; null when they were compacted and
   * deleted meanwhile. A damaged snapshot is dropped, a damaged base repaired. Throws InvalidJournalError when not even the
   * base can be read, DocumentDamagedError when it is damaged for good.
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
        // The base was replaced by another checkpoint, maybe as a repair.
        if (error instanceof DocumentMissingError) return null;
        if (!(error instanceof DamagedStartError) || attempt === attempts) throw error;
        if (!(await this.#mend(update, error))) return null;
      }
    }
  }

  /** Whether the replay may begin again as it is. Throws DocumentDamagedError. */
  async #mend(update: UpdateRow, damage: DamagedStartError): Promise<boolean> {
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
      const begun = replay.begun;
      const page =
        begun.lastSequenceId === expected ? firstPage : await this.#journal.readPage(update.id, begun.lastSequenceId);
      const { progress, fault } = await this.#applyAll(update.id, replay, page, limit);
      // Fewer than the update counted: another compaction has committed them meanwhile, and the journal was deleted.
      if (!fault && progress.entries < Math.min(update.entryCount, limit)) return null;
      return await work({ replay, progress, fault });
    } finally {
      replay.close();
    }
  }

  /**
   * The longest prefix of the journal, in order of sequence ids, that makes a deployment; null as `catchUp`. Where only the
   * finished deployment shows the fault, the prefix is looked for in steps that double, from the end, and then halved.
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

    let best: LongestPrefix = { progress: nothing, replayed: null, fault: null };
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
    const at = `Journal entry ${failing.progress.lastSequenceId}: `;
    const message = failing.fault?.message ?? '';
    const fault = new InvalidJournalError(message.startsWith(at) ? message : at + message, { cause: failing.fault });
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

  /** Applies the page and all that follow, each read ahead while the one before is applied. */
  async #applyAll(
    updateId: string,
    replay: OpenReplay,
    firstPage: JournalPage & { readonly isLast: boolean },
    limit: number,
  ): Promise<Pick<CaughtUp, 'progress' | 'fault'>> {
    let progress = replay.begun;
    let page = firstPage;
    while (page.lengths.length > 0 && progress.entries < limit) {
      const next = page.isLast ? null : this.#journal.readPage(updateId, page.sequenceIds.at(-1) as number);
      // Both are waited for whatever becomes of one, so that nothing of this replay is under way when it is closed.
      const [applied, read] = await Promise.allSettled([replay.apply(cut(page, limit - progress.entries)), next]);
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

function cut(page: JournalPage, entries: number): JournalPage {
  if (page.lengths.length <= entries) return page;
  return { ...page, sequenceIds: page.sequenceIds.slice(0, entries), lengths: page.lengths.slice(0, entries) };
}
