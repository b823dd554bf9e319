import type { BlobStore } from './blob-store.ts';

const concurrentRequests = 8;

/** Returns the `keys` that do not exist, with one `stat` per key. Throws BlobStoreUnavailableError. */
export async function filterAbsent(store: Pick<BlobStore, 'stat'>, keys: readonly string[]): Promise<string[]> {
  const remaining = [...keys];
  const absent: string[] = [];
  const checkNext = async (): Promise<void> => {
    for (let key = remaining.shift(); key !== undefined; key = remaining.shift()) {
      if ((await store.stat(key)) === null) absent.push(key);
    }
  };
  await Promise.all(Array.from({ length: concurrentRequests }, checkNext));
  return absent;
}
