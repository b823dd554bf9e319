import type { Logger } from '../../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../../platform/read-only/read-only-mode.ts';
import type { EncodedDocument } from '../checkpoints/document-codec.ts';
import type { DocumentCopies, Proof } from '../checkpoints/document-copies.ts';
import { findDamage } from '../checkpoints/document-damage.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import type { JournalSnapshotRepository, JournalSnapshotRow } from './journal-snapshot-repository.ts';

/** A replay can resume from a snapshot. The journal has all the data, so a damaged snapshot is dropped. */
export class JournalSnapshots {
  readonly #rows: JournalSnapshotRepository;
  readonly #documents: DocumentStore;
  readonly #copies: DocumentCopies;
  readonly #readOnly: ReadOnlyMode;
  readonly #logger: Logger;

  constructor(parts: {
    rows: JournalSnapshotRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    readOnly: ReadOnlyMode;
    logger: Logger;
  }) {
    this.#rows = parts.rows;
    this.#documents = parts.documents;
    this.#copies = parts.copies;
    this.#readOnly = parts.readOnly;
    this.#logger = parts.logger;
  }

  find(updateId: string): Promise<JournalSnapshotRow | null> {
    return this.#rows.find(updateId);
  }

  /** Only decoding verifies the snapshot. */
  readEncoded(snapshot: JournalSnapshotRow): Promise<EncodedDocument> {
    return this.#documents.readEncoded(snapshot);
  }

  /** The snapshot covers the first `entries` entries. */
  async save(updateId: string, entries: number, document: EncodedDocument): Promise<void> {
    await this.#rows.upsert(updateId, entries, await this.#documents.saveEncoded(document));
  }

  /** Changes nothing. Throws the blob store's errors. */
  async inspect(updateId: string): Promise<'intact' | 'damaged' | 'gone'> {
    for (let attempt = 1; ; attempt++) {
      const snapshot = await this.#rows.find(updateId);
      if (!snapshot) return 'gone';
      if (!(await findDamage(this.#documents, snapshot))) return 'intact';
      // The snapshot may have been replaced while it was read.
      if (attempt === 2) return (await this.#prove(snapshot, false)) === 'damaged' ? 'damaged' : 'intact';
    }
  }

  /** Drops a damaged snapshot. Throws the blob store's errors and the abort reason of `signal`. */
  async check(updateId: string, signal?: AbortSignal): Promise<'intact' | 'repaired' | 'gone'> {
    const snapshot = await this.#rows.find(updateId);
    if (!snapshot) return 'gone';
    const damage = await findDamage(this.#documents, snapshot, signal);
    if (damage && (await this.drop(updateId, snapshot, damage))) return 'repaired';
    if (!this.#readOnly.isFenced) await this.#rows.markIntact(updateId, snapshot.sha256);
    return 'intact';
  }

  /**
   * The snapshot was read as damaged. Keeps it if it has been replaced, if a store has the right bytes, or if another site has replaced
   * this one. Returns whether the snapshot is damaged. Throws the blob store's errors.
   */
  async drop(updateId: string, snapshot: JournalSnapshotRow, cause: unknown): Promise<boolean> {
    const { seen } = this.#copies;
    if (seen.isTrusted(updateId)) return true;
    if ((await this.#prove(snapshot)) !== 'damaged') return false;
    const facts = { updateId, blobKey: snapshot.blobKey, err: cause };
    if (this.#readOnly.isFenced) {
      if (seen.note(updateId)) this.#logger.error(facts, 'journal snapshot is damaged');
    } else {
      this.#logger.error(facts, 'journal snapshot is damaged: dropped');
      await this.#rows.delete(updateId, snapshot.sha256);
    }
    return true;
  }

  #prove(snapshot: JournalSnapshotRow, repairs = true): Promise<Proof> {
    const read = async (documents: DocumentStore): Promise<void> => {
      for await (const _ of documents.open(snapshot));
    };
    return this.#copies.prove(read, { repairs });
  }

  claimChecks(periodSeconds: number, claimSeconds: number, limit: number) {
    return this.#rows.claimChecks(periodSeconds, claimSeconds, limit);
  }

  listAfter(after: string, limit: number): Promise<string[]> {
    return this.#rows.listAfter(after, limit);
  }

  listOfUpdates(updateIds: readonly string[]): Promise<string[]> {
    return this.#rows.listOfUpdates(updateIds);
  }
}
