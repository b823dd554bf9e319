import { DamagedBytesError } from '../documents/document-codec.ts';
import type { DocumentStore } from '../documents/document-store.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { CheckpointRepository, CheckpointRow } from './checkpoint-repository.ts';
import type { DocumentCheckRepository } from './document-check-repository.ts';

/**
 * Makes the state of an update anew from the version before and its journal, and refers to that instead wherever the damaged one
 * was; false when it cannot.
 */
export type RebuildState = (updateId: string) => Promise<boolean>;

/** Copies that are tried. */
const mostCopies = 5;

/** Finds the bytes of a damaged document elsewhere, and puts them in its place. */
export class DocumentRepair {
  readonly #checks: DocumentCheckRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #rebuild: RebuildState;
  readonly #logger: Logger;

  constructor(parts: {
    documentChecks: DocumentCheckRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    rebuild: RebuildState;
    logger: Logger;
  }) {
    this.#checks = parts.documentChecks;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#rebuild = parts.rebuild;
    this.#logger = parts.logger;
  }

  /** Tries once; a way that fails is logged and the next one taken. Returns whether the document was replaced. */
  async repair(damaged: CheckpointRow): Promise<boolean> {
    const ways: Record<string, () => Promise<boolean>> = {
      copy: () => this.#copy(damaged),
      journal: async () => damaged.updateId !== null && this.#rebuild(damaged.updateId),
    };
    for (const [way, run] of Object.entries(ways)) {
      try {
        if (!(await run())) continue;
        this.#logger.warn({ checkpointId: damaged.id, blobKey: damaged.blobKey, way }, 'damaged document replaced');
        return true;
      } catch (error) {
        this.#logger.warn({ checkpointId: damaged.id, way, err: error }, 'damaged document not replaced this way');
      }
    }
    return false;
  }

  async #copy(damaged: CheckpointRow): Promise<boolean> {
    for (const id of await this.#checks.listCopies(damaged, mostCopies)) {
      const copy = await this.#checkpoints.find(id);
      if (!copy) continue;
      try {
        const document = await this.#documents.save(() => this.#documents.open(copy));
        return await this.#checks.replace(damaged, document);
      } catch (error) {
        // That one has its own turn to be found damaged.
        if (!(error instanceof DamagedBytesError)) throw error;
      }
    }
    return false;
  }
}
