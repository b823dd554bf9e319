import { BlobNotFoundError, type BlobStore } from '../../platform/blobs/blob-store.ts';
import { readBlob } from '../../platform/blobs/locations/located-blob-store.ts';
import { type BlobRepository, hasRow } from './blob-repository.ts';

interface Stores {
  readonly main: BlobStore;
  readonly second: BlobStore;
  readonly blobRows: Pick<BlobRepository, 'isKept' | 'scheduleDeletion'>;
}

/**
 * Copies a recorded blob to the store that lacks it (after a promotion, possibly the main one), or deletes it in both. A blob that was or
 * is being deleted stays deleted. Returns whether both stores already had it, perhaps with different bytes. Throws
 * BlobStoreUnavailableError.
 */
export async function settleCopy(
  { blobRows, main, second }: Stores,
  { isDeletion, key }: { readonly key: string; readonly isDeletion: boolean },
): Promise<boolean> {
  if (isDeletion) {
    if (hasRow(key) && (await blobRows.isKept(key))) return false;
    await main.delete(key);
    await second.delete(key);
    return false;
  }
  if (hasRow(key) && !(await blobRows.isKept(key))) return false;
  const [here, there] = [await main.stat(key), await second.stat(key)];
  if ((here === null) === (there === null)) return here !== null;
  const [from, to] = here === null ? [second, main] : [main, second];
  await copyKeptBlob(blobRows, key, from, to);
  return false;
}

/** If the blob is deleted meanwhile, the copy is deleted, too. */
export async function copyKeptBlob(
  blobRows: Stores['blobRows'],
  key: string,
  from: BlobStore,
  to: BlobStore,
): Promise<void> {
  try {
    await to.put(key, readBlob(from, key));
  } catch (error) {
    if (error instanceof BlobNotFoundError) return;
    throw error;
  }
  if (hasRow(key)) {
    if (!(await blobRows.isKept(key))) await blobRows.scheduleDeletion(key);
  } else if ((await from.stat(key)) === null) await to.delete(key);
}
