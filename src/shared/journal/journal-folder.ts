import { bytesOf } from '../checkpoints/byte-source.ts';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import { InvalidRequestError, UnavailableError } from '../platform/errors/errors.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import type { JournalRepository } from './journal-repository.ts';
import { replayJournal } from './replay.ts';
import { JournalReplayError } from './replay-error.ts';

const attempts = 10;

/** What a replay came to, before it is stored. */
export interface ReplayedState {
  readonly document: Buffer;
  readonly resourceCount: number;
  /** Highest sequenceID that went in. */
  readonly sequence: number;
}

/** The journal cannot be replayed. Its entries are kept; the state stays as it was before them. */
export class UnsoundJournalError extends InvalidRequestError {
  override readonly name = 'UnsoundJournalError';
  override readonly code = 'unsound-journal';
}

/** Turns an update's base and journal into a checkpoint. Two folds at once are harmless: one commits, the other looks again. */
export class JournalFolder {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #journal: JournalRepository;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    journal: JournalRepository;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#journal = parts.journal;
  }

  /**
   * Folds until the update's checkpoint holds all entries; returns at once when it does. Entries of an ended update are
   * deleted with that. Throws UnsoundJournalError.
   */
  async fold(updateId: string): Promise<void> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const update = await this.#updates.find(updateId);
      if (!update) return;
      if (!update.hasTail) {
        if (!isActive(update.status) && update.foldedSequence > 0) await this.#journal.deleteFolded(updateId);
        return;
      }
      try {
        await this.#foldOnce(update);
      } catch (error) {
        if (!(error instanceof UnsoundJournalError) || isActive(update.status)) throw error;
        await this.#updates.setFoldError(updateId, error.message);
        return;
      }
    }
    throw new UnavailableError('Entries keep coming while the journal is folded; please repeat the call');
  }

  /** Base and entries as one document, without storing it; null when the base was superseded meanwhile. Throws UnsoundJournalError. */
  async replay(update: UpdateRow): Promise<ReplayedState | null> {
    const base = update.baseCheckpointId ? await this.#checkpoints.find(update.baseCheckpointId) : null;
    if (update.baseCheckpointId && !base) return null;
    const baseDocument = base ? await this.#documents.read(base) : null;
    const entries = await this.#journal.list(update.id);
    const sequence = entries.at(-1)?.sequenceId ?? 0;
    try {
      const version = await this.#updates.findClientVersion(update.id);
      const { document, resourceCount } = replayJournal(
        baseDocument,
        entries.map((entry) => ({ sequenceId: entry.sequenceId, text: Buffer.from(entry.entry) })),
        { manifest: { time: new Date().toISOString(), version } },
      );
      return { document, resourceCount, sequence };
    } catch (error) {
      if (error instanceof JournalReplayError) throw new UnsoundJournalError(error.message, { cause: error });
      throw error;
    }
  }

  async #foldOnce(update: UpdateRow): Promise<void> {
    const replayed = await this.replay(update);
    if (!replayed) return;
    const document = await this.#documents.save(bytesOf(replayed.document));
    await this.#checkpoints.commitFold(
      {
        updateId: update.id,
        stackId: update.stackId,
        foundCheckpointId: update.checkpointId,
        foldedSequence: replayed.sequence,
      },
      { document, resourceCount: replayed.resourceCount },
    );
  }
}
