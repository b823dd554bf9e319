import { FaultError, UnavailableError } from '../../platform/errors/errors.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../../platform/read-only/read-only-mode.ts';
import { formatStackRef, type StackRef } from '../../stacks/names.ts';
import type { CheckpointRepository, CheckpointRow } from './checkpoint-repository.ts';
import type { ChunkRepository, ChunkRow } from './chunks/chunk-repository.ts';
import type { DocumentCheckRepository } from './document-check-repository.ts';
import type { EncodedDocument } from './document-codec.ts';
import type { DocumentCopies } from './document-copies.ts';
import { findDamage, isDamage } from './document-damage.ts';
import type { DocumentRepair } from './document-repair.ts';
import { DocumentMissingError, type DocumentStore } from './document-store.ts';

/** `restored`: the document was damaged, and its bytes are correct again. */
export type CheckOutcome = 'intact' | 'restored' | 'repaired' | 'damaged' | 'gone';

const attempts = 3;

/** A retry does not help. */
export class DocumentDamagedError extends FaultError {
  override readonly name = 'DocumentDamagedError';
  override readonly code = 'document-damaged';

  constructor(owner: (StackRef & { stackVersion: number | null }) | null, options?: ErrorOptions) {
    const what = owner
      ? `the state of stack ${formatStackRef(owner)} at version ${owner.stackVersion ?? 0}`
      : 'a state of this stack';
    super(
      `The server's copy of ${what} is damaged and is not used. Ask an administrator to run "holdfast admin scrub" and to see ` +
        'docs/runbook.md#holdfastdocumentsdamaged; other versions can still be exported.',
      options,
    );
  }
}

/**
 * A document that is damaged in all stores is marked and reported. It is replaced if an equal document or the journal allows this;
 * otherwise reading fails, and the document stays referenced, so that its remaining bytes are kept. Reading also fails while a store that
 * may have the intact bytes cannot be read.
 */
export class DocumentReader {
  readonly #checks: DocumentCheckRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #copies: DocumentCopies;
  readonly #repair: DocumentRepair;
  readonly #readOnly: ReadOnlyMode;
  readonly #logger: Logger;

  constructor(parts: {
    documentChecks: DocumentCheckRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    repair: DocumentRepair;
    readOnly: ReadOnlyMode;
    logger: Logger;
  }) {
    this.#checks = parts.documentChecks;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#copies = parts.copies;
    this.#repair = parts.repair;
    this.#readOnly = parts.readOnly;
    this.#logger = parts.logger;
  }

  /**
   * Yields bytes checked like those of `DocumentStore.open`. Throws DocumentDamagedError, BlobStoreUnavailableError, and
   * DocumentMissingError if the checkpoint is gone.
   */
  async *open(checkpoint: CheckpointRow, chunks?: ChunkRepository): AsyncGenerator<Buffer> {
    const usable = await this.#usable(checkpoint);
    let hasStarted = false;
    try {
      for await (const chunk of this.#documents.open(usable, chunks, this.#repairChunk)) {
        hasStarted = true;
        yield chunk;
      }
      return;
    } catch (error) {
      if (!isDamage(error)) throw error;
      const recovered = await this.#recovered(usable.id, error);
      // The reader already has part of the damaged document.
      if (hasStarted) throw readWrongly(error);
      yield* this.#again(recovered);
    }
  }

  readonly #repairChunk = async (chunk: ChunkRow, error: unknown): Promise<boolean> => {
    return isDamage(error) && (await this.#copies.prove((documents) => documents.readChunk(chunk))) !== 'damaged';
  };

  /** A second failure proves no damage, since the check has just found intact bytes. */
  async *#again(checkpoint: CheckpointRow): AsyncGenerator<Buffer> {
    try {
      yield* this.#documents.open(checkpoint);
    } catch (error) {
      throw isDamage(error) ? readWrongly(error) : error;
    }
  }

  /** The caller checks the document when decoding it, and calls `recover` if it is damaged. Throws like `open`. */
  async readEncoded(checkpoint: CheckpointRow): Promise<EncodedDocument> {
    const usable = await this.#usable(checkpoint);
    try {
      return await this.#documents.readEncoded(usable);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return this.#documents.readEncoded(await this.#recovered(usable.id, error));
    }
  }

  /**
   * Checks and repairs a document that a reader found damaged. Returns the row to read from; null if the checkpoint is gone, e.g. replaced
   * by another. Throws DocumentDamagedError.
   */
  async recover(checkpointId: string, cause?: unknown): Promise<CheckpointRow | null> {
    if ((await this.check(checkpointId)) === 'damaged') {
      throw new DocumentDamagedError(await this.#checks.findOwner(checkpointId), { cause });
    }
    return this.#checkpoints.find(checkpointId);
  }

  /** Changes nothing, and runs in bounded memory. Throws the blob store's errors. */
  async inspect(checkpointId: string): Promise<'intact' | 'damaged' | 'gone'> {
    const checkpoint = await this.#checkpoints.find(checkpointId);
    if (!checkpoint) return 'gone';
    if (!(await findDamage(this.#documents, checkpoint))) return 'intact';
    // The document may have been replaced while it was read.
    const again = await this.#checkpoints.find(checkpointId);
    if (!again) return 'gone';
    if (!(await findDamage(this.#documents, again))) return 'intact';
    const proof = await this.#copies.prove((documents) => drain(documents.open(again)), { repairs: false });
    return proof === 'damaged' ? 'damaged' : 'intact';
  }

  /**
   * Marks, reports and repairs a damaged document. Runs in bounded memory. A site that another site has replaced only reports the damage.
   * Throws the blob store's errors and the reason of `signal`.
   */
  async check(checkpointId: string, signal?: AbortSignal): Promise<CheckOutcome> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const checkpoint = await this.#checkpoints.find(checkpointId);
      if (!checkpoint) return 'gone';
      let damage = await findDamage(this.#documents, checkpoint, signal);
      // One wrong read does not prove that the stored bytes are wrong.
      if (damage) damage = await findDamage(this.#documents, checkpoint, signal);
      const proof = damage && (await this.#copies.prove((documents) => drain(documents.open(checkpoint))));
      if (!damage || proof !== 'damaged') {
        if (!this.#readOnly.isFenced) await this.#checks.markIntact(checkpoint);
        return proof === 'repaired' ? 'repaired' : checkpoint.damaged ? 'restored' : 'intact';
      }
      if (this.#readOnly.isFenced) {
        const isNew = this.#copies.seen.note(checkpoint.id) && !checkpoint.damaged;
        await this.#report(checkpoint, isNew, damage);
        return 'damaged';
      }
      const quarantined = await this.#checks.quarantine(checkpoint);
      // Another process superseded or repaired the document while it was read.
      if (!quarantined) continue;
      await this.#report(checkpoint, quarantined.isNew, damage);
      if (await this.#repair.repair(checkpoint)) return 'repaired';
      const current = await this.#checkpoints.find(checkpointId);
      if (current?.damaged) return 'damaged';
    }
    throw new UnavailableError('The document keeps changing while it is being checked');
  }

  /** A damaged row is checked again, at most once a minute. */
  async #usable(checkpoint: CheckpointRow): Promise<CheckpointRow> {
    if (!this.#copies.seen.isTrusted(checkpoint.id)) {
      if (!checkpoint.damaged) return checkpoint;
      if (!checkpoint.checkedJustNow) return this.#recovered(checkpoint.id);
    }
    throw new DocumentDamagedError(await this.#checks.findOwner(checkpoint.id));
  }

  async #recovered(checkpointId: string, cause?: unknown): Promise<CheckpointRow> {
    const checkpoint = await this.recover(checkpointId, cause);
    if (checkpoint) return checkpoint;
    throw new DocumentMissingError('The state was replaced while it was being read; please retry');
  }

  async #report(checkpoint: CheckpointRow, isNew: boolean, damage: Error): Promise<void> {
    const owner = await this.#checks.findOwner(checkpoint.id);
    const facts = {
      checkpointId: checkpoint.id,
      blobKey: checkpoint.blobKey,
      stack: owner && formatStackRef(owner),
      stackVersion: owner?.stackVersion,
      err: damage,
    };
    if (isNew) this.#logger.error(facts, 'stored document is damaged');
    else this.#logger.warn(facts, 'stored document is still damaged');
  }
}

function readWrongly(cause: Error): UnavailableError {
  return new UnavailableError('The state was not read correctly; please retry', { cause });
}

async function drain(bytes: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of bytes);
}
