import { existsSync } from 'node:fs';
import path from 'node:path';
import { type BlobStore, BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { openBlobStore } from '../platform/blobs/blob-stores.ts';
import { parseLocation } from '../platform/blobs/locations/location-url.ts';
import type { S3Options } from '../platform/blobs/s3-client.ts';
import type { Config } from '../platform/config/config.ts';
import { BackupError } from './backup-error.ts';
import { backupKeys } from './manifest.ts';

/** Longer than a backup, and thus each of its uploads, may take. */
const leftoverAgeMs = 48 * 3600 * 1000;

/**
 * Opens a location in the form of `parseLocation`. `?lock=governance:DAYS` or `compliance:DAYS` locks the objects written to a bucket;
 * `lockDays` replaces the days. A folder that `mustExist` is not created.
 */
export async function openTarget(
  location: string,
  config: Config,
  { lockDays, mustExist = false }: { readonly lockDays?: number; readonly mustExist?: boolean } = {},
): Promise<BlobStore> {
  const target = parseLocation(location, config.blobs);
  const { blobs } = config;
  if (target.kind === 'files') {
    if (blobs.kind === 'files' && isWithin(target.directory, path.resolve(blobs.directory)))
      throw new BackupError(`${location} is in the folder of the blob store: a backup belongs elsewhere`);
    if (mustExist && !existsSync(path.join(target.directory, 'blobs')))
      throw new BackupError(`There are no backups in ${location}`);
    return openBlobStore(target);
  }
  const isOwn = blobs.kind === 's3' && blobs.bucket === target.bucket && blobs.endpoint === target.endpoint;
  if (isOwn && target.prefix === '')
    throw new BackupError(`${location} is the bucket of the blob store: add a prefix, or better use another bucket`);
  const lock = readLock(location, new URL(location).searchParams.get('lock'));
  return openBlobStore({ ...target, lock: lock && { ...lock, days: lockDays ?? lock.days } });
}

export async function sweepUploads(target: BlobStore): Promise<void> {
  try {
    await target.sweepUnfinished(leftoverAgeMs, [backupKeys.root, backupKeys.blobs]);
  } catch (error) {
    // Some stores do not list them; a lifecycle rule may remove them. If the store is away, the backup itself fails.
    if (!(error instanceof BlobStoreUnavailableError)) throw error;
  }
}

function readLock(location: string, text: string | null): NonNullable<S3Options['lock']> | null {
  if (text === null) return null;
  const [, mode, days] = /^(governance|compliance):([1-9]\d{0,4})$/i.exec(text) ?? [];
  if (mode === undefined) throw new BackupError(`${location}: lock must be governance:DAYS or compliance:DAYS`);
  return { mode: mode.toUpperCase() as 'GOVERNANCE' | 'COMPLIANCE', days: Number(days) };
}

function isWithin(directory: string, parent: string): boolean {
  const relative = path.relative(parent, directory);
  return !relative.startsWith('..') && !path.isAbsolute(relative);
}
