import {
  BlobNotFoundError,
  type BlobPage,
  type BlobRange,
  type BlobStat,
  type BlobStore,
  BlobStoreUnavailableError,
} from '../blob-store.ts';
import { markCursor, readCursor } from '../listing-cursor.ts';
import { readBlob } from '../locations/located-blob-store.ts';
import type { CopyQueueRepository } from './copy-queue-repository.ts';

interface CopyQueue {
  add(...args: Parameters<CopyQueueRepository['add']>): Promise<unknown>;
  addAll(keys: readonly string[]): Promise<unknown>;
  listCopies(prefix: string, limit: number): Promise<readonly string[]>;
}

interface Parts {
  readonly main: BlobStore;
  readonly second: BlobStore;
  readonly queue: CopyQueue;
  /** Whether a write fails unless its blob is in both stores. */
  readonly isStrict?: boolean;
}

/** The name of the second store in the cursor of a listing. */
const secondName = 'second';
/** With more blobs waiting, the second store does not count as complete. */
const maxWaiting = 1_000;
/** A write waits for the second store this long, plus one second per 4 MiB. */
const patienceMs = 10_000;
const bytesPerMs = 4096;
/** After a failure, writes do not try the second store for this time, and reads begin in the store that did not fail. */
const pauseMs = 10_000;
const retryAfterSeconds = 10;

/** The settings refuse writes without the second store. The main store's copy is swept. */
class SecondStoreAwayError extends BlobStoreUnavailableError {
  constructor(options: ErrorOptions = {}) {
    super('unreachable', 'The blob store of the second site is down; please retry', { retryAfterSeconds, ...options });
  }
}

/**
 * A call returns when the blob is in both stores. If the second one fails, the call records the blob in the database instead, and a task
 * copies it later: the installation keeps working while the other site is down. The second store serves reads while the main one is down or
 * lacks the blob, which the task then copies back.
 */
export class MirroredBlobStore implements BlobStore {
  readonly #main: BlobStore;
  readonly #second: BlobStore;
  readonly #queue: Parts['queue'];
  readonly #isStrict: boolean;
  #pausedUntil = 0;
  #mainPausedUntil = 0;

  constructor({ isStrict = false, main, queue, second }: Parts) {
    this.#isStrict = isStrict;
    this.#main = main;
    this.#second = second;
    this.#queue = queue;
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: { signal?: AbortSignal } = {},
  ): Promise<{ storedBytes: number }> {
    if (this.#isStrict && performance.now() < this.#pausedUntil) throw new SecondStoreAwayError();
    const stored = await this.#main.put(key, body, options);
    const { storedBytes: bytes } = stored;
    await this.#inSecond(key, { bytes, isDeletion: false }, async () => {
      const signal = AbortSignal.timeout(patienceMs + Math.ceil(bytes / bytesPerMs));
      await this.#second.put(key, readBlob(this.#main, key), { signal });
    });
    return stored;
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    if (performance.now() < this.#mainPausedUntil) {
      const found = await this.#second.open(key, options).catch(() => null);
      if (found !== null) return found;
    }
    try {
      return await this.#main.open(key, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      this.#noteFault(error);
      const isAbsent = error instanceof BlobNotFoundError;
      const found = await this.#second.open(key, options).catch((other: unknown) => {
        // A blob does not exist only if both stores say so.
        throw isAbsent && !(other instanceof BlobNotFoundError) ? other : error;
      });
      // This may also record a blob that is being deleted. The deletion of its other copy ends that.
      if (isAbsent) await this.#queue.addAll([key]).catch(() => {});
      return found;
    }
  }

  async stat(key: string): Promise<BlobStat | null> {
    let fault: unknown = null;
    try {
      const found = await this.#main.stat(key);
      if (found !== null) return found;
    } catch (error) {
      this.#noteFault(error);
      fault = error;
    }
    const found = await this.#second.stat(key).catch((error: unknown) => {
      throw fault ?? error;
    });
    // Only the main store can decide that the blob does not exist.
    if (found === null && fault !== null) throw fault;
    return found;
  }

  async delete(key: string): Promise<void> {
    await this.#main.delete(key);
    await this.#inSecond(key, { bytes: 0, isDeletion: true }, () => this.#second.delete(key));
  }

  /** All pages come from the store of the first page, because each store has its own order. */
  async list(prefix: string, after?: string): Promise<BlobPage> {
    if (after !== undefined) {
      const position = readCursor(after);
      return position.store === secondName ? this.#listSecond(prefix, position.after) : this.#main.list(prefix, after);
    }
    try {
      return await this.#main.list(prefix);
    } catch (error) {
      this.#noteFault(error);
      try {
        const waiting = await this.#queue.listCopies(prefix, maxWaiting);
        if (waiting.length === maxWaiting || (await this.#second.findAbsent(waiting)).length > 0) throw error;
        return await this.#listSecond(prefix);
      } catch {
        throw error;
      }
    }
  }

  async #listSecond(prefix: string, after?: string): Promise<BlobPage> {
    const { blobs, next } = await this.#second.list(prefix, after);
    return { blobs, next: markCursor(next, secondName) };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    const absent = await this.#main.findAbsent(keys);
    return absent.length === 0 ? absent : this.#second.findAbsent(absent);
  }

  async sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number> {
    const swept = await this.#main.sweepUnfinished(olderThanMs, prefixes);
    return swept + (await this.#second.sweepUnfinished(olderThanMs, prefixes).catch(() => 0));
  }

  check(timeoutMs: number): Promise<void> {
    return this.#main.check(timeoutMs);
  }

  async close(): Promise<void> {
    await Promise.all([this.#main.close(), this.#second.close()]);
  }

  #noteFault(error: unknown): void {
    if (error instanceof BlobStoreUnavailableError) this.#mainPausedUntil = performance.now() + pauseMs;
  }

  async #inSecond(
    key: string,
    work: { readonly bytes: number; readonly isDeletion: boolean },
    run: () => Promise<unknown>,
  ): Promise<void> {
    // The write may have begun before the pause.
    const isNeeded = this.#isStrict && !work.isDeletion;
    if (isNeeded || performance.now() >= this.#pausedUntil) {
      try {
        await run();
        return;
      } catch (error) {
        this.#pausedUntil = performance.now() + pauseMs;
        if (isNeeded) throw new SecondStoreAwayError({ cause: error });
      }
    }
    await this.#queue.add(key, work);
  }
}
