import type { BlobStore } from './blob-store.ts';
import { inParallel } from './in-parallel.ts';

const concurrentRequests = 8;

/** Sends one `stat` per key. Throws BlobStoreUnavailableError. */
export async function filterAbsent(store: Pick<BlobStore, 'stat'>, keys: readonly string[]): Promise<string[]> {
  const absent: string[] = [];
  const check = async (key: string): Promise<void> => {
    if ((await store.stat(key)) === null) absent.push(key);
  };
  await inParallel(keys, undefined, check, concurrentRequests);
  return absent;
}
