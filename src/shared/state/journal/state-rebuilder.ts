import type { Logger } from '../../platform/logger/logger.ts';
import type { UpdateRow } from '../../updates/update-repository.ts';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentCopies } from '../checkpoints/document-copies.ts';
import { findDamage } from '../checkpoints/document-damage.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import type { ClaimedUpdate, CompactionRepository } from './compaction-repository.ts';
import type { JournalReplayer } from './replay/journal-replayer.ts';

/** The caller must hold the claim on the journal. */
export class StateRebuilder {
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #copies: DocumentCopies;
  readonly #compactions: CompactionRepository;
  readonly #replayer: JournalReplayer;
  readonly #graceSeconds: number;
  readonly #logger: Logger;

  constructor(parts: {
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    compactions: CompactionRepository;
    replayer: JournalReplayer;
    graceSeconds: number;
    logger: Logger;
  }) {
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#copies = parts.copies;
    this.#compactions = parts.compactions;
    this.#replayer = parts.replayer;
    this.#graceSeconds = parts.graceSeconds;
    this.#logger = parts.logger;
  }

  /**
   * If the checkpoint of the ended update is intact, marks the journal as compacted, which starts the grace period. If not, rebuilds it;
   * the next attempt reads the new one back. Returns whether it was intact and is still the state. Throws an Error if the checkpoint is
   * still damaged on the third attempt.
   */
  async readBack(update: ClaimedUpdate, attempt: number): Promise<boolean> {
    const hasOwnCheckpoint = update.compactedEntries > 0;
    if (hasOwnCheckpoint && !(await this.#isIntact(update))) {
      if (attempt > 2) {
        throw new Error(
          `Checkpoint ${update.checkpointId} does not read back as written; the journal of update ${update.id} is kept`,
        );
      }
      this.#logger.error(
        { updateId: update.id },
        'checkpoint does not read back as written; rebuilding it from the journal',
      );
      await this.rebuild(update);
      return false;
    }
    const isMarked = await this.#compactions.markCompacted(update.id, update.checkpointId);
    if (update.entryCount === 0 || this.#graceSeconds === 0) await this.#compactions.delete(update.id);
    return isMarked;
  }

  /** Returns false if a rebuild is impossible. */
  async rebuild(update: UpdateRow): Promise<boolean> {
    if (update.checkpointId === null || update.compactedEntries === 0) return false;
    const { id: updateId } = update;
    const damaged = { updateId, stackId: update.stackId, foundCheckpointId: update.checkpointId };
    const rebuilt = await this.#replayer.catchUp(
      update,
      async ({ replay, fault }) => {
        if (fault) throw fault;
        const { document, resourceCount } = await replay.encode(await this.#replayer.manifest(updateId));
        const stored = await this.#documents.saveEncoded(document);
        return this.#checkpoints.replace(damaged, { document: stored, resourceCount });
      },
      { entries: update.compactedEntries, fromBase: true },
    );
    if (rebuilt) this.#logger.warn({ updateId }, 'state rebuilt from its journal');
    return rebuilt !== null;
  }

  async #isIntact({ document: checkpoint }: ClaimedUpdate): Promise<boolean> {
    if (!checkpoint || !(await findDamage(this.#documents, checkpoint))) return true;
    const proof = await this.#copies.prove(async (documents) => {
      for await (const _ of documents.open(checkpoint));
    });
    return proof !== 'damaged';
  }
}
