import { createHash } from 'node:crypto';
import { BlobNotFoundError, type BlobStore } from '../platform/blobs/blob-store.ts';
import { BackupError } from './backup-error.ts';
import { type FoundBackup, findBackups, openBackup } from './backup-list.ts';
import { type BlobCopy, readBlobList } from './manifest.ts';
import { readSmall, type StoredObject } from './stored-bytes.ts';

interface KnownList {
  readonly key: string;
  readonly first: string;
  readonly last: string;
}

/**
 * The blobs of the newest complete backup of an installation, and of interrupted ones since then. Only the ranges of the lists are in
 * memory. Lists are almost in the order of their keys, so the copies of a page of keys are in a few lists.
 */
export class KnownBlobs {
  readonly #target: BlobStore;
  readonly #lists: readonly KnownList[];

  private constructor(target: BlobStore, lists: readonly KnownList[]) {
    this.#target = target;
    this.#lists = lists;
  }

  static async open(target: BlobStore, owner: string): Promise<KnownBlobs> {
    const backups = (await findBackups(target)).filter((backup) => backup.owner === owner);
    const newest = backups.findLastIndex(({ isComplete }) => isComplete);
    const lists: KnownList[] = [];
    for (const backup of backups.slice(Math.max(newest, 0)))
      for (const list of await listsOf(target, backup).catch(noneIfDamaged)) {
        const blobs = await readList(target, list).catch(noneIfDamaged);
        const range = rangeOf(blobs.map(({ key }) => key));
        if (range) lists.push({ key: list.key, ...range });
      }
    return new KnownBlobs(target, lists);
  }

  async find(keys: readonly string[]): Promise<ReadonlyMap<string, BlobCopy>> {
    const found = new Map<string, BlobCopy>();
    const range = rangeOf(keys);
    if (range === null) return found;
    const asked = new Set(keys);
    // Later lists have the newer copy.
    for (const list of this.#lists) {
      if (list.first > range.last || list.last < range.first) continue;
      for (const blob of await readList(this.#target, list).catch(noneIfDamaged))
        if (asked.has(blob.key)) found.set(blob.key, blob);
    }
    return found;
  }
}

function rangeOf(keys: readonly string[]): { first: string; last: string } | null {
  let [first] = keys;
  if (first === undefined) return null;
  let last = first;
  for (const key of keys) {
    if (key < first) first = key;
    if (key > last) last = key;
  }
  return { first, last };
}

/** A list of an incomplete backup has no hash. */
type BlobList = Pick<StoredObject, 'key'> & Partial<StoredObject>;

async function listsOf(target: BlobStore, { blobLists, id, isComplete }: FoundBackup): Promise<readonly BlobList[]> {
  return isComplete ? (await openBackup(target, id)).blobLists : blobLists.map((key) => ({ key }));
}

async function readList(target: BlobStore, { key, sha256 }: BlobList): Promise<BlobCopy[]> {
  const bytes = await readSmall(target, key);
  if (sha256 !== undefined && sha256 !== createHash('sha256').update(bytes).digest('hex'))
    throw new BackupError(`${key} is damaged`);
  return readBlobList(key, bytes);
}

/** A prune may also have deleted the backup meanwhile. Its blobs are copied anew. */
function noneIfDamaged(error: unknown): never[] {
  if (!(error instanceof BackupError || error instanceof BlobNotFoundError)) throw error;
  return [];
}
