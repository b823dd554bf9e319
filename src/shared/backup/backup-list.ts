import type { BlobStat, BlobStore } from '../platform/blobs/blob-store.ts';
import { listBlobs } from './backup-content.ts';
import { BackupError } from './backup-error.ts';
import { KeySet } from './key-set.ts';
import { backupKeys, type ManifestHead, readManifestHead } from './manifest.ts';
import { readSmall } from './stored-bytes.ts';

export interface FoundBackup {
  readonly id: string;
  /** The installation, as `ownerOf` names it; null if the first object, which has it in its key, is missing. */
  readonly owner: string | null;
  /** Whether it has its first and last objects. Otherwise it was interrupted, is still being made, or is being deleted by a prune. */
  readonly isComplete: boolean;
  /** Without the blobs, which backups share. */
  readonly keys: readonly string[];
  readonly blobLists: readonly string[];
}

export async function findBackups(target: BlobStore): Promise<FoundBackup[]> {
  const found = new Map<string, string[]>();
  for (let after: string | undefined; ; ) {
    const page = await target.list(backupKeys.root, after);
    for (const { key } of page.blobs) {
      const id = key.split('/')[1] as string;
      const keys = found.get(id);
      if (keys) keys.push(key);
      else found.set(id, [key]);
    }
    if (page.next === null) break;
    after = page.next;
  }
  return [...found]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, keys]) => {
      const start = backupKeys.start(id, '');
      const owner = keys.find((key) => key.startsWith(start))?.slice(start.length) ?? null;
      const isComplete = owner !== null && keys.includes(backupKeys.manifest(id));
      return {
        id,
        owner,
        isComplete,
        keys,
        blobLists: keys.filter((key) => key.startsWith(`backups/${id}/blobs/`)).sort(),
      };
    });
}

/**
 * An installation that starts in a used location by mistake, e.g. because its own disk is not mounted, must not back up there without a
 * warning.
 */
export function assertOwn(present: readonly FoundBackup[], owner: string): void {
  const complete = present.filter(({ isComplete }) => isComplete);
  if (complete.length > 0 && !complete.some((backup) => backup.owner === owner))
    throw new BackupError(
      'The location has backups of another installation, not of this one: take another folder or prefix, or restore one of them',
    );
}

const idTime = /^(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)(\d{3})z$/;
const aheadMs = 60_000;

/** Returns the present time, or a later one, so that the backup is the newest even if a clock was ahead. */
export function nextId(present: readonly FoundBackup[], now: Date): string {
  const newest = present.findLast(({ id }) => idTime.test(id))?.id ?? '';
  const last = Date.parse(newest.replace(idTime, '$1-$2-$3T$4:$5:$6.$7Z'));
  // Random, so that two backups that begin at once get different ids.
  const at = last >= now.getTime() ? new Date(last + Math.ceil(Math.random() * aheadMs)) : now;
  return at.toISOString().replace(/[-:.]/g, '').toLowerCase();
}

/** `id` is null for the newest complete backup. */
export async function openBackup(target: BlobStore, id: string | null): Promise<ManifestHead> {
  const backups = await findBackups(target);
  const complete = backups.filter(({ isComplete }) => isComplete);
  if (id === null && new Set(complete.map(({ owner }) => owner)).size > 1)
    throw new BackupError('There are backups of several installations: name one of `holdfast backup list`');
  const backup = id === null ? complete.at(-1) : backups.find((each) => each.id === id);
  if (!backup) throw new BackupError(id === null ? 'There is no complete backup' : `There is no backup ${id}`);
  if (!backup.isComplete)
    throw new BackupError(`Backup ${backup.id} is incomplete: it was interrupted, or a prune has begun to delete it`);
  return readHead(target, backup);
}

/** Takes a complete backup. Throws BlobNotFoundError if it was deleted meanwhile. */
export async function readHead(target: BlobStore, { id }: Pick<FoundBackup, 'id'>): Promise<ManifestHead> {
  return readManifestHead(id, await readSmall(target, backupKeys.manifest(id)));
}

/** Returns when the backup was last verified without faults, in ms since 1970; null for never. */
export async function readVerification(target: BlobStore, { id, keys }: FoundBackup): Promise<number | null> {
  if (!keys.includes(backupKeys.verified(id))) return null;
  const at = Date.parse((await readSmall(target, backupKeys.verified(id))).toString('utf8').trim());
  return Number.isNaN(at) ? null : at;
}

/** A backup fails after a day. An incomplete one that began this long ago is abandoned, even if clocks differ by hours. */
const abandonedMs = 2 * 24 * 3600_000;

export interface PrunedBackups {
  readonly backups: string[];
  readonly blobs: number;
  /** Protected by an object lock. */
  readonly locked: string[];
  /** The backup that may still be running, for which unneeded blobs are kept. */
  readonly unfinished: string | null;
}

/**
 * Deletes all but the newest `keep` complete backups of `owner` (null: of each owner); incomplete ones, of the owner or without an owner,
 * that are older than a complete one; and abandoned ones of any owner. Then deletes blobs that no remaining backup needs, unless a backup
 * may be running. Keeps what an object lock protects. Safe to repeat after an interruption. Throws BackupError if a remaining backup cannot
 * be read.
 */
export async function pruneBackups(
  target: BlobStore,
  keep: number,
  owner: string | null = null,
): Promise<PrunedBackups> {
  const all = await findBackups(target);
  const kept = new Set<string>();
  const now = new Date();
  const ended: FoundBackup[] = [];
  const locked: string[] = [];
  const unfinished = new Set<string>();
  for (const [whose, backups] of Map.groupBy(all, (backup) => backup.owner)) {
    const mayDelete = [owner, whose].includes(null) || whose === owner;
    // A backup without an owner is one that a prune has begun to delete.
    const complete = (whose === null ? all : backups).filter(({ isComplete }) => isComplete).map(({ id }) => id);
    const newest = complete.at(-1) ?? '';
    for (const id of whose === null ? [] : mayDelete ? complete.slice(-keep) : complete) kept.add(id);
    for (const backup of backups) {
      if (kept.has(backup.id)) continue;
      if (!backup.isComplete && backup.id > newest) {
        if (await isAbandoned(target, backup, now)) ended.push(backup);
        else unfinished.add(backup.id);
      } else if (!mayDelete) continue;
      else if (backup.isComplete && (await isLocked(target, backupKeys.manifest(backup.id), now))) {
        locked.push(backup.id);
        kept.add(backup.id);
      } else ended.push(backup);
    }
  }
  const needed = new KeySet();
  for (const id of kept) await addNeeded(target, id, needed);
  const backups = await deleteBackups(target, ended);
  const isLater = ({ id }: FoundBackup): boolean => unfinished.has(id) || !all.some((each) => each.id === id);
  return { backups, locked, ...(await deleteBlobs(target, needed, { isLater, now })) };
}

async function isAbandoned(target: BlobStore, { id, keys, owner }: FoundBackup, now: Date): Promise<boolean> {
  const begun = await target.stat(owner === null ? (keys[0] as string) : backupKeys.start(id, owner));
  return begun !== null && now.getTime() - begun.modifiedAt.getTime() > abandonedMs;
}

async function addNeeded(target: BlobStore, id: string, needed: KeySet): Promise<void> {
  try {
    for await (const { key } of listBlobs(target, await openBackup(target, id))) needed.add(key);
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new BackupError(
      `Nothing was pruned, because backup ${id} must be kept and cannot be read: ${error.message}. Unless it can be repaired, delete its objects (backups/${id}/…; in a folder, the files backups~${id}~…).`,
      { cause: error },
    );
  }
}

async function isLocked(target: BlobStore, key: string, now: Date): Promise<boolean> {
  return isLockedAt(now, await target.stat(key));
}

function isLockedAt(now: Date, found: BlobStat | null): boolean {
  return found?.lockedUntil !== undefined && found.lockedUntil > now;
}

async function deleteBackups(target: BlobStore, backups: readonly FoundBackup[]): Promise<string[]> {
  for (const { id, keys, owner } of backups) {
    // First: a backup that is still running notices the deletion, because it writes its manifest, then checks its start.
    if (owner !== null) await target.delete(backupKeys.start(id, owner));
    // Second: a backup without some of its objects must not look complete.
    await target.delete(backupKeys.manifest(id));
    for (const key of keys) await target.delete(key);
  }
  return backups.map(({ id }) => id);
}

/** Stops if a backup may be running, or has begun since the prune, even if it is complete by now: it relies on all blobs that it finds. */
async function deleteBlobs(
  target: BlobStore,
  needed: KeySet,
  { isLater, now }: { readonly isLater: (backup: FoundBackup) => boolean; readonly now: Date },
): Promise<Pick<PrunedBackups, 'blobs' | 'unfinished'>> {
  let blobs = 0;
  for (let after: string | undefined; ; ) {
    const page = await target.list(backupKeys.blobs, after);
    const later = (await findBackups(target)).find(isLater);
    if (later) return { blobs, unfinished: later.id };
    for (const { key, modifiedAt } of page.blobs) {
      if (needed.has(key)) continue;
      const found = await target.stat(key);
      if (found === null || isLockedAt(now, found)) continue;
      // A backup has stored the blob again since the page was read. Stores may return whole seconds.
      if (found.modifiedAt.getTime() - modifiedAt.getTime() >= 1_000) continue;
      await target.delete(key);
      blobs++;
    }
    if (page.next === null) return { blobs, unfinished: null };
    after = page.next;
  }
}
