import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { bytesOf } from '../checkpoints/byte-source.ts';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import { InvalidRequestError, UnavailableError } from '../platform/errors/errors.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import type { FoldPointRepository } from './fold-point-repository.ts';
import type { JournalRepository } from './journal-repository.ts';
import { JournalReplay } from './replay.ts';
import { JournalReplayError } from './replay-error.ts';
import { ReplaySnapshotError } from './replay-snapshot.ts';

const attempts = 10;
/** Entries read and applied in one turn of the event loop. */
const pageEntries = 1_000;

/** What a replay came to, before it is stored. */
export interface ReplayedState {
  readonly document: Buffer;
  readonly resourceCount: number;
}

/** The journal cannot be replayed. Its entries are kept; the state stays as it was before them. */
export class UnsoundJournalError extends InvalidRequestError {
  override readonly name = 'UnsoundJournalError';
  override readonly code = 'unsound-journal';
}

interface CaughtUp {
  readonly replay: JournalReplay;
  /** Entries applied since the base. */
  readonly entries: number;
}

/**
 * Turns an update's base and journal into a checkpoint, going on from the last fold point when there is one. Two folds at
 * once are harmless: one commits, the other looks again.
 */
export class JournalFolder {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #journal: JournalRepository;
  readonly #points: FoldPointRepository;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    journal: JournalRepository;
    foldPoints: FoldPointRepository;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#journal = parts.journal;
    this.#points = parts.foldPoints;
  }

  /**
   * Folds until the update's checkpoint holds all entries that were there at the call. Of an ended update the journal is
   * deleted with that, once the checkpoint was read back. Throws UnsoundJournalError while the update runs; of an ended one
   * the fault is recorded instead, and the state stays at its checkpoint.
   */
  async fold(updateId: string): Promise<void> {
    let goal: number | null = null;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const update = await this.#updates.find(updateId);
      if (!update) return;
      goal ??= update.entryCount;
      if (update.foldedEntries >= goal) {
        if (!isActive(update.status) && !update.hasTail) await this.#deleteJournal(update);
        return;
      }
      try {
        await this.#commitFold(update);
      } catch (error) {
        if (!(error instanceof UnsoundJournalError) || isActive(update.status)) throw error;
        await this.#updates.setFoldError(updateId, error.message);
        return;
      }
    }
    throw new UnavailableError('Others keep changing the update while its journal is folded; please repeat the call');
  }

  /** Stores a fold point, unless entries are missing in between: one that comes late could not be put in its place then. */
  async advance(updateId: string): Promise<void> {
    const update = await this.#updates.find(updateId);
    if (!update || !isActive(update.status)) return;
    const caughtUp = await this.#catchUp(update);
    if (!caughtUp || caughtUp.replay.hasGap) return;
    const place = await this.#documents.save(bytesOf(caughtUp.replay.snapshot()));
    await this.#points.upsert(updateId, caughtUp.entries, place);
  }

  /**
   * Base and entries as one document, without storing it; null when they were folded and deleted meanwhile.
   * Throws UnsoundJournalError.
   */
  async replay(update: UpdateRow): Promise<ReplayedState | null> {
    const caughtUp = await this.#catchUp(update);
    return caughtUp ? this.#generate(update.id, caughtUp) : null;
  }

  async #commitFold(update: UpdateRow): Promise<void> {
    const caughtUp = await this.#catchUp(update);
    if (!caughtUp) return;
    const { document, resourceCount } = await this.#generate(update.id, caughtUp);
    await this.#checkpoints.commitFold(
      {
        updateId: update.id,
        stackId: update.stackId,
        foundCheckpointId: update.checkpointId,
        foldedEntries: caughtUp.entries,
      },
      { document: await this.#documents.save(bytesOf(document)), resourceCount },
    );
  }

  async #generate(updateId: string, { replay }: CaughtUp): Promise<ReplayedState> {
    const version = await this.#updates.findClientVersion(updateId);
    return refuseUnsound(() => replay.generate({ time: new Date().toISOString(), version }));
  }

  async #catchUp(update: UpdateRow): Promise<CaughtUp | null> {
    const base = update.baseCheckpointId ? await this.#checkpoints.find(update.baseCheckpointId) : null;
    if (update.baseCheckpointId && !base) return null;
    const document = base ? await this.#documents.read(base) : null;
    let { replay, entries } = await this.#resume(update.id, document);
    for (;;) {
      const page = await this.#journal.list(update.id, replay.lastSequenceId, pageEntries);
      refuseUnsound(() => {
        for (const { sequenceId, entry } of page) {
          if (replay.apply({ sequenceId, text: Buffer.from(entry) })) entries++;
        }
      });
      if (page.length < pageEntries) {
        // Fewer than the update counted: another fold has committed them meanwhile, and the journal was deleted.
        return entries < update.entryCount ? null : { replay, entries };
      }
      // A large journal must not hold up everything else in this process.
      await nextTurn();
    }
  }

  async #resume(updateId: string, base: Buffer | null): Promise<CaughtUp> {
    const point = await this.#points.find(updateId);
    if (point) {
      try {
        return { replay: JournalReplay.restore(base, await this.#documents.read(point)), entries: point.entries };
      } catch (error) {
        // Written by another release, or over another base: the journal itself has everything.
        if (!(error instanceof ReplaySnapshotError)) throw error;
      }
    }
    return { replay: refuseUnsound(() => new JournalReplay(base)), entries: 0 };
  }

  async #deleteJournal(update: UpdateRow): Promise<void> {
    if (update.entryCount === 0 || update.foldError !== null) return;
    const checkpoint = update.checkpointId ? await this.#checkpoints.find(update.checkpointId) : null;
    if (checkpoint) {
      const hash = createHash('sha256');
      for await (const chunk of this.#documents.open(checkpoint)) hash.update(chunk);
      if (!hash.digest().equals(checkpoint.sha256)) {
        throw new Error(
          `Checkpoint ${checkpoint.id} does not read back as written; the journal of update ${update.id} is kept`,
        );
      }
    }
    await this.#journal.deleteFolded(update.id);
  }
}

function refuseUnsound<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof JournalReplayError) throw new UnsoundJournalError(error.message, { cause: error });
    throw error;
  }
}
