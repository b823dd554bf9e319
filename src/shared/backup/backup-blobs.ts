import { type BlobPage, type BlobStore, BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { places } from './manifest.ts';

const prefix = places.blob('');

/** The blobs of a backup as a blob store that nothing can be written to. */
export class BackupBlobs implements BlobStore {
  readonly #target: BlobStore;
  readonly #known: ReadonlySet<string>;

  /** `known`: the blobs of this backup. The target has blobs of others. */
  constructor(target: BlobStore, known: ReadonlySet<string>) {
    this.#target = target;
    this.#known = known;
  }

  put(): Promise<never> {
    return Promise.reject(new BlobStoreUnavailableError('denied', 'A backup is only read'));
  }

  open(key: string, options?: Parameters<BlobStore['open']>[1]) {
    return this.#target.open(places.blob(key), options);
  }

  stat(key: string) {
    return this.#target.stat(places.blob(key));
  }

  delete(): Promise<void> {
    return Promise.resolve();
  }

  async list(start: string, after?: string): Promise<BlobPage> {
    const { blobs, next } = await this.#target.list(places.blob(start), after);
    const named = blobs.map((blob) => ({ ...blob, key: blob.key.slice(prefix.length) }));
    return { blobs: named.filter(({ key }) => this.#known.has(key)), next };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    const absent = await this.#target.findAbsent(keys.map(places.blob));
    return absent.map((key) => key.slice(prefix.length));
  }

  sweepUnfinished(): Promise<number> {
    return Promise.resolve(0);
  }

  check(timeoutMs: number): Promise<void> {
    return this.#target.check(timeoutMs);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
