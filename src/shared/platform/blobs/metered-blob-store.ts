import type { Metrics } from '../telemetry/metrics.ts';
import { inSpan } from '../tracing/tracing.ts';
import { type BlobPage, type BlobRange, type BlobStore, BlobStoreUnavailableError } from './blob-store.ts';

type Operation = 'put' | 'open' | 'read' | 'stat' | 'delete' | 'list' | 'sweep' | 'check';

/**
 * Calls `beforeWrite`, which may throw, before each change. Missing blobs and errors of the caller's own body or signal do not count as
 * faults.
 */
export class MeteredBlobStore implements BlobStore {
  readonly #store: BlobStore;
  readonly #metrics: Metrics;
  readonly #beforeWrite: () => void;

  constructor(store: BlobStore, metrics: Metrics, beforeWrite: () => void = () => {}) {
    this.#store = store;
    this.#metrics = metrics;
    this.#beforeWrite = beforeWrite;
  }

  put(key: string, body: AsyncIterable<Buffer>, options?: { signal?: AbortSignal }): Promise<{ storedBytes: number }> {
    return this.#change('put', () => this.#store.put(key, body, options));
  }

  async open(key: string, options?: { signal?: AbortSignal; range?: BlobRange }): Promise<AsyncIterable<Buffer>> {
    return this.#watch(await this.#measure('open', () => this.#store.open(key, options)));
  }

  stat(key: string): Promise<{ storedBytes: number; modifiedAt: Date } | null> {
    return this.#measure('stat', () => this.#store.stat(key));
  }

  delete(key: string): Promise<void> {
    return this.#change('delete', () => this.#store.delete(key));
  }

  list(prefix: string, after?: string): Promise<BlobPage> {
    return this.#measure('list', () => this.#store.list(prefix, after));
  }

  findAbsent(keys: readonly string[]): Promise<string[]> {
    return this.#measure('list', () => this.#store.findAbsent(keys));
  }

  sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number> {
    return this.#change('sweep', () => this.#store.sweepUnfinished(olderThanMs, prefixes));
  }

  check(timeoutMs: number): Promise<void> {
    return this.#measure('check', () => this.#store.check(timeoutMs));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #change<T>(operation: Operation, work: () => Promise<T>): Promise<T> {
    return this.#measure(operation, async () => {
      this.#beforeWrite();
      return work();
    });
  }

  async #measure<T>(operation: Operation, work: () => Promise<T>): Promise<T> {
    const timer = this.#metrics.blobSeconds.labels(operation).startTimer();
    try {
      return await inSpan(`blob ${operation}`, {}, work);
    } catch (error) {
      this.#count(operation, error);
      throw error;
    } finally {
      timer();
    }
  }

  /** Forwards `next` and `return`, so that an open body ends as without this wrapper. */
  #watch(body: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    return {
      [Symbol.asyncIterator]: () => {
        const iterator = body[Symbol.asyncIterator]();
        const next = async (): Promise<IteratorResult<Buffer>> => {
          try {
            return await iterator.next();
          } catch (error) {
            this.#count('read', error);
            throw error;
          }
        };
        return { next, return: async () => (await iterator.return?.()) ?? { done: true, value: undefined } };
      },
    };
  }

  #count(operation: Operation, error: unknown): void {
    if (error instanceof BlobStoreUnavailableError) this.#metrics.blobErrors.labels(operation, error.fault).inc();
  }
}
