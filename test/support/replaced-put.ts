import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';

/** The store with another `put`. */
export function withPut(store: BlobStore, put: BlobStore['put']): BlobStore {
  return {
    put,
    open: (key, options) => store.open(key, options),
    stat: (key) => store.stat(key),
    delete: (key) => store.delete(key),
    list: (prefix, after) => store.list(prefix, after),
    findAbsent: (keys) => store.findAbsent(keys),
    sweepUnfinished: (olderThanMs, prefixes) => store.sweepUnfinished(olderThanMs, prefixes),
    check: (timeoutMs) => store.check(timeoutMs),
    close: () => store.close(),
  };
}
