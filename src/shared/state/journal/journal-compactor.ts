import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, UnavailableError } from '../../platform/errors/errors.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../../platform/read-only/read-only-mode.ts';
import type { UpdateRepository, UpdateRow } from '../../updates/update-repository.ts';
import { isActive } from '../../updates/update-state.ts';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentCopies } from '../checkpoints/document-copies.ts';
import type { DocumentReader } from '../checkpoints/document-reader.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import { CompactionClaims } from './compaction-claims.ts';
import { CompactionCommitter, warningOf } from './compaction-committer.ts';
import type { ClaimedUpdate, CompactionRepository } from './compaction-repository.ts';
import type { OpenReplays } from './incremental/open-replays.ts';
import type { JournalRepository } from './journal-repository.ts';
import type { JournalSnapshots } from './journal-snapshots.ts';
import { JournalReplayer } from './replay/journal-replayer.ts';
import { InvalidJournalError, type ReplayRunner } from './replay/runner/replay-runner.ts';
import type { ReplayedText } from './replay/runner/replay-work.ts';
import { StateRebuilder } from './state-rebuilder.ts';

const attempts = 10;
const firstPauseMs = 50;
const maxPauseMs = 1_000;
/** Longer than any compaction takes. */
const waitLimitMs = 10 * 60_000;

export class JournalClaimedError extends Error {
  override readonly name = 'JournalClaimedError';
}

/** Built from the base and the entries, but not stored. */
export interface ReplayedState extends ReplayedText {
  /** Describes what the replay skipped. */
  readonly warning: string | null;
}

/** The number of applied entries, and why some could not be applied. */
export interface Recompacted {
  readonly entries: number;
  readonly error: string | null;
  readonly warning: string | null;
  readonly committed: boolean;
}

/** Starts from the last journal snapshot if there is one. Only one process at a time compacts a journal; the others wait for its result. */
export class JournalCompactor {
  readonly #updates: UpdateRepository;
  readonly #snapshots: JournalSnapshots;
  readonly #compactions: CompactionRepository;
  readonly #replayer: JournalReplayer;
  readonly #claims: CompactionClaims;
  readonly #committer: CompactionCommitter;
  readonly #rebuilder: StateRebuilder;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    documentReader: DocumentReader;
    journal: JournalRepository;
    journalSnapshots: JournalSnapshots;
    compactions: CompactionRepository;
    /** For replays that would block this thread for too long. */
    largeReplays: ReplayRunner;
    openReplays: OpenReplays;
    /** 0 deletes compacted journals at once. */
    graceSeconds: number;
    readOnly: ReadOnlyMode;
    logger: Logger;
  }) {
    const replayer = new JournalReplayer(parts);
    this.#updates = parts.updates;
    this.#snapshots = parts.journalSnapshots;
    this.#compactions = parts.compactions;
    this.#replayer = replayer;
    this.#claims = new CompactionClaims(parts);
    this.#committer = new CompactionCommitter({ ...parts, replayer });
    this.#rebuilder = new StateRebuilder({ ...parts, replayer });
  }

  /**
   * Compacts until the update's checkpoint contains all entries that existed at the time of the call. The checkpoint of an ended update is
   * then read back, and its journal is kept only for the grace period. If an entry is invalid, throws InvalidJournalError while the update
   * is running; for an ended update, the longest valid prefix becomes its state and the fault is recorded. Throws UnavailableError if the
   * update keeps changing. Unless `waits` is set, throws JournalClaimedError if another process holds the claim.
   */
  async compact(updateId: string, waits = true): Promise<void> {
    const deadline = performance.now() + waitLimitMs;
    let goal: number | null = null;
    let pauseMs = firstPauseMs;
    for (let attempt = 1; attempt <= attempts && performance.now() < deadline; ) {
      let isDone = false;
      // The claim comes first, because it returns the update, and usually no other process holds it.
      const work = async (claimed: ClaimedUpdate): Promise<boolean> => {
        goal ??= claimed.entryCount;
        const outcome = await this.#compactClaimed(claimed, goal, attempt);
        isDone = outcome === 'done' || outcome === 'needless';
        return outcome === 'done' || outcome === 'committed';
      };
      const isClaimed = await this.#claims.run(updateId, work, { withPage: !this.#replayer.isOpen(updateId) });
      if (isDone) return;
      if (isClaimed) {
        attempt++;
        continue;
      }
      const update = await this.#updates.find(updateId);
      if (!update || !isActive(update.status)) this.#replayer.forget(updateId);
      if (!update) return;
      goal ??= update.entryCount;
      if (!needsCompaction(update, goal)) return;
      // Another process has committed the entries and is reading the checkpoint back. This caller need not wait for that.
      if (!update.hasPendingEntries) return;
      if (!waits) throw new JournalClaimedError();
      await sleep(pauseMs * (0.5 + Math.random()));
      pauseMs = Math.min(pauseMs * 1.5, maxPauseMs);
    }
    throw new UnavailableError('The update keeps changing while its journal is being compacted; please retry');
  }

  /**
   * Call this for a compaction that failed here or on a worker. If the base of an ended update is damaged beyond repair, records that its
   * journal cannot be replayed, so that an operator can decide; nothing is deleted. Otherwise rethrows the error, also while the update is
   * running.
   */
  async setAside(updateId: string, error: unknown): Promise<void> {
    const update = isDamagedDocument(error) ? await this.#updates.find(updateId) : null;
    if (!update || isActive(update.status)) throw error;
    await this.#compactions.recordFault(updateId, (error as Error).message);
  }

  /**
   * Does nothing if there are gaps (missing entries could not be applied later), if entries of unknown kinds were skipped (a newer release
   * may know them), or if an entry is invalid.
   */
  async takeSnapshot(updateId: string): Promise<void> {
    const update = await this.#updates.find(updateId);
    if (!update || !isActive(update.status)) return;
    try {
      await this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
        if (fault || progress.hasGap || progress.unknownKinds) return;
        await this.#snapshots.save(updateId, progress.entries, await replay.snapshot());
      });
    } catch (error) {
      if (!(error instanceof InvalidJournalError)) throw error;
    }
  }

  /** See JournalReplayer. */
  advance(updateId: string): Promise<void> {
    return this.#replayer.advance(updateId);
  }

  /** Stores nothing. Returns null if the entries have been compacted and deleted in the meantime. Throws InvalidJournalError. */
  replay(update: UpdateRow): Promise<ReplayedState | null> {
    return this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
      if (fault) throw fault;
      const written = await replay.write(await this.#replayer.manifest(update.id));
      return { ...written, warning: warningOf(progress) };
    });
  }

  /**
   * Replays the whole journal of an ended update again, e.g. after an upgrade. Commits the result if no update is running and the result is
   * complete or contains more entries than the current state. Returns null if there is no journal or another process is compacting it.
   */
  async recompact(updateId: string): Promise<Recompacted | null> {
    let recompacted: Recompacted | null = null;
    await this.#claims.run(updateId, async (update) => {
      const prefix = !isActive(update.status) && (await this.#replayer.longestPrefix(update, { fromBase: true }));
      if (!prefix) return false;
      const error = prefix.fault?.message ?? null;
      const { entries } = prefix.progress;
      const isBetter = error === null || (update.compactionError !== null && entries > update.compactedEntries);
      const committed = isBetter && (await this.#committer.commitPrefix(update, prefix));
      recompacted = { entries, error, warning: warningOf(prefix.progress), committed };
      return committed;
    });
    if ((recompacted as Recompacted | null)?.committed) await this.compact(updateId);
    return recompacted;
  }

  /**
   * Replaces the damaged checkpoint everywhere the stack refers to it. Includes deleted stacks that can be restored. Returns false if the
   * journal is gone or contributed nothing to the state, if the update's checkpoint is no longer `damagedId`, or if another process is
   * compacting the journal.
   */
  async rebuild(updateId: string, damagedId: string | null): Promise<boolean> {
    let rebuilt = false;
    const work = async (claimed: ClaimedUpdate): Promise<boolean> => {
      rebuilt = claimed.checkpointId === damagedId && (await this.#rebuilder.rebuild(claimed));
      return false;
    };
    await this.#claims.run(updateId, work, { deletedToo: true });
    return rebuilt;
  }

  /** `done`: nothing else is left to do for now. `needless`: there was nothing to do. */
  async #compactClaimed(
    update: ClaimedUpdate,
    goal: number,
    attempt: number,
  ): Promise<'done' | 'needless' | 'committed' | 'not committed'> {
    if (!isActive(update.status)) this.#replayer.forget(update.id);
    if (!needsCompaction(update, goal)) return 'needless';
    if (isActive(update.status)) return (await this.#committer.commitAll(update)) ? 'done' : 'not committed';
    if (!update.hasPendingEntries) return (await this.#rebuilder.readBack(update, attempt)) ? 'done' : 'not committed';
    const prefix = await this.#replayer.longestPrefix(update);
    const isCommitted = prefix !== null && (await this.#committer.commitPrefix(update, prefix));
    return isCommitted ? 'committed' : 'not committed';
  }
}

/** The checkpoint lacks some of the first `goal` entries or, if the update has ended, has not been read back. */
function needsCompaction(update: UpdateRow, goal: number): boolean {
  if (isActive(update.status)) return update.hasPendingEntries && update.compactedEntries < goal;
  return update.hasJournal && update.compactedAt === null;
}

/** An error from a worker has lost its class. */
function isDamagedDocument(error: unknown): boolean {
  return error instanceof AppError && error.code === 'document-damaged';
}
