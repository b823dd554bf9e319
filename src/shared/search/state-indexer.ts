import { randomUUID } from 'node:crypto';
import type { Database } from '../platform/db/database.ts';
import { TimeSlices } from '../platform/slices/slices.ts';
import type { CheckpointRepository } from '../state/checkpoints/checkpoint-repository.ts';
import { DocumentDamagedError, type DocumentReader } from '../state/checkpoints/document-reader.ts';
import { DocumentMissingError } from '../state/checkpoints/document-store.ts';
import { createDueIndexRepository, type DueIndexRepository, indexClaimSeconds } from './due-index-repository.ts';
import { createFormerVersionsRepository } from './former-versions-repository.ts';
import { IndexStepBuilder, maxIndexed } from './index-step.ts';
import { scanResources } from './scan-resources.ts';
import {
  createStateIndexRepository,
  type IndexedState,
  type IndexRow,
  type IndexStep,
  type StateIndexRepository,
} from './state-index-repository.ts';

/** If another process writes the same index, it is read again. */
const attempts = 5;

/** `bytes` counts the documents that were read. */
export interface IndexProgress {
  readonly versions: number;
  readonly bytes: number;
}

/**
 * Reads documents as streams, and writes only rows that differ, in one transaction per version. The transaction verifies the part of the
 * index that was read, so of two processes one starts over.
 */
export class StateIndexer {
  readonly #db: Database;
  readonly #checkpoints: CheckpointRepository;
  readonly #documentReader: DocumentReader;
  readonly #rows: StateIndexRepository;
  readonly #due: DueIndexRepository;
  readonly #slices = new TimeSlices();

  constructor(parts: { db: Database; checkpoints: CheckpointRepository; documentReader: DocumentReader }) {
    this.#db = parts.db;
    this.#checkpoints = parts.checkpoints;
    this.#documentReader = parts.documentReader;
    this.#rows = createStateIndexRepository(parts.db);
    this.#due = createDueIndexRepository(parts.db);
  }

  /** Version by version. When the signal fires, stops after the current one. */
  async index(stackId: string, signal?: AbortSignal): Promise<IndexProgress> {
    let versions = 0;
    let bytes = 0;
    for (let attempt = 1; attempt <= attempts && !signal?.aborted; ) {
      const index = await this.#rows.open(stackId);
      if (index && !isReadable(index)) {
        await this.#outdate(stackId, index, { keepsChanges: true });
        attempt++;
        continue;
      }
      const next = index && (await this.#findNext(stackId, index));
      if (!next) break;
      try {
        const step = await this.#computeNext(stackId, index, next);
        bytes += step.bytes;
        const isWritten = await this.#db.inTransaction((tx) =>
          createStateIndexRepository(tx).write(stackId, index, step),
        );
        if (isWritten) versions++;
        attempt = isWritten ? 1 : attempt + 1;
      } catch (error) {
        // A newer state replaced this one during the lookup.
        if (!(error instanceof DocumentMissingError) || attempt === attempts) throw error;
        attempt++;
      }
    }
    return { versions, bytes };
  }

  /** The newest version before the index. Null if there is none, or if its states no longer exist. */
  async fillBack(stackId: string): Promise<IndexProgress | null> {
    const index = await this.#rows.find(stackId);
    const state = index && (await createFormerVersionsRepository(this.#db).findUnknown(stackId));
    if (!state) return null;
    const step = await this.#computeStep({ ...index, isEnded: false }, state, new Map());
    const isWritten = await this.#db.inTransaction((tx) =>
      createFormerVersionsRepository(tx).writeUnknown(stackId, step),
    );
    return { versions: isWritten ? 1 : 0, bytes: step.bytes };
  }

  /**
   * `allVersions` also recomputes the changes of each version, which reads all their documents. The stack stays due until the end, so that
   * workers finish the work after a failure.
   */
  async rebuild(stackId: string, { allVersions }: { readonly allVersions: boolean }): Promise<IndexProgress> {
    const claim = randomUUID();
    await this.#due.take(stackId, claim, indexClaimSeconds);
    try {
      const progress = await this.#rebuild(stackId, allVersions);
      await this.#due.release(stackId, claim);
      return progress;
    } catch (error) {
      // Without this call, the claim would expire by itself.
      await this.#due.postpone(stackId, claim).catch(() => undefined);
      throw error;
    }
  }

  async #rebuild(stackId: string, allVersions: boolean): Promise<IndexProgress> {
    await this.#outdate(stackId, await this.#rows.open(stackId), { keepsChanges: !allVersions });
    if (allVersions) {
      const [oldest] = await this.#rows.listStates(stackId, 0, 1);
      const index = await this.#rows.open(stackId);
      if (!oldest || !index) return this.index(stackId);
      const base = { checkpointId: oldest.baseCheckpointId, baseCheckpointId: oldest.baseCheckpointId };
      const before = oldest.isBaseDeleted ? oldest : { ...oldest, ...base, version: oldest.baseVersion, isEnded: true };
      const step = await this.#computeStep(index, before, await this.#readKnown(stackId, index));
      await this.#db.inTransaction((tx) =>
        createStateIndexRepository(tx).write(stackId, index, { ...step, changes: null }),
      );
    }
    return this.index(stackId);
  }

  async #outdate(
    stackId: string,
    shown: IndexRow | null,
    { keepsChanges }: { readonly keepsChanges: boolean },
  ): Promise<void> {
    const head = await this.#rows.findHead(stackId);
    // Otherwise, the versions in between would appear to have changed nothing.
    const keepsKnown = keepsChanges && (shown?.version ?? -1) >= (head?.baseVersion ?? 0);
    await this.#rows.reset(stackId, { keepsChanges, keepsKnown });
  }

  /** Changes nothing. Returns null if the index was written meanwhile, shows no state yet, or must be rewritten. */
  async isRight(stackId: string): Promise<boolean | null> {
    const index = await this.#rows.find(stackId);
    if (!index || index.version === null || !isReadable(index)) return null;
    const { checkpointId, resourceCount, version } = index;
    const state = {
      version,
      checkpointId,
      baseVersion: version,
      baseCheckpointId: null,
      isBaseDeleted: false,
      isEnded: false,
    };
    const known = await this.#rows.readDigests(stackId);
    const step = await this.#computeStep(index, state, known).catch((error: unknown) => {
      // A newer state replaced this one meanwhile.
      if (error instanceof DocumentMissingError) return null;
      throw error;
    });
    if (step === null || (await this.#rows.find(stackId))?.edition !== index.edition) return null;
    const [written] = step.written.batches();
    return written === undefined && step.removed.length === 0 && step.resourceCount === resourceCount;
  }

  /** The indexed state if it has changed, or the one after it. */
  async #findNext(stackId: string, index: IndexRow): Promise<IndexedState | null> {
    if (index.version === null) return this.#rows.findHead(stackId);
    for (const state of await this.#rows.listStates(stackId, index.version, 2)) {
      const isShown = state.version === index.version;
      if (isShown && state.isEnded === index.isEnded && state.checkpointId === index.checkpointId) continue;
      return state;
    }
    return null;
  }

  /** Keyed by resource key; none if all rows must be rewritten. */
  async #readKnown(stackId: string, { version }: IndexRow): Promise<ReadonlyMap<string, string>> {
    return version === null ? new Map() : this.#rows.readDigests(stackId);
  }

  /** Treats a damaged state as deleted: skips it, and the changes of the next version are unknown. */
  async #computeNext(stackId: string, index: IndexRow, next: IndexedState): Promise<IndexStep & { bytes: number }> {
    const known = await this.#readKnown(stackId, index);
    for (let state = next; ; ) {
      try {
        return await this.#computeStep(index, state, known);
      } catch (error) {
        if (!(error instanceof DocumentDamagedError)) throw error;
        // If the state was already read without its base, the state itself is damaged.
        const usable = state.isBaseDeleted ? (await this.#rows.listStates(stackId, state.version + 1, 1))[0] : state;
        if (!usable) throw error;
        state = { ...usable, isBaseDeleted: true };
      }
    }
  }

  async #computeStep(
    index: IndexRow,
    state: IndexedState,
    known: ReadonlyMap<string, string>,
  ): Promise<IndexStep & { bytes: number }> {
    const step = new IndexStepBuilder(index, known);
    let bytes = 0;
    const read = async (checkpointId: string | null, onResource: (text: Buffer) => Promise<void>): Promise<number> => {
      if (checkpointId === null) return 0;
      const checkpoint = await this.#checkpoints.find(checkpointId);
      if (!checkpoint) throw new DocumentMissingError('The state was replaced while it was being indexed');
      const scan = await scanResources(this.#documentReader.open(checkpoint), onResource, () => this.#slices.pause());
      bytes += scan.bytes;
      return scan.skipped;
    };
    if (state.isEnded && !state.isBaseDeleted) {
      const isShown = index.isEnded && index.checkpointId === state.baseCheckpointId && index.version !== state.version;
      if (!isShown) await read(state.baseCheckpointId, (text) => step.addBase(text));
      step.beginVersion(isShown);
    }
    const skipped = await read(state.checkpointId, (text) => step.add(text));
    if (step.needsBase()) await read(state.baseCheckpointId, (text) => step.compare(text));
    const found = step.finish();
    return { state, ...found, skipped: skipped + found.skipped, bytes };
  }
}

/** Rows that must be rewritten are not read at all. */
function isReadable({ resourceCount, version }: IndexRow): boolean {
  return version === null || resourceCount <= maxIndexed;
}
