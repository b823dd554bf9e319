import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { withTimeout } from '../timeout/with-timeout.ts';
import { BlobStoreUnavailableError } from './blob-store.ts';

/**
 * Bytes between yields to the event loop. A body in memory would fill complete parts in one tick: four concurrent puts blocked the loop for
 * 40 to 60 ms, and for 20 to 35 ms with a yield every MiB.
 */
const pauseBytes = 1024 * 1024;

/** When `signal` fires, throws its reason at once, even while the body waits for its own source. */
export class PutBody implements AsyncIterable<Buffer> {
  readonly #body: AsyncIterable<Buffer>;
  readonly #signal: AbortSignal | undefined;
  bytes = 0;
  /** Set if the body itself threw. */
  failure: { readonly error: unknown } | undefined;

  constructor(body: AsyncIterable<Buffer>, signal: AbortSignal | undefined) {
    this.#body = body;
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    const signal = this.#signal;
    let fail: ((reason: unknown) => void) | undefined;
    const onAbort = (): void => fail?.(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    let chunks: AsyncIterator<Buffer> | undefined;
    let ended = false;
    let pauseAtBytes = pauseBytes;
    try {
      chunks = this.#body[Symbol.asyncIterator]();
      for (;;) {
        signal?.throwIfAborted();
        const step = await nextOr(chunks, (reject) => {
          fail = reject;
        });
        if (step.done === true) {
          ended = true;
          return;
        }
        this.bytes += step.value.byteLength;
        if (this.bytes >= pauseAtBytes) {
          pauseAtBytes = this.bytes + pauseBytes;
          await setImmediate();
        }
        yield step.value;
      }
    } catch (error) {
      if (signal?.aborted !== true) this.failure = { error };
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      // Not awaited: a generator that waits for its source returns only after the source.
      if (!ended) chunks?.return?.().catch(() => undefined);
    }
  }
}

/** A race against one long-lived promise would keep every chunk in memory until the end. */
function nextOr(
  chunks: AsyncIterator<Buffer>,
  onReject: (reject: (reason: unknown) => void) => void,
): Promise<IteratorResult<Buffer>> {
  return new Promise((resolve, reject) => {
    onReject(reject);
    chunks.next().then(resolve, reject);
  });
}

/**
 * Throws the reason of `signal` when it fires, or BlobStoreUnavailableError after `limitMs`. Both also abort the signal passed to `run`.
 */
export async function withDeadline<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const control = new AbortController();
  const { promise: cut, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await withTimeout(
      Promise.race([run(control.signal), cut]),
      limitMs,
      () => new BlobStoreUnavailableError('timeout', `blob store did not answer within ${limitMs} ms`),
    );
  } catch (error) {
    control.abort(error);
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

export interface ReadOptions {
  readonly signal: AbortSignal | undefined;
  /** Maximum wait for requested bytes. The reader's time between requests does not count. */
  readonly stallTimeoutMs?: number;
  /** The size announced by the store. */
  readonly expectedBytes: number | undefined;
  readonly mapError: (error: unknown) => BlobStoreUnavailableError;
}

/** Reads `source` once. */
export class OpenedBlob implements AsyncIterableIterator<Buffer> {
  readonly #source: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #options: ReadOptions;
  readonly #onAbort: () => void;
  #failure: unknown;
  #bytes = 0;

  constructor(source: Readable, options: ReadOptions) {
    this.#source = source;
    this.#options = options;
    this.#chunks = source[Symbol.asyncIterator]();
    // Without a listener, an error before the first read would crash the process.
    source.on('error', (error) => {
      this.#failure ??= error;
    });
    this.#onAbort = (): void => {
      source.destroy(options.signal?.reason);
    };
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal?.aborted === true) this.#onAbort();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer>> {
    const { signal, stallTimeoutMs, expectedBytes, mapError } = this.#options;
    const stall =
      stallTimeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#source.destroy(stalled(stallTimeoutMs)), stallTimeoutMs);
    try {
      if (this.#failure !== undefined) throw this.#failure;
      const step = await this.#chunks.next();
      if (step.done !== true) {
        this.#bytes += step.value.byteLength;
        return step;
      }
      if (expectedBytes !== undefined && expectedBytes !== this.#bytes) {
        throw new BlobStoreUnavailableError('faulty', `blob ends after ${this.#bytes} of ${expectedBytes} bytes`);
      }
      this.#release();
      return step;
    } catch (error) {
      this.#release();
      signal?.throwIfAborted();
      throw error instanceof BlobStoreUnavailableError ? error : mapError(this.#failure ?? error);
    } finally {
      clearTimeout(stall);
    }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.#release();
    return { done: true, value: undefined };
  }

  #release(): void {
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#source.destroy();
  }
}

function stalled(stallTimeoutMs: number): BlobStoreUnavailableError {
  return new BlobStoreUnavailableError('timeout', `blob store sent nothing for ${stallTimeoutMs} ms`);
}

export async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
