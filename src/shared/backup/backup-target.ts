import path from 'node:path';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { openBlobStore } from '../platform/blobs/blob-stores.ts';
import type { Config } from '../platform/config/config.ts';
import { BackupError } from './manifest.ts';

/**
 * Opens the place of backups: a folder, or `s3://bucket/prefix`, with the endpoint, region and credentials of the blob store
 * (`?endpoint=URL` and `?region=NAME` replace them). Throws BackupError for another form, or for a place inside the blob store.
 */
export async function openTarget(place: string, config: Config): Promise<BlobStore> {
  if (!place.startsWith('s3://')) {
    if (/^[a-z0-9+.-]+:\/\//i.test(place)) throw new BackupError(`${place} is neither a folder nor s3://bucket/prefix`);
    const directory = path.resolve(place);
    if (config.blobs.kind === 'files' && isWithin(directory, path.resolve(config.blobs.directory)))
      throw new BackupError(`${place} is in the folder of the blob store: a backup belongs elsewhere`);
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
  });
}

function isWithin(directory: string, parent: string): boolean {
  const relative = path.relative(parent, directory);
  return !relative.startsWith('..') && !path.isAbsolute(relative);
}
