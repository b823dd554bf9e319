import path from 'node:path';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { openBlobStore } from '../platform/blobs/blob-stores.ts';
import { parsePlace } from '../platform/blobs/places/place-url.ts';
import type { Config } from '../platform/config/config.ts';
import { BackupError } from './manifest.ts';

/**
 * Opens the place of backups: a folder, or `s3://bucket/prefix`, with the endpoint, region and credentials of the blob store
 * (`?endpoint=URL` and `?region=NAME` replace them). Throws PlaceUrlError for another form, and BackupError for a place inside the blob store.
 */
export async function openTarget(place: string, config: Config): Promise<BlobStore> {
  const target = parsePlace(place, config.blobs);
  const { blobs } = config;
  if (target.kind === 'files') {
    if (blobs.kind === 'files' && isWithin(target.directory, path.resolve(blobs.directory)))
      throw new BackupError(`${place} is in the folder of the blob store: a backup belongs elsewhere`);
  } else if (
    blobs.kind === 's3' &&
    blobs.bucket === target.bucket &&
    target.prefix === '' &&
    blobs.endpoint === target.endpoint
  ) {
    throw new BackupError(`${place} is the bucket of the blob store: add a prefix, or better use another bucket`);
  }
  return openBlobStore(target);
}

function isWithin(directory: string, parent: string): boolean {
  const relative = path.relative(parent, directory);
  return !relative.startsWith('..') && !path.isAbsolute(relative);
}
