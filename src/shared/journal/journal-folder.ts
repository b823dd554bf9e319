import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import { type DocumentGuard, isDamage } from '../checkpoints/document-guard.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import { AppError, UnavailableError } from '../platform/errors/errors.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import { FoldClaims } from './fold-claims.ts';
import type { FoldPointRepository } from './fold-point-repository.ts';
import type { FoldRepository } from './fold-repository.ts';
import { describeUnknownKinds } from './journal-fault.ts';
import { JournalReplayer, type LongestPrefix } from './journal-replayer.ts';
import type { JournalRepository } from './journal-repository.ts';
import { type ReplayRunner, UnsoundJournalError } from './replay-runner.ts';
import type { ReplayedText, ReplayProgress } from './replay-work.ts';

const attempts = 10;
const firstPauseMs = 50;
const longestPauseMs = 1_000;
/** No fold takes as long. */
const waitLimitMs = 10 * 60_000;

/** A document made of base and entries for the occasion. */
export interface ReplayedState extends ReplayedText {
  /** What was left out, as a sentence. */
  readonly warning: string | null;
}

/** What came of trying a journal again: how many entries are in the state now, and why not all of them. */
export interface Refolded {
  readonly entries: number;
  readonly error: string | null;
  readonly warning: string | null;
  /** Whether it was put in the place of the state that was there. */
  readonly committed: boolean;
}

/**
 * Turns an update's base and journal into a checkpoint, going on from the last fold point when there is one. A journal is folded
 * by one process at a time; the others wait for what comes of it.
 */
export class JournalFolder {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #points: FoldPointRepository;
  readonly #folds: FoldRepository;
  readonly #replayer: JournalReplayer;
  readonly #claims: FoldClaims;
  readonly #graceSeconds: number;
  readonly #logger: Logger;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    guard: DocumentGuard;
    journal: JournalRepository;
    foldPoints: FoldPointRepository;
    folds: FoldRepository;
    /** For replays that would hold up this thread. */
    largeReplays: ReplayRunner;
    /** How long folded journals are kept; 0 deletes them at once. */
    graceSeconds: number;
    logger: Logger;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#points = parts.foldPoints;
    this.#folds = parts.folds;
    this.#replayer = new JournalReplayer(parts);
    this.#claims = new FoldClaims(parts.folds, parts.logger);
    this.#graceSeconds = parts.graceSeconds;
    this.#logger = parts.logger;
  }

  /**
   * Folds until the update's checkpoint holds all entries that were there at the call. Of an ended update the checkpoint is read
   * back, and from then on its journal is kept for the grace period only. Throws UnsoundJournalError while the update runs;
   * of an ended one the longest sound prefix becomes the state, and the fault is recorded.
   */
  async fold(updateId: string): Promise<void> {
    const deadline = performance.now() + waitLimitMs;
    let goal: number | null = null;
    let pauseMs = firstPauseMs;
    for (let attempt = 1; attempt <= attempts && performance.now() < deadline; ) {
      const update = await this.#updates.find(updateId);
      if (!update) return;
      goal ??= update.entryCount;
      if (!needsFold(update, goal)) return;
      if (await this.#claims.run(updateId, () => this.#foldClaimed(updateId, attempt))) {
        attempt++;
        continue;
      }
      // Committed by another, who now reads it back: that is nothing to wait for.
      if (!update.hasTail) return;
      await sleep(pauseMs * (0.5 + Math.random()));
      pauseMs = Math.min(pauseMs * 1.5, longestPauseMs);
    }
    throw new UnavailableError('The update keeps changing while its journal is being compacted; please retry');
  }

  /**
   * After a fold failed, here or on a worker: an ended update whose base is damaged for good is recorded as one whose journal cannot be
   * replayed, so that an operator can decide; everything is kept. Throws the error when it was another, or the update runs.
   */
  async setAside(updateId: string, error: unknown): Promise<void> {
    const update = isDamagedDocument(error) ? await this.#updates.find(updateId) : null;
    if (!update || isActive(update.status)) throw error;
    await this.#folds.recordFault(updateId, (error as Error).message);
  }

  /**
   * Stores a fold point. None where entries are missing in between, which could not be put in their place later, none where some
   * were left out, which a newer release may know, and none past an entry that cannot be replayed.
   */
  async advance(updateId: string): Promise<void> {
    const update = await this.#updates.find(updateId);
    if (!update || !isActive(update.status)) return;
    try {
      await this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
        if (fault || progress.hasGap || progress.unknownKinds) return;
        const place = await this.#documents.saveEncoded(await replay.snapshot());
        await this.#points.upsert(updateId, progress.entries, place);
      });
    } catch (error) {
      if (!(error instanceof UnsoundJournalError)) throw error;
    }
  }

  /**
   * Base and entries as one document, without storing it; null when they were folded and deleted meanwhile.
   * Throws UnsoundJournalError.
   */
  replay(update: UpdateRow): Promise<ReplayedState | null> {
    return this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
      if (fault) throw fault;
      const written = await replay.write(await this.#replayer.manifest(update.id));
      return { ...written, warning: warningOf(progress) };
    });
  }

  /**
   * Replays the whole journal of an ended update again, as after an upgrade. What comes of it is committed when it is whole, or
   * goes further than what is there, and no update runs. Null when there is no journal, or another folds it at present.
   */
  async refold(updateId: string): Promise<Refolded | null> {
    let refolded: Refolded | null = null;
    await this.#claims.run(updateId, async () => {
      const update = await this.#updates.find(updateId);
      const prefix =
        update && !isActive(update.status) && (await this.#replayer.longestPrefix(update, { fromBase: true }));
      if (!update || !prefix) return false;
      const error = prefix.fault?.message ?? null;
      const { entries } = prefix.progress;
      const isBetter = error === null || (update.foldError !== null && entries > update.foldedEntries);
      const committed = isBetter && (await this.#commitPrefix(update, prefix));
      refolded = { entries, error, warning: warningOf(prefix.progress), committed };
      return committed;
    });
    if ((refolded as Refolded | null)?.committed) await this.fold(updateId);
    return refolded;
  }

  /**
   * Makes an update's state anew from its base and its journal, and puts it in the place of a damaged checkpoint: that of the
   * update, and wherever else the stack refers to it. False when the journal is gone, holds no part of the state, or another
   * folds it at present.
   */
  async rebuild(updateId: string): Promise<boolean> {
    let rebuilt = false;
    await this.#claims.run(updateId, async () => {
      rebuilt = await this.#rebuildClaimed(updateId);
      return false;
    });
    return rebuilt;
  }

  /** Whether a fold was committed. */
  async #foldClaimed(updateId: string, attempt: number): Promise<boolean> {
    const update = await this.#updates.find(updateId);
    if (!update) return false;
    if (update.hasTail) {
      if (isActive(update.status)) return this.#commitAll(update);
      const prefix = await this.#replayer.longestPrefix(update);
      return prefix !== null && this.#commitPrefix(update, prefix);
    }
    if (!isActive(update.status)) await this.#readBack(update, attempt);
    return false;
  }

  async #commitAll(update: UpdateRow): Promise<boolean> {
    const checkpointId = await this.#replayer.catchUp(update, async ({ replay, progress, fault }) => {
      if (fault) throw fault;
      const { document, resourceCount } = await replay.encode(await this.#replayer.manifest(update.id));
      return this.#checkpoints.commitFold(
        { ...foldOf(update, progress), outcome: { error: null, warning: warningOf(progress), isNew: false } },
        { document: await this.#documents.saveEncoded(document), resourceCount },
      );
    });
    return checkpointId !== null;
  }

  async #commitPrefix(update: UpdateRow, { progress, replayed, fault }: LongestPrefix): Promise<boolean> {
    const error = fault?.message ?? null;
    const warning = warningOf(progress);
    let committed: boolean;
    if (replayed) {
      const { document, resourceCount } = replayed;
      const checkpointId = await this.#checkpoints.commitFold(
        { ...foldOf(update, progress), outcome: { error, warning, isNew: true } },
        { document: await this.#documents.saveEncoded(document), resourceCount },
      );
      committed = checkpointId !== null;
    } else {
      committed = await this.#folds.revertToBase({
        ...foldOf(update, progress),
        error: error ?? 'the journal is empty',
      });
    }
    if (committed) this.#report(update, progress.entries, error, warning);
    return committed;
  }

  #report(
    { id, stackId, stackVersion, entryCount }: UpdateRow,
    entries: number,
    error: string | null,
    warning: string | null,
  ) {
    const facts = { updateId: id, stackId, stackVersion, entries, entryCount };
    if (error !== null) {
      this.#logger.error(
        { ...facts, reason: error },
        'journal not replayed completely; the stack waits for an operator',
      );
    }
    if (warning !== null)
      this.#logger.warn({ ...facts, reason: warning }, 'journal replayed without entries of unknown kinds');
  }

  async #readBack(update: UpdateRow, attempt: number): Promise<void> {
    const isOwn = update.foldedEntries > 0;
    if (isOwn && !(await this.#readsBack(update))) {
      if (attempt > 2) {
        throw new Error(
          `Checkpoint ${update.checkpointId} does not read back as written; the journal of update ${update.id} is kept`,
        );
      }
      this.#logger.error({ updateId: update.id }, 'checkpoint does not read back as written; rebuilt from the journal');
      await this.#rebuildClaimed(update.id);
      // The next attempt reads that back.
      return;
    }
    await this.#folds.markFolded(update.id, update.checkpointId);
    if (update.entryCount === 0 || this.#graceSeconds === 0) await this.#folds.delete(update.id);
  }

  async #readsBack(update: UpdateRow): Promise<boolean> {
    const checkpoint = update.checkpointId ? await this.#checkpoints.find(update.checkpointId) : null;
    if (!checkpoint) return true;
    try {
      for await (const _ of this.#documents.open(checkpoint));
      return true;
    } catch (error) {
      if (isDamage(error)) return false;
      throw error;
    }
  }

  async #rebuildClaimed(updateId: string): Promise<boolean> {
    const update = await this.#updates.find(updateId);
    if (!update || update.checkpointId === null || update.foldedEntries === 0) return false;
    const found = { ...foldOf(update), foundCheckpointId: update.checkpointId };
    const rebuilt = await this.#replayer.catchUp(
      update,
      async ({ replay, fault }) => {
        if (fault) throw fault;
        const { document, resourceCount } = await replay.encode(await this.#replayer.manifest(updateId));
        const place = await this.#documents.saveEncoded(document);
        return this.#checkpoints.replace(found, { document: place, resourceCount });
      },
      { entries: update.foldedEntries, fromBase: true },
    );
    if (rebuilt) this.#logger.warn({ updateId }, 'state rebuilt from its journal');
    return rebuilt !== null;
  }
}

/** Whether the fold has anything to do for those who saw `goal` entries. */
function needsFold(update: UpdateRow, goal: number): boolean {
  if (isActive(update.status)) return update.hasTail && update.foldedEntries < goal;
  return update.hasJournal && update.foldedAt === null;
}

function foldOf(update: UpdateRow, progress?: ReplayProgress) {
  return {
    updateId: update.id,
    stackId: update.stackId,
    foundCheckpointId: update.checkpointId,
    foldedEntries: progress?.entries ?? update.foldedEntries,
  };
}

function warningOf({ unknownKinds }: ReplayProgress): string | null {
  return unknownKinds && describeUnknownKinds(unknownKinds);
}

/** Known by its code: the class does not survive the way back from a worker. */
function isDamagedDocument(error: unknown): boolean {
  return error instanceof AppError && error.code === 'document-damaged';
}
