import { createHash } from 'node:crypto';
import { BlobNotFoundError, type BlobStore } from '../../platform/blobs/blob-store.ts';
import { readBlob } from '../../platform/blobs/locations/located-blob-store.ts';
import { MirroredBlobStore } from '../../platform/blobs/second/mirrored-blob-store.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import type { DocumentStore } from './document-store.ts';

/** Reads a document, and throws if it does not have the hash in its row. */
export type ReadDocument = (documents: DocumentStore) => Promise<unknown>;

interface Parts {
  readonly main: BlobStore;
  readonly second: BlobStore;
  readonly documentsOver: (blobs: BlobStore) => DocumentStore;
  readonly logger: Logger;
}

/** Replaces damaged blobs of one store by those of the other, if a document that is read from there has its hash. */
export class SecondCopies {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Mends the main store, if the whole document can be read from the second one. Returns whether it replaced anything. */
  async mend(read: ReadDocument): Promise<boolean> {
    const { documentsOver, logger, main, second } = this.#parts;
    const source = new RecordingStore(second, main);
    try {
      await read(documentsOver(source));
      let isMended = false;
      for (const key of source.opened) {
        const right = await hashOf(second, key);
        if (right === null || right === (await hashOf(main, key))) continue;
        await this.#copy(key, second, main);
        isMended = true;
      }
      return isMended;
    } catch (error) {
      logger.debug({ err: error }, 'a damaged document was not mended from the second store');
      return false;
    }
  }

  /** Mends the store in which this blob is damaged, if the document can be read with that of the other store. Returns whether it did. */
  async mendOne(key: string, read: ReadDocument): Promise<boolean> {
    const { documentsOver, logger, main, second } = this.#parts;
    for (const [from, to] of [
      [second, main],
      [main, second],
    ] as const) {
      try {
        await read(documentsOver(new PinnedStore({ main, second }, key, from)));
        await this.#copy(key, from, to);
        return true;
      } catch (error) {
        logger.debug({ key, err: error }, 'a blob that differs in the two stores is not right in one');
      }
    }
    return false;
  }

  /** Whether both stores have the same bytes, or one lacks the blob. */
  async isSame(key: string): Promise<boolean> {
    const [here, there] = [await hashOf(this.#parts.main, key), await hashOf(this.#parts.second, key)];
    return here === null || there === null || here === there;
  }

  async #copy(key: string, from: BlobStore, to: BlobStore): Promise<void> {
    await to.put(key, readBlob(from, key));
    const { logger, main } = this.#parts;
    logger.warn(
      { key, store: to === main ? 'main' : 'second' },
      'a damaged blob was replaced by that of the other store',
    );
  }
}

const noQueue = { add: async () => {}, addAll: async () => {} };

/** Reads one blob from one store only. */
class PinnedStore extends MirroredBlobStore {
  readonly #key: string;
  readonly #from: BlobStore;

  constructor(stores: Pick<Parts, 'main' | 'second'>, key: string, from: BlobStore) {
    super({ ...stores, queue: noQueue });
    this.#key = key;
    this.#from = from;
  }

  override open(...[key, options]: Parameters<BlobStore['open']>): ReturnType<BlobStore['open']> {
    return key === this.#key ? this.#from.open(key, options) : super.open(key, options);
  }
}

/** Reads from one store what it has, and knows what was read. */
class RecordingStore extends MirroredBlobStore {
  readonly opened = new Set<string>();

  constructor(main: BlobStore, second: BlobStore) {
    super({ main, second, queue: noQueue });
  }

  override open(...[key, options]: Parameters<BlobStore['open']>): ReturnType<BlobStore['open']> {
    this.opened.add(key);
    return super.open(key, options);
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
