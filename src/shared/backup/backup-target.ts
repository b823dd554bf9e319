import { existsSync } from 'node:fs';
import path from 'node:path';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { openBlobStore } from '../platform/blobs/blob-stores.ts';
import type { S3Options } from '../platform/blobs/s3-client.ts';
import type { Config } from '../platform/config/config.ts';
import { BackupError } from './backup-error.ts';

/**
 * Opens the place of backups: a folder, or `s3://bucket/prefix`, with the endpoint, region and credentials of the blob store
 * (`?endpoint=URL` and `?region=NAME` replace them). `?lock=governance:DAYS` or `compliance:DAYS` locks what is written. A folder that
 * `mustExist` is not created. Throws BackupError for another form, or for a place inside the blob store.
 */
export async function openTarget(
  place: string,
  config: Config,
  { mustExist = false }: { readonly mustExist?: boolean } = {},
): Promise<BlobStore> {
  if (!place.startsWith('s3://')) {
    if (/^[a-z0-9+.-]+:\/\//i.test(place)) throw new BackupError(`${place} is neither a folder nor s3://bucket/prefix`);
    const directory = path.resolve(place);
    if (config.blobs.kind === 'files' && isWithin(directory, path.resolve(config.blobs.directory)))
      throw new BackupError(`${place} is in the folder of the blob store: a backup belongs elsewhere`);
    if (mustExist && !existsSync(path.join(directory, 'blobs')))
      throw new BackupError(`There are no backups in ${place}`);
    return openBlobStore({ kind: 'files', directory });
  }
  const url = new URL(place);
  if (url.hostname === '') throw new BackupError(`${place} names no bucket: s3://bucket/prefix`);
  const { blobs } = config;
  const own = blobs.kind === 's3' ? blobs : null;
  const prefix = url.pathname.replace(/^\/|\/$/g, '');
  const endpoint = url.searchParams.get('endpoint') ?? own?.endpoint ?? null;
  if (own?.bucket === url.hostname && prefix === '' && endpoint === own.endpoint)
    throw new BackupError(`${place} is the bucket of the blob store: add a prefix, or better use another bucket`);
  return openBlobStore({
    ...{ kind: 's3', bucket: url.hostname, endpoint, prefix: prefix === '' ? '' : `${prefix}/` },
    region: url.searchParams.get('region') ?? own?.region ?? 'us-east-1',
    forcePathStyle: own?.forcePathStyle ?? endpoint !== null,
    requestTimeoutMs: own?.requestTimeoutMs ?? 30_000,
    lock: readLock(place, url.searchParams.get('lock')),
  });
}

function readLock(place: string, text: string | null): NonNullable<S3Options['lock']> | null {
  if (text === null) return null;
  const [, mode, days] = /^(governance|compliance):([1-9]\d{0,4})$/i.exec(text) ?? [];
  if (mode === undefined) throw new BackupError(`${place}: lock must be governance:DAYS or compliance:DAYS`);
  return { mode: mode.toUpperCase() as 'GOVERNANCE' | 'COMPLIANCE', days: Number(days) };
}

function isWithin(directory: string, parent: string): boolean {
  const relative = path.relative(parent, directory);
  return !relative.startsWith('..') && !path.isAbsolute(relative);
}
