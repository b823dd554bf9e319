import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentGuard } from '../checkpoints/document-guard.ts';
import type { DocumentStore } from '../documents/document-store.ts';
import { AppError, UnavailableError } from '../platform/errors/errors.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import { CompactionClaims } from './compaction-claims.ts';
import { CompactionCommitter, warningOf } from './compaction-committer.ts';
import type { CompactionRepository } from './compaction-repository.ts';
import type { JournalRepository } from './journal-repository.ts';
import type { JournalSnapshots } from './journal-snapshots.ts';
import { JournalReplayer } from './replay/journal-replayer.ts';
import { InvalidJournalError, type ReplayRunner } from './replay/runner/replay-runner.ts';
import type { ReplayedText } from './replay/runner/replay-work.ts';
import { StateRebuilder } from './state-rebuilder.ts';

const attempts = 10;
const firstPauseMs = 50;
const longestPauseMs = 1_000;
/** No compaction takes as long. */
const waitLimitMs = 10 * 60_000;

/** A document made of base and entries without being stored. */
export interface ReplayedState extends ReplayedText {
  /** What was left out, as a sentence. */
  readonly warning: string | null;
}

/** What came of trying a journal again: how many entries are in the state now, and why not all of them. */
export interface Recompacted {
  readonly entries: number;
  readonly error: string | null;
  readonly warning: string | null;
  /** Whether it has replaced the state that was there. */
  readonly committed: boolean;
}

/**
 * Turns an update's base and journal into a checkpoint, starting from the last journal snapshot when there is one. One process
 * at a time compacts a journal; the others wait for its result.
 */
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
    guard: DocumentGuard;
    journal: JournalRepository;
    journalSnapshots: JournalSnapshots;
    compactions: CompactionRepository;
    /** For replays that would hold up this thread. */
    largeReplays: ReplayRunner;
    /** How long compacted journals are kept; 0 deletes them at once. */
    graceSeconds: number;
    logger: Logger;
  }) {
    const replayer = new JournalReplayer(parts);
    this.#updates = parts.updates;
    this.#snapshots = parts.journalSnapshots;
    this.#compactions = parts.compactions;
    this.#replayer = replayer;
    this.#claims = new CompactionClaims(parts.compactions, parts.logger);
    this.#committer = new CompactionCommitter({ ...parts, replayer });
    this.#rebuilder = new StateRebuilder({ ...parts, replayer });
  }

  /**
   * Compacts until the update's checkpoint holds all entries that were there at the call. The checkpoint of an ended update is
   * read back, and from then on its journal is kept for the grace period only. Throws InvalidJournalError while the update runs;
   * the longest valid prefix becomes the state of an ended one, and the fault is recorded.
   */
  async compact(updateId: string): Promise<void> {
    const deadline = performance.now() + waitLimitMs;
    let goal: number | null = null;
    let pauseMs = firstPauseMs;
    for (let attempt = 1; attempt <= attempts && performance.now() < deadline; ) {
      const update = await this.#updates.find(updateId);
      if (!update) return;
      goal ??= update.entryCount;
      if (!needsCompaction(update, goal)) return;
      if (await this.#claims.run(updateId, () => this.#compactClaimed(updateId, attempt))) {
        attempt++;
        continue;
      }
      // Another process has committed them and is reading the checkpoint back, which need not be waited for.
      if (!update.hasPendingEntries) return;
      await sleep(pauseMs * (0.5 + Math.random()));
      pauseMs = Math.min(pauseMs * 1.5, longestPauseMs);
    }
    throw new UnavailableError('The update keeps changing while its journal is being compacted; please retry');
  }

  /**
   * After a compaction failed, here or on a worker: when the base of an ended update is damaged for good, its journal is recorded
   * as one that cannot be replayed, so that an operator can decide; everything is kept. Throws the error when it was another, or
   * the update runs.
   */
  async setAside(updateId: string, error: unknown): Promise<void> {
    const update = isDamagedDocument(error) ? await this.#updates.find(updateId) : null;
    if (!update || isActive(update.status)) throw error;
    await this.#compactions.recordFault(updateId, (error as Error).message);
  }

  /**
   * Stores a snapshot of a running update's journal. None is taken where entries are missing in between, which could not be
   * applied later, none where some were left out, which a newer release may know, and none past an entry that cannot be replayed.
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

  /**
   * Base and entries as one document, without storing it; null when they were compacted and deleted meanwhile.
   * Throws InvalidJournalError.
   */
  replay(update: UpdateRow): Promise<ReplayedState | null> {
    return this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
      if (fault) throw fault;
      const written = await replay.write(await this.#replayer.manifest(update.id));
      return { ...written, warning: warningOf(progress) };
    });
  }

  /**
   * Replays the whole journal of an ended update again, as after an upgrade. The result is committed when it is whole, or goes
   * further than the present state, and no update runs. Null when there is no journal, or another process compacts it at present.
   */
  async recompact(updateId: string): Promise<Recompacted | null> {
    let recompacted: Recompacted | null = null;
    await this.#claims.run(updateId, async () => {
      const update = await this.#updates.find(updateId);
      const prefix =
        update && !isActive(update.status) && (await this.#replayer.longestPrefix(update, { fromBase: true }));
      if (!update || !prefix) return false;
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
   * Makes an update's state again from its base and its journal, and replaces a damaged checkpoint by it: that of the update, and
   * wherever else the stack refers to it. False when the journal is gone, holds no part of the state, or another process compacts
   * it at present.
   */
  async rebuild(updateId: string): Promise<boolean> {
    let rebuilt = false;
    await this.#claims.run(updateId, async () => {
      rebuilt = await this.#rebuilder.rebuild(updateId);
      return false;
    });
    return rebuilt;
  }

  /** Whether a compaction was committed. */
  async #compactClaimed(updateId: string, attempt: number): Promise<boolean> {
    const update = await this.#updates.find(updateId);
    if (!update) return false;
    if (update.hasPendingEntries) {
      if (isActive(update.status)) return this.#committer.commitAll(update);
      const prefix = await this.#replayer.longestPrefix(update);
      return prefix !== null && this.#committer.commitPrefix(update, prefix);
    }
    if (!isActive(update.status)) await this.#rebuilder.readBack(update, attempt);
    return false;
  }
}

/** Whether there is anything to do for callers that saw `goal` entries. */
function needsCompaction(update: UpdateRow, goal: number): boolean {
  if (isActive(update.status)) return update.hasPendingEntries && update.compactedEntries < goal;
  return update.hasJournal && update.compactedAt === null;
}

/** Known by its code: the class does not survive the way back from a worker. */
function isDamagedDocument(error: unknown): boolean {
  return error instanceof AppError && error.code === 'document-damaged';
}
