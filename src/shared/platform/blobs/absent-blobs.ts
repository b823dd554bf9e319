import type { BlobStore } from './blob-store.ts';

const questionsAtOnce = 8;

/** Those of `keys` that are not there, asking for each. Throws BlobStoreUnavailableError. */
export async function filterAbsent(store: Pick<BlobStore, 'stat'>, keys: readonly string[]): Promise<string[]> {
  const waiting = [...keys];
  const absent: string[] = [];
  const askNext = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      if ((await store.stat(key)) === null) absent.push(key);
    }
  };
  await Promise.all(Array.from({ length: questionsAtOnce }, askNext));
  return absent;
}
