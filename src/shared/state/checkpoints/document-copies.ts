import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { BlobNotFoundError, type BlobRange, type BlobStore } from '../../platform/blobs/blob-store.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import type { BlobRepository } from './blob-repository.ts';
import type { ChunkRepository } from './chunks/chunk-repository.ts';
import { isDamage } from './document-damage.ts';
import type { DocumentStore } from './document-store.ts';
import { copyKeptBlob } from './settle-copy.ts';

/** Throws if the document does not have the hash in its row. */
export type ReadDocument = (documents: DocumentStore) => Promise<unknown>;

export interface CopySource {
  readonly store: BlobStore;
  /** Repairs go only to stores that are written to. */
  readonly isWritten: boolean;
}

/** `repaired`: a store had wrong bytes, and now has the right ones. */
export type Proof = 'right' | 'repaired' | 'damaged';

/** Blobs that are read from another store, and the time until their replacement is tried again. */
const maxRight = 10_000;
const rightMs = 600_000;

/** Limits of the remembered damage. */
const maxSeen = 10_000;
const seenMs = 3_600_000;
/** Equals the time for which a marked document is not checked again. */
const trustedMs = 60_000;

interface Parts {
  readonly blobs: BlobReader;
  /** The current stores. The first one has all blobs. */
  readonly sources: () => Promise<readonly CopySource[]>;
  readonly documentsOver: (blobs: BlobReader) => DocumentStore;
  readonly chunks: ChunkRepository;
  readonly blobRows: BlobRepository;
  /** Another site has taken over: this site changes no store and no row. */
  readonly isFenced: () => boolean;
  /** For a blob that is wrong in a store and could not be replaced. */
  readonly repairLater: (key: string) => Promise<unknown>;
  readonly logger: Logger;
}

type BlobReader = Pick<BlobStore, 'open' | 'put'>;

/**
 * A document is damaged only if every store was read, and neither a single store nor a mixture of them has bytes with its hash. Repairs the
 * stores that have other bytes. Where a repair fails, `open` reads the right bytes from another store.
 */
export class DocumentCopies {
  /** Readers check this before they call `prove`. */
  readonly seen: SeenDamage;
  readonly #parts: Parts;
  readonly #right = new LRUCache<string, BlobStore>({ max: maxRight, ttl: rightMs });

  constructor(parts: Parts) {
    this.#parts = parts;
    this.seen = new SeenDamage(parts.isFenced);
  }

  /** Avoids a store in which the blob was just found wrong. */
  async open(...[key, options]: Parameters<BlobStore['open']>): Promise<AsyncIterable<Buffer>> {
    const right = this.#right.get(key);
    try {
      if (right) return await right.open(key, options);
    } catch (error) {
      if (options?.signal?.aborted) throw error;
    }
    return this.#parts.blobs.open(key, options);
  }

  /**
   * Call after a damaged read. Unless all copies are damaged, another `open` then returns intact bytes, even if a store could not be
   * repaired. Throws BlobStoreUnavailableError if intact bytes may be in a store that cannot be read.
   */
  async prove(read: ReadDocument, { repairs = true }: { readonly repairs?: boolean } = {}): Promise<Proof> {
    const sources = await this.#parts.sources();
    const right = await this.#findRight(read, sources);
    if (right === null) return 'damaged';
    if (!repairs) return 'right';
    const { isRepaired, wrong } = await this.#repair(right, sources);
    for (const key of wrong.keys()) await this.#repairLater(key);
    return isRepaired ? 'repaired' : 'right';
  }

  /**
   * Returns false if neither a single store nor a mixture of them has the right bytes. Throws the error of a store that cannot be repaired.
   */
  async repairAll(read: ReadDocument): Promise<boolean> {
    const sources = await this.#parts.sources();
    const right = await this.#findRight(read, sources);
    if (right === null) return false;
    const { wrong } = await this.#repair(right, sources);
    for (const error of wrong.values()) throw error;
    return true;
  }

  /** Ignores stores that lack the blob. */
  async isSame(key: string): Promise<boolean> {
    const hashes = new Set<string>();
    for (const { store } of await this.#parts.sources()) {
      const hash = await hashOf(store, key);
      if (hash !== null) hashes.add(hash);
    }
    return hashes.size <= 1;
  }

  /** A store with intact bytes for each blob of the document; null if there is none. */
  async #findRight(read: ReadDocument, sources: readonly CopySource[]): Promise<ReadonlyMap<string, BlobStore> | null> {
    let fault: unknown = null;
    const chosen = new Map<string, BlobStore>();
    const attempt = async (
      first: CopySource,
    ): Promise<{ isRight: boolean; opened: ReadonlyMap<string, BlobStore> }> => {
      const reader = new ChoosingReader([first, ...sources.filter((each) => each !== first)], chosen);
      try {
        await read(this.#parts.documentsOver(reader));
        return { isRight: true, opened: reader.opened };
      } catch (error) {
        if (!isDamage(error)) fault ??= error;
        return { isRight: false, opened: reader.opened };
      }
    };
    for (const source of sources) {
      const { isRight, opened } = await attempt(source);
      if (isRight) return opened;
    }
    // Intact bytes may be in a store that could not be read.
    if (fault !== null) throw fault;
    const [first] = sources;
    // Different chunks of a document may be damaged in different stores.
    while (first && sources.length > 1) {
      const { isRight, opened } = await attempt(first);
      if (isRight) return opened;
      if (fault !== null) throw fault;
      const before = chosen.size;
      for (const key of opened.keys()) {
        if (chosen.has(key)) continue;
        const store = await this.#rightStore(key, await this.#readerOfChunk(key), sources, chosen);
        if (store) chosen.set(key, store);
      }
      if (chosen.size === before) break;
    }
    return null;
  }

  async #readerOfChunk(key: string): Promise<ReadDocument | null> {
    const { chunks } = this.#parts;
    const chunk = await chunks.findStored(key);
    return chunk && ((documents) => documents.readChunk(chunk));
  }

  async #rightStore(
    key: string,
    read: ReadDocument | null,
    sources: readonly CopySource[],
    chosen: ReadonlyMap<string, BlobStore>,
  ): Promise<BlobStore | null> {
    if (read === null) return null;
    for (const { store } of sources) {
      try {
        await read(this.#parts.documentsOver(new ChoosingReader(sources, new Map([...chosen, [key, store]]))));
        return store;
      } catch (error) {
        if (!isDamage(error)) throw error;
      }
    }
    return null;
  }

  /** `wrong`: the blobs that are still wrong in a store, each with the error. */
  async #repair(
    right: ReadonlyMap<string, BlobStore>,
    sources: readonly CopySource[],
  ): Promise<{ isRepaired: boolean; wrong: ReadonlyMap<string, unknown> }> {
    const { blobRows, isFenced, logger } = this.#parts;
    const wrong = new Map<string, unknown>();
    let isRepaired = false;
    for (const [key, from] of right) {
      this.#right.delete(key);
      const hash = sources.length > 1 ? await hashOf(from, key) : null;
      if (hash === null) continue;
      for (const [index, { isWritten, store }] of sources.entries()) {
        if (!isWritten || store === from) continue;
        try {
          if ((await hashOf(store, key)) === hash) continue;
          if (isFenced()) {
            this.#right.set(key, from);
            continue;
          }
          await copyKeptBlob(blobRows, key, from, store);
          isRepaired = true;
          logger.warn({ key, store: index + 1 }, 'a damaged blob was replaced by that of the other store');
        } catch (error) {
          // The document can be read without this store.
          this.#right.set(key, from);
          wrong.set(key, error);
          logger.warn(
            { key, store: index + 1, err: error },
            'a blob of the other store could not be compared or replaced',
          );
        }
      }
    }
    return { isRepaired, wrong };
  }

  async #repairLater(key: string): Promise<void> {
    if (this.#parts.isFenced()) return;
    try {
      await this.#parts.repairLater(key);
    } catch (error) {
      this.#parts.logger.warn({ key, err: error }, 'a damaged blob could not be noted');
    }
  }
}

/**
 * For a site that another site has replaced, where no row is marked. Damage is not checked or reported again for a minute, and not reported
 * as new for an hour.
 */
class SeenDamage {
  readonly #seen = new LRUCache<string, number>({ max: maxSeen, ttl: seenMs });
  readonly #isFenced: () => boolean;

  constructor(isFenced: () => boolean) {
    this.#isFenced = isFenced;
  }

  /** The row `id` contains or names bytes that were just found damaged in all stores. */
  isTrusted(id: string): boolean {
    const at = this.#isFenced() ? this.#seen.get(id) : undefined;
    return at !== undefined && performance.now() - at < trustedMs;
  }

  /** Returns whether the damage is new. */
  note(id: string): boolean {
    const isNew = !this.#seen.has(id);
    this.#seen.set(id, performance.now());
    return isNew;
  }
}

/** Reads from the chosen store, or from the first store that has the blob, and records which. */
class ChoosingReader implements BlobReader {
  readonly opened = new Map<string, BlobStore>();
  readonly #sources: readonly CopySource[];
  readonly #chosen: ReadonlyMap<string, BlobStore>;

  constructor(sources: readonly CopySource[], chosen: ReadonlyMap<string, BlobStore>) {
    this.#sources = sources;
    this.#chosen = chosen;
  }

  async open(key: string, options?: { signal?: AbortSignal; range?: BlobRange }): Promise<AsyncIterable<Buffer>> {
    const chosen = this.#chosen.get(key);
    for (const store of chosen ? [chosen] : this.#sources.map((source) => source.store)) {
      try {
        const bytes = await store.open(key, options);
        this.opened.set(key, store);
        return bytes;
      } catch (error) {
        if (!(error instanceof BlobNotFoundError)) throw error;
      }
    }
    throw new BlobNotFoundError(key);
  }

  put(): never {
    throw new TypeError('A document that is checked is not written');
  }
}

async function hashOf(store: BlobStore, key: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of await store.open(key)) hash.update(chunk);
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
  return hash.digest('hex');
}
