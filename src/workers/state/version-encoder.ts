import type { Logger } from '../../shared/platform/logger/logger.ts';
import type { CheckpointRepository, CheckpointRow } from '../../shared/state/checkpoints/checkpoint-repository.ts';
import {
  checkChunk,
  decodeChunk,
  encodeChunk,
  hashInSlices,
} from '../../shared/state/checkpoints/chunks/chunk-codec.ts';
import {
  type ChunkSizes,
  chunkSizes,
  cutAtResources,
  type TextChunk,
} from '../../shared/state/checkpoints/chunks/chunk-cutter.ts';
import type { ChunkRepository, ChunkRow } from '../../shared/state/checkpoints/chunks/chunk-repository.ts';
import { isDamage } from '../../shared/state/checkpoints/document-damage.ts';
import type { DocumentReader } from '../../shared/state/checkpoints/document-reader.ts';
import { chunksCodec, type DocumentStore } from '../../shared/state/checkpoints/document-store.ts';
import type { DueState, NewChunk, VersionRepository, VersionRow } from '../../shared/state/version-repository.ts';

export interface EncodingShape {
  /**
   * One version in this many is compressed alone. Versions up to the next one share bytes only with each other, which limits damage to
   * them.
   */
  readonly keyEvery: number;
  /**
   * A version refers to the previous one. One version in this many instead refers to the last version of this kind; of these, one in this
   * many refers to the last of its own kind, and so on. So each level takes fewer steps than this.
   */
  readonly groupSize: number;
  readonly sizes: ChunkSizes;
  /** States stored in fewer bytes stay whole, because the rows of their chunks would take about as much. */
  readonly minStoredBytes: number;
}

export const encodingShape: EncodingShape = {
  keyEvery: 256,
  groupSize: 4,
  sizes: chunkSizes,
  minStoredBytes: 4096,
};

/** A chunk that its base does not make this much smaller is compressed alone, which ends its chain. */
const worthwhileShare = 0.6;
const busySeconds = 600;
const damagedSeconds = 3600;
/** A deleted stack that may be restored waits this long. */
const deletedSeconds = 24 * 3600;

export interface EncodingResult {
  /** `shared` versions share the bytes of an earlier one. */
  readonly encoded: number;
  readonly shared: number;
  readonly textBytes: number;
  readonly savedBytes: number;
}

type Outcome = 'encoded' | 'shared' | 'settled' | 'busy' | 'damaged';

/**
 * Encodes versions that are no longer the newest as chunks that refer to earlier versions. The row of a version changes in one statement,
 * after the chunks were read back; its bytes stay for readers that began before. Safe in any number of processes: if two encode the same
 * version, the work of one is discarded.
 */
export class VersionEncoder {
  readonly #versions: VersionRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #chunks: ChunkRepository;
  readonly #documents: DocumentStore;
  readonly #documentReader: DocumentReader;
  readonly #logger: Logger;
  readonly #shape: EncodingShape;

  constructor(
    parts: {
      versions: VersionRepository;
      checkpoints: CheckpointRepository;
      chunks: ChunkRepository;
      documents: DocumentStore;
      documentReader: DocumentReader;
      logger: Logger;
    },
    shape: EncodingShape = encodingShape,
  ) {
    this.#versions = parts.versions;
    this.#checkpoints = parts.checkpoints;
    this.#chunks = parts.chunks;
    this.#documents = parts.documents;
    this.#documentReader = parts.documentReader;
    this.#logger = parts.logger;
    this.#shape = shape;
  }

  /**
   * Encodes the state from which the update of a due state began, and the due state, unless it is the newest. Postpones the state while
   * either is in use or damaged, or the stack is deleted and may be restored. Throws the blob store's errors and the reason of `signal`.
   */
  async encodeDue(due: DueState, signal?: AbortSignal): Promise<EncodingResult> {
    const state = await this.#versions.find(due.id);
    let result: EncodingResult = { encoded: 0, shared: 0, textBytes: 0, savedBytes: 0 };
    if (!state) return result;
    let wait = state.isRestorable ? deletedSeconds : 0;
    for (const id of state.isDeleted ? [] : [state.previousId, state.id]) {
      const version = id === null ? null : await this.#versions.find(id);
      if (!version) continue;
      const outcome = await this.#encode(version, signal);
      if (outcome === 'busy') wait = Math.max(wait, busySeconds);
      if (outcome === 'damaged') wait = damagedSeconds;
      if (outcome !== 'encoded' && outcome !== 'shared') continue;
      const storedBytes = (await this.#checkpoints.find(version.id))?.storedBytes ?? version.storedBytes;
      result = {
        encoded: result.encoded + 1,
        shared: result.shared + (outcome === 'shared' ? 1 : 0),
        textBytes: result.textBytes + version.sizeBytes,
        savedBytes: result.savedBytes + Math.max(0, version.storedBytes - storedBytes),
      };
    }
    await (wait > 0 ? this.#versions.postpone(due, wait) : this.#versions.settle(due));
    return result;
  }

  async #encode(version: VersionRow, signal: AbortSignal | undefined): Promise<Outcome> {
    if (version.codec === chunksCodec || version.storedBytes < this.#shape.minStoredBytes || version.isHead) {
      return 'settled';
    }
    if (version.damaged) return 'damaged';
    if (version.isInUse) return 'busy';
    const checkpoint = await this.#checkpoints.find(version.id);
    if (!checkpoint || checkpoint.codec === chunksCodec) return 'settled';
    try {
      const first = this.#blockOf(await this.#versions.nextNumber(version.stackId));
      const same = await this.#sameText(version, first);
      const chunks = same ?? (await this.#cutAndStore(version, checkpoint, signal));
      const number = await this.#versions.nextNumber(version.stackId);
      // Another process has ended the block.
      if (this.#blockOf(number) !== first) return 'busy';
      const isDone = await this.#versions.encode({ ...checkpoint, stackId: version.stackId }, number, chunks);
      if (!isDone) return 'busy';
      return same ? 'shared' : 'encoded';
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Marks, reports and repairs the version. A repaired version is encoded next time.
      const outcome = await this.#documentReader.check(version.id);
      return outcome === 'gone' ? 'settled' : 'damaged';
    }
  }

  /** The first version with which this one may share bytes. */
  #blockOf(number: number): number {
    return number - (number % this.#shape.keyEvery);
  }

  /** Returns the chunks of an intact version with the same text, from number `first` on; null if there is none. */
  async #sameText(version: VersionRow, first: number): Promise<NewChunk[] | null> {
    const same = await this.#versions.findSame(version, first);
    const found = same && (await this.#checkpoints.find(same.id));
    if (!found || (await this.#documentReader.check(found.id)) !== 'intact') return null;
    const chunks = await this.#chunks.list(found.id);
    return chunks.length === 0 ? null : chunks.map(({ id }) => ({ id, added: null }));
  }

  /**
   * Reading the version to its end compares its text with its hash. Each chunk is read back and compared with the hash of its part of the
   * text. Throws DamagedBytesError.
   */
  async #cutAndStore(
    version: VersionRow,
    checkpoint: CheckpointRow,
    signal: AbortSignal | undefined,
  ): Promise<NewChunk[]> {
    const base = await this.#findBase(version.stackId);
    const counterparts = new Counterparts(base?.chunks ?? []);
    const chunks: (ChunkRow | Unsaved)[] = [];
    const texts = this.#documents.open(checkpoint);
    for await (const chunk of cutAtResources(texts, checkpoint.sizeBytes, counterparts.keys, this.#shape.sizes)) {
      signal?.throwIfAborted();
      chunks.push(await this.#storeChunk(version, chunk, counterparts.of(chunk.cutKey), base));
    }
    const ids = await this.#chunks.reserveIds(chunks.filter((chunk) => !('id' in chunk)).length);
    return chunks.map((chunk) =>
      'id' in chunk ? { id: chunk.id, added: null } : { id: ids.shift() as number, added: chunk },
    );
  }

  /** The version to which the stack's next version refers. */
  async #findBase(stackId: string): Promise<Base | null> {
    const next = await this.#versions.nextNumber(stackId);
    const number = baseNumber(next, this.#shape);
    const first = this.#blockOf(next);
    const base = number === null ? null : await this.#versions.findEncoded(stackId, number, first);
    if (!base) return null;
    const firstChunkId = await this.#chunks.findFirst(stackId, first);
    return firstChunkId === null ? null : { id: base.id, chunks: await this.#chunks.list(base.id), firstChunkId };
  }

  /** Returns a chunk from which the text was read back; an existing one only if the version has a base. */
  async #storeChunk(
    version: VersionRow,
    { text, cutKey }: TextChunk,
    counterpart: ChunkRow | null,
    from: Base | null,
  ): Promise<ChunkRow | Unsaved> {
    const digest = { sha256: await hashInSlices(text), sizeBytes: text.length };
    const same = from && (await this.#chunks.findText(version.stackId, from.firstChunkId, digest));
    if (same && (await this.#readChunk(same, null))) return same;

    let base = counterpart && counterpart.depth < this.#maxDepth ? counterpart : null;
    let dictionary = base && (await this.#readChunk(base, from?.id ?? null));
    let bytes = await encodeChunk(text, dictionary);
    const expectedBytes = (version.storedBytes / version.sizeBytes) * text.length;
    if (!dictionary || bytes.length > worthwhileShare * expectedBytes) {
      if (dictionary) bytes = await encodeChunk(text, null);
      base = null;
      dictionary = null;
    }
    const location = await this.#documents.saveChunk(digest.sha256, bytes, { wasEncrypted: version.codec !== 'zstd' });
    const stored = await this.#documents.readStoredChunk({ ...digest, ...location });
    await checkChunk(await decodeChunk(stored, dictionary, digest.sizeBytes), digest);
    const depth = base ? base.depth + 1 : 0;
    return { ...digest, baseId: base?.id ?? null, depth, cutKey, location };
  }

  get #maxDepth(): number {
    const { keyEvery, groupSize } = this.#shape;
    return (groupSize - 1) * Math.ceil(Math.log(keyEvery) / Math.log(groupSize));
  }

  /** Returns null if the chunk is damaged. The version to which it belongs is then checked. */
  async #readChunk(chunk: ChunkRow, checkpointId: string | null): Promise<Buffer | null> {
    try {
      return await this.#documents.readChunk(chunk);
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#logger.warn(
        { chunkId: chunk.id, checkpointId, err: error },
        'a chunk that a version could refer to is damaged',
      );
      if (checkpointId !== null) await this.#documentReader.check(checkpointId);
      return null;
    }
  }
}

type Unsaved = NonNullable<NewChunk['added']>;

interface Base {
  readonly id: string;
  readonly chunks: readonly ChunkRow[];
  /** The other version may share chunks from here. */
  readonly firstChunkId: number;
}

/** Returns null if the version is compressed alone. */
export function baseNumber(
  number: number,
  { groupSize, keyEvery }: Pick<EncodingShape, 'groupSize' | 'keyEvery'>,
): number | null {
  const position = number % keyEvery;
  if (position === 0) return null;
  let step = 1;
  while (position % (step * groupSize) === 0) step *= groupSize;
  return number - step;
}

/** Finds the chunk of the base that has the most in common with a chunk. */
class Counterparts {
  readonly keys: ReadonlySet<string>;
  readonly #chunks: readonly ChunkRow[];
  #at = -1;

  constructor(chunks: readonly ChunkRow[]) {
    this.#chunks = chunks;
    this.keys = new Set(chunks.flatMap(({ cutKey }) => cutKey ?? []));
  }

  /** Call this for each chunk, in order. */
  of(cutKey: string | null): ChunkRow | null {
    const found = cutKey === null ? -1 : this.#chunks.findIndex((chunk) => chunk.cutKey === cutKey);
    this.#at = found >= 0 ? found : Math.min(this.#at + 1, this.#chunks.length - 1);
    return this.#chunks[this.#at] ?? null;
  }
}
