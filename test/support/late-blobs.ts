import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { withPut } from './replaced-put.ts';

/** Behind a connection that can be frozen: a put then fails for the caller while its request is still pending. */
export interface LateBlobs {
  readonly blobs: BlobStore;
  /** Pending requests. */
  readonly onTheWay: () => number;
  /** Makes puts from now on fail with a timeout and arrive later. */
  freeze(): void;
  /** Makes puts from now on arrive at once; pending ones stay pending. */
  thaw(): void;
  /** Delivers all pending requests. */
  arrive(): Promise<void>;
}

/** Opens one in `directory`. */
export async function openLateBlobs(directory: string): Promise<LateBlobs> {
  const store = await openBlobStore({ kind: 'files', directory });
  let frozen = false;
  let late: (() => Promise<unknown>)[] = [];
  const put: BlobStore['put'] = async (key, body, options) => {
    if (!frozen) return store.put(key, body, options);
    const chunks = await Array.fromAsync(body, (chunk) => Buffer.from(chunk));
    late.push(() =>
      store.put(
        key,
        (async function* () {
          yield* chunks;
        })(),
      ),
    );
    throw new BlobStoreUnavailableError('timeout', 'blob store did not answer in time (put)');
  };
  return {
    blobs: withPut(store, put),
    onTheWay: () => late.length,
    freeze: () => {
      frozen = true;
    },
    thaw: () => {
      frozen = false;
    },
    arrive: async () => {
      const requests = late;
      late = [];
      for (const request of requests) await request();
    },
  };
}
