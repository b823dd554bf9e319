import {
  type BlobPage,
  type BlobRange,
  type BlobStore,
  BlobStoreUnavailableError,
} from '../platform/blobs/blob-store.ts';
import { listBlobs } from './backup-content.ts';
import type { Decrypt } from './backup-encryption.ts';
import type { Manifest } from './manifest.ts';

export class BackupBlobStore implements BlobStore {
  readonly #target: BlobStore;
  readonly #prefix: string;
  readonly #decrypt: Decrypt | null;
  /** The target also has blobs of other backups. */
  readonly #sizes: ReadonlyMap<string, number>;

  private constructor(target: BlobStore, prefix: string, decrypt: Decrypt | null, sizes: ReadonlyMap<string, number>) {
    this.#target = target;
    this.#prefix = prefix;
    this.#decrypt = decrypt;
    this.#sizes = sizes;
  }

  /** `decrypt` is null if the backup is not encrypted. */
  static async open(target: BlobStore, manifest: Manifest, decrypt: Decrypt | null): Promise<BackupBlobStore> {
    const sizes = new Map<string, number>();
    for await (const { key, size } of listBlobs(target, manifest))
      sizes.set(key.slice(manifest.blobPrefix.length), size);
    return new BackupBlobStore(target, manifest.blobPrefix, decrypt, sizes);
  }

  put(): Promise<never> {
    return Promise.reject(new BlobStoreUnavailableError('denied', 'A backup is only read'));
  }

  async open(key: string, options: Parameters<BlobStore['open']>[1] = {}): Promise<AsyncIterable<Buffer>> {
    const targetKey = this.#prefix + key;
    if (this.#decrypt === null) return this.#target.open(targetKey, options);
    const { range, signal } = options;
    const body = this.#decrypt(await this.#target.open(targetKey, signal ? { signal } : {}));
    return range ? cut(body, range) : body;
  }

  async stat(key: string) {
    const found = await this.#target.stat(this.#prefix + key);
    return found && { ...found, storedBytes: this.#sizes.get(key) ?? found.storedBytes };
  }

  delete(): Promise<void> {
    return Promise.resolve();
  }

  async list(start: string, after?: string): Promise<BlobPage> {
    const { blobs, next } = await this.#target.list(this.#prefix + start, after);
    const named = blobs.map((blob) => ({ ...blob, key: blob.key.slice(this.#prefix.length) }));
    return { blobs: named.filter(({ key }) => this.#sizes.has(key)), next };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    const absent = await this.#target.findAbsent(keys.map((key) => this.#prefix + key));
    return absent.map((key) => key.slice(this.#prefix.length));
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

async function* cut(body: AsyncIterable<Buffer>, { end, start }: BlobRange): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of body) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at >= end) return;
  }
}
