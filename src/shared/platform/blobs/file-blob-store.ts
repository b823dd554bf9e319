import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { makeFolderDurably } from '../files/durable-files.ts';
import { filterAbsent } from './absent-blobs.ts';
import {
  assertBlobKey,
  assertBlobPrefix,
  type BlobInfo,
  BlobNotFoundError,
  type BlobPage,
  type BlobRange,
  type BlobStore,
  BlobStoreUnavailableError,
  isBlobKey,
} from './blob-store.ts';
import { OpenedBlob, PutBody, withDeadline } from './blob-streams.ts';

export interface FileBlobStoreOptions {
  /** Must be on a single file system, because temporary files inside it are renamed. */
  readonly directory: string;
  /** Blobs per page of `list`. */
  readonly pageSize?: number;
}

const shardCount = 256;
const readChunkBytes = 256 * 1024;
const leftoverAgeMs = 60 * 60 * 1000;

/**
 * Files are `blobs/<shard>/<key with ~ for />`, in 256 directories by the hash of the key. All directories are created up front: a file
 * missing from an existing directory is not stored, and a missing directory means that the volume is gone.
 */
export class FileBlobStore implements BlobStore {
  readonly #blobs: string;
  readonly #unfinished: string;
  readonly #pageSize: number;

  private constructor(options: FileBlobStoreOptions) {
    const directory = path.resolve(options.directory);
    this.#blobs = path.join(directory, 'blobs');
    this.#unfinished = path.join(directory, 'unfinished');
    this.#pageSize = options.pageSize ?? 1000;
  }

  /** Leaves the directory unchanged: it may belong to another installation, or be missing. */
  static at(options: FileBlobStoreOptions): FileBlobStore {
    return new FileBlobStore(options);
  }

  /**
   * Removes temporary files older than an hour, left by dead processes. Throws BlobStoreUnavailableError if the directory cannot be used.
   */
  static async open(options: FileBlobStoreOptions): Promise<FileBlobStore> {
    const store = new FileBlobStore(options);
    await io('preparing the directory', async () => {
      makeFolderDurably(path.dirname(store.#blobs));
      await mkdir(store.#unfinished, { recursive: true });
      await mkdir(store.#blobs, { recursive: true });
      const present = new Set(await readdir(store.#blobs));
      const missing = Array.from({ length: shardCount }, (_, index) => shardName(index)).filter(
        (name) => !present.has(name),
      );
      for (const name of missing) await mkdir(path.join(store.#blobs, name), { recursive: true });
      // Even if nothing was created: the process that created the directories may have been killed before it synced them.
      await syncDirectory(store.#blobs);
      await syncDirectory(path.dirname(store.#blobs));
    });
    await store.sweepUnfinished(leftoverAgeMs);
    return store;
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: { signal?: AbortSignal } = {},
  ): Promise<{ storedBytes: number }> {
    assertBlobKey(key);
    options.signal?.throwIfAborted();
    const chunks = new PutBody(body, options.signal);
    const target = this.#pathOf(key);
    const temporary = path.join(this.#unfinished, `${randomUUID()}.part`);
    try {
      const file = await io('creating a file', () => open(temporary, 'wx', 0o640));
      try {
        for await (const chunk of chunks) await io('writing', () => writeAll(file, chunk));
        await io('flushing', () => file.sync());
      } finally {
        // The bytes are already flushed, or another error is being thrown.
        await file.close().catch(() => undefined);
      }
      options.signal?.throwIfAborted();
      await io('renaming', () => rename(temporary, target));
    } catch (error) {
      // The file is swept later. The first error is the one to report.
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
    await io('flushing a directory', () => syncDirectory(path.dirname(target)));
    return { storedBytes: chunks.bytes };
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    assertBlobKey(key);
    options.signal?.throwIfAborted();
    const file = await this.#unlessMissing(key, () => open(this.#pathOf(key), 'r'));
    if (file === null) throw new BlobNotFoundError(key);
    try {
      const { size } = await io('reading', () => file.stat());
      const { start, end } = options.range ?? { start: 0, end: size };
      // The end of a read stream is the position of the last byte. With it, a buffer is allocated only for existing bytes.
      const source = file.createReadStream({
        highWaterMark: readChunkBytes,
        ...(options.range || size > 0 ? { start, end: end - 1 } : {}),
      });
      return new OpenedBlob(source, {
        signal: options.signal,
        expectedBytes: Math.max(0, Math.min(size, end) - start),
        mapError: (error) => unavailable('reading', error),
      });
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async stat(key: string): Promise<{ storedBytes: number; modifiedAt: Date } | null> {
    assertBlobKey(key);
    const found = await this.#unlessMissing(key, () => stat(this.#pathOf(key)));
    return found === null ? null : { storedBytes: found.size, modifiedAt: found.mtime };
  }

  async delete(key: string): Promise<void> {
    assertBlobKey(key);
    const target = this.#pathOf(key);
    await this.#unlessMissing(key, () => unlink(target));
    // The caller deletes its row next, so a file that reappears would never be found. Sync even if the file is missing: an earlier attempt
    // may have stopped here.
    await io('flushing a directory', () => syncDirectory(path.dirname(target)));
  }

  async list(prefix: string, after?: string): Promise<BlobPage> {
    assertBlobPrefix(prefix);
    const firstShard = after === undefined ? 0 : shardOf(after);
    const blobs: BlobInfo[] = [];
    for (let shard = firstShard; shard < shardCount; shard++) {
      const names = await io('listing', () => readdir(path.join(this.#blobs, shardName(shard))));
      const keys = names
        .map((name) => name.replaceAll('~', '/'))
        .filter(isBlobKey)
        .sort();
      for (const key of keys) {
        if (!key.startsWith(prefix) || (shard === firstShard && after !== undefined && key <= after)) continue;
        if (blobs.length === this.#pageSize) return { blobs, next: blobs.at(-1)?.key ?? null };
        const found = await this.stat(key);
        if (found !== null) blobs.push({ key, ...found });
      }
    }
    return { blobs, next: null };
  }

  findAbsent(keys: readonly string[]): Promise<string[]> {
    return filterAbsent(this, keys);
  }

  async sweepUnfinished(olderThanMs: number): Promise<number> {
    return io('sweeping', async () => {
      const limit = Date.now() - olderThanMs;
      let swept = 0;
      for (const name of await readdir(this.#unfinished)) {
        const leftover = path.join(this.#unfinished, name);
        const found = await orNullIfMissing(() => stat(leftover));
        if (found === null || found.mtimeMs > limit) continue;
        await rm(leftover, { force: true });
        swept++;
      }
      return swept;
    });
  }

  async check(timeoutMs: number): Promise<void> {
    // A hung network file system never responds; the call then stays in the thread pool.
    const usable = constants.R_OK | constants.W_OK | constants.X_OK;
    await withDeadline(timeoutMs, undefined, () =>
      io('checking', async () => {
        await access(this.#unfinished, usable);
        await access(path.join(this.#blobs, shardName(shardCount - 1)), usable);
      }),
    );
  }

  async close(): Promise<void> {}

  #pathOf(key: string): string {
    return path.join(this.#blobs, shardName(shardOf(key)), key.replaceAll('/', '~'));
  }

  /** Returns null if the file is missing but its directory exists. */
  async #unlessMissing<T>(key: string, run: () => Promise<T>): Promise<T | null> {
    return io('looking up', async () => {
      const result = await orNullIfMissing(run);
      if (result === null) await access(path.dirname(this.#pathOf(key)));
      return result;
    });
  }
}

function shardOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt8(0);
}

function shardName(shard: number): string {
  return shard.toString(16).padStart(2, '0');
}

async function writeAll(file: FileHandle, chunk: Buffer): Promise<void> {
  let offset = 0;
  while (offset < chunk.byteLength) offset += (await file.write(chunk, offset)).bytesWritten;
}

/** A rename is durable only after its directory is synced. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function orNullIfMissing<T>(run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

async function io<T>(doing: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw unavailable(doing, error);
  }
}

function unavailable(doing: string, error: unknown): BlobStoreUnavailableError {
  if (error instanceof BlobStoreUnavailableError) return error;
  const code = codeOf(error);
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new BlobStoreUnavailableError('full', `no space left in the blob directory (${code}, ${doing})`, {
        cause: error,
      });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new BlobStoreUnavailableError('denied', `blob directory access denied (${code}, ${doing})`, {
        cause: error,
      });
    case 'ENOENT':
    case 'ENOTDIR':
      return new BlobStoreUnavailableError('misconfigured', `blob directory does not exist (${code}, ${doing})`, {
        cause: error,
      });
    default:
      return new BlobStoreUnavailableError('faulty', `blob directory failed (${code}, ${doing})`, { cause: error });
  }
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown';
}
