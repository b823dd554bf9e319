import { findDamage } from '../../src/shared/backup/backup-content.ts';
import { BackupError } from '../../src/shared/backup/backup-error.ts';
import { findBackups, openBackup } from '../../src/shared/backup/backup-list.ts';
import { backupKeys, type Manifest, readManifest } from '../../src/shared/backup/manifest.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { flipBit, spread } from './damage.ts';

/** The newest backup is not encrypted. */
export async function openPlain(target: BlobStore): Promise<Manifest> {
  return readManifest(await openBackup(target, null), null);
}

/** What a verification finds before it restores. */
export async function damageOf(target: BlobStore, id: string | null = null): Promise<string[]> {
  try {
    return await findDamage(target, await readManifest(await openBackup(target, id), null), () => {});
  } catch (error) {
    if (error instanceof BackupError) return [error.message];
    throw error;
  }
}

/** Another backup, of the same installation. */
interface OtherBackup {
  readonly store: BlobStore;
  readonly manifest: Manifest;
}

/** Returns the changed bytes; null: the object goes, undefined: the change does not fit. */
type Change = (bytes: Buffer, key: string) => Promise<Buffer | null | undefined> | Buffer | null | undefined;

/**
 * Damages objects spread over the backup in each way, one at a time, and puts them back. Returns whether each damage was found and named.
 */
export async function damageEach(
  target: BlobStore,
  { id }: Manifest,
  { other, perKind }: { readonly other: OtherBackup; readonly perKind: number },
): Promise<{ kind: string; key: string; isNamed: boolean; problems: string[] }[]> {
  const keys = await keysOf(target, id);
  const changes: Record<string, Change> = {
    'a bit flipped': (bytes) => flipBit(bytes, Math.floor(bytes.length / 2), 3),
    'the first byte flipped': (bytes) => flipBit(bytes, 0, 0),
    'the last byte cut': (bytes) => bytes.subarray(0, -1),
    'cut in half': (bytes) => bytes.subarray(0, Math.floor(bytes.length / 2)),
    emptied: () => Buffer.alloc(0),
    missing: () => null,
    'a byte more': (bytes) => Buffer.concat([bytes, Buffer.from([10])]),
    'its halves reordered': (bytes) => {
      const half = Math.floor(bytes.length / 2);
      return Buffer.concat([bytes.subarray(half), bytes.subarray(0, half)]);
    },
    'exchanged for another object of the backup': async (bytes) => {
      for (const key of keys) {
        const found = await readSmall(target, key);
        if (!found.equals(bytes)) return found;
      }
      return undefined;
    },
    'taken from another backup': async (_, key) => {
      const targetKey = key.replace(id, other.manifest.id);
      return (await other.store.stat(targetKey)) ? readSmall(other.store, targetKey) : undefined;
    },
  };
  const outcomes: { kind: string; key: string; isNamed: boolean; problems: string[] }[] = [];
  for (const [kind, change] of Object.entries(changes)) {
    for (const at of new Set(spread(keys.length, Math.min(perKind, keys.length)))) {
      const key = keys[at] as string;
      const bytes = await readSmall(target, key);
      const changed = await change(bytes, key);
      // Rows that did not change have the same copy in each backup.
      if (changed === undefined || changed?.equals(bytes)) continue;
      if (changed === null) await target.delete(key);
      else await target.put(key, once(changed));
      const problems = await damageOf(target, id);
      await target.put(key, once(bytes));
      const name = key === backupKeys.manifest(id) ? `backup ${id}` : key;
      outcomes.push({ kind, key, isNamed: problems.some((each) => each.toLowerCase().includes(name)), problems });
    }
  }
  return outcomes;
}

/** The objects of the backup and all blobs, without marks, which contain nothing of it. */
async function keysOf(target: BlobStore, id: string): Promise<string[]> {
  const backup = (await findBackups(target)).find((each) => each.id === id);
  const marks = [backupKeys.start(id, backup?.owner ?? ''), backupKeys.verified(id)];
  const { blobs } = await target.list(backupKeys.blobs);
  const own = backup?.keys.filter((key) => !marks.includes(key)) ?? [];
  return [...own, ...blobs.map(({ key }) => key)].sort();
}
