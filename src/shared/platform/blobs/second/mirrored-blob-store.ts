import { BlobNotFoundError, type BlobPage, type BlobRange, type BlobStat, type BlobStore } from '../blob-store.ts';
import { readBlob } from '../places/placed-blob-store.ts';
import type { CopyQueueRepository } from './copy-queue-repository.ts';

interface Parts {
  readonly main: BlobStore;
  readonly second: BlobStore;
  readonly queue: Pick<CopyQueueRepository, 'add'>;
}

/** A write waits for the second store for this time, and one second more per 4 MiB. */
const patienceMs = 10_000;
const bytesPerMs = 4096;
/** After a failure, writes do not try the second store for this time. */
const pauseMs = 10_000;

/**
 * Writes each blob to both stores before the call returns. If the second one fails, the call notes the blob in the database instead, and a
 * task copies it later: the installation goes on while the other site is down. Reads what the main store lacks from the second one.
 */
export class MirroredBlobStore implements BlobStore {
  readonly #main: BlobStore;
  readonly #second: BlobStore;
  readonly #queue: Parts['queue'];
  #pausedUntil = 0;

  constructor({ main, queue, second }: Parts) {
    this.#main = main;
    this.#second = second;
    this.#queue = queue;
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: { signal?: AbortSignal } = {},
  ): Promise<{ storedBytes: number }> {
    const stored = await this.#main.put(key, body, options);
    const { storedBytes: bytes } = stored;
    await this.#inSecond(key, { bytes, isDeletion: false }, async () => {
      const signal = AbortSignal.timeout(patienceMs + Math.ceil(bytes / bytesPerMs));
      await this.#second.put(key, readBlob(this.#main, key), { signal });
    });
    return stored;
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    try {
      return await this.#main.open(key, options);
    } catch (error) {
      // Only the main store decides that there is no such blob.
      if (options.signal?.aborted) throw error;
      return await this.#second.open(key, options).catch(() => {
        throw error;
      });
    }
  }

  async stat(key: string): Promise<BlobStat | null> {
    const found = await this.#main.stat(key);
    return found ?? (await this.#second.stat(key).catch(() => null));
  }

  async delete(key: string): Promise<void> {
    await this.#main.delete(key);
    await this.#inSecond(key, { bytes: 0, isDeletion: true }, () => this.#second.delete(key));
  }

  list(prefix: string, after?: string): Promise<BlobPage> {
    return this.#main.list(prefix, after);
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    const absent = await this.#main.findAbsent(keys);
    return absent.length === 0 ? absent : await this.#second.findAbsent(absent).catch(() => absent);
  }

  async sweepUnfinished(olderThanMs: number): Promise<number> {
    const swept = await this.#main.sweepUnfinished(olderThanMs);
    return swept + (await this.#second.sweepUnfinished(olderThanMs).catch(() => 0));
  }

  check(timeoutMs: number): Promise<void> {
    return this.#main.check(timeoutMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#main.close(), this.#second.close()]);
  }

  async #inSecond(
    key: string,
    work: { readonly bytes: number; readonly isDeletion: boolean },
    run: () => Promise<unknown>,
  ): Promise<void> {
    if (performance.now() >= this.#pausedUntil) {
      try {
        await run();
        return;
      } catch {
        this.#pausedUntil = performance.now() + pauseMs;
      }
    }
    await this.#queue.add(key, work);
  }
}

/**
 * Copies a noted blob to the store that lacks it, or deletes it in both. After a promotion, that may be the main one. Throws
 * BlobStoreUnavailableError.
 */
export async function settleCopy(
  { main, second }: Pick<Parts, 'main' | 'second'>,
  { isDeletion, key }: { readonly key: string; readonly isDeletion: boolean },
): Promise<void> {
  if (isDeletion) {
    await main.delete(key);
    await second.delete(key);
    return;
  }
  const [here, there] = [await main.stat(key), await second.stat(key)];
  if ((here === null) === (there === null)) return;
  const [from, to] = here === null ? [second, main] : [main, second];
  try {
    await to.put(key, readBlob(from, key));
  } catch (error) {
    // Deleted meanwhile.
    if (!(error instanceof BlobNotFoundError)) throw error;
  }
}
