import type { Logger } from '../../platform/logger/logger.ts';
import type { CheckpointRepository, CheckpointRow } from './checkpoint-repository.ts';
import type { ChunkRepository, ChunkRow } from './chunks/chunk-repository.ts';
import { repairChunks } from './chunks/repair-chunks.ts';
import type { DocumentCheckRepository } from './document-check-repository.ts';
import { DamagedBytesError } from './document-codec.ts';
import { chunksCodec, type DocumentStore } from './document-store.ts';

/**
 * Rebuilds the state from the previous version and the update's journal, and replaces the damaged document everywhere. Returns false if
 * this is impossible, or if the update has another document by now.
 */
export type RebuildState = (updateId: string, damagedId: string) => Promise<boolean>;

const maxCopies = 5;

export class DocumentRepair {
  readonly #checks: DocumentCheckRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #chunks: ChunkRepository;
  readonly #rebuild: RebuildState;
  readonly #logger: Logger;

  constructor(parts: {
    documentChecks: DocumentCheckRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    chunks: ChunkRepository;
    rebuild: RebuildState;
    logger: Logger;
  }) {
    this.#checks = parts.documentChecks;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#chunks = parts.chunks;
    this.#rebuild = parts.rebuild;
    this.#logger = parts.logger;
  }

  /** Tries each source once. Failures are logged. */
  async repair(damaged: CheckpointRow): Promise<boolean> {
    const chunks = damaged.codec === chunksCodec ? await this.#chunks.list(damaged.id) : [];
    const ways: Record<string, () => Promise<boolean>> = {
      copy: () => this.#copy(damaged),
      journal: async () => damaged.updateId !== null && this.#rebuild(damaged.updateId, damaged.id),
    };
    for (const [way, run] of Object.entries(ways)) {
      try {
        if (!(await run())) continue;
        this.#logger.warn({ checkpointId: damaged.id, blobKey: damaged.blobKey, way }, 'damaged document replaced');
        await this.#repair(damaged, chunks);
        return true;
      } catch (error) {
        this.#logger.warn({ checkpointId: damaged.id, way, err: error }, 'damaged document not repaired this way');
      }
    }
    return false;
  }

  /** Other versions may refer to the chunks of the damaged document, whose text is now stored whole. */
  async #repair(damaged: CheckpointRow, chunks: readonly ChunkRow[]): Promise<void> {
    if (chunks.length === 0) return;
    try {
      const rebuilt = damaged.updateId === null ? null : await this.#checks.findCurrent(damaged.updateId);
      const copies = await this.#checks.listCopies(damaged, maxCopies);
      for (const id of [damaged.id, ...copies, ...(rebuilt === null ? [] : [rebuilt])]) {
        const whole = await this.#checkpoints.find(id);
        if (!whole || whole.codec === chunksCodec || whole.sizeBytes !== damaged.sizeBytes) continue;
        const repaired = await repairChunks(
          { documents: this.#documents, chunks: this.#chunks },
          chunks,
          this.#documents.open(whole),
        );
        this.#logger.warn({ checkpointId: damaged.id, chunks: repaired }, 'chunks of other versions replaced');
        return;
      }
    } catch (error) {
      this.#logger.warn({ checkpointId: damaged.id, err: error }, 'chunks of other versions not replaced');
    }
  }

  async #copy(damaged: CheckpointRow): Promise<boolean> {
    for (const id of await this.#checks.listCopies(damaged, maxCopies)) {
      const copy = await this.#checkpoints.find(id);
      if (!copy) continue;
      try {
        const document = await this.#documents.save(() => this.#documents.open(copy));
        return await this.#checks.replace(damaged, document);
      } catch (error) {
        // The copy is damaged too; its own check will report it.
        if (!(error instanceof DamagedBytesError)) throw error;
      }
    }
    return false;
  }
}
