import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import type { Logger } from '../logger/logger.ts';
import { untilBlobStore } from './blob-start.ts';
import type { BlobStore } from './blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from './blob-stores.ts';
import { createBlobPlaceRepository } from './places/blob-place-repository.ts';
import { parsePlace } from './places/place-url.ts';
import { PlacedBlobStore } from './places/placed-blob-store.ts';

const blobCheckMs = 5_000;

/**
 * Opens the blob store, that of the settings or the one to which it was moved, and waits until it is available. A running process survives
 * an S3 outage, but one that cannot reach S3 at startup may be misconfigured.
 */
export async function openBlobs({
  config,
  db,
  logger,
}: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
}): Promise<PlacedBlobStore> {
  const own = await openBlobStore(config.blobs);
  const placed = new PlacedBlobStore({ places: createBlobPlaceRepository(db), own, config: config.blobs });
  try {
    const row = await placed.read();
    const open = () => placed.storeOf(row && { id: row.mainId, url: row.mainUrl });
    await untilAvailable(row ? parsePlace(row.mainUrl, config.blobs) : config.blobs, open, { config, logger });
    if (row && (await open()) !== own)
      logger.warn({ place: row.mainUrl }, 'the blobs were moved, and the settings name another place: change them');
  } catch (error) {
    await placed.close();
    throw error;
  }
  return placed;
}

/** Opens the blob store of the settings and waits until it is available, without a database that may say otherwise. */
export async function openOwnBlobs(config: Config, logger: Logger): Promise<BlobStore> {
  const store = await openBlobStore(config.blobs);
  try {
    await untilAvailable(config.blobs, async () => store, { config, logger });
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function untilAvailable(
  place: BlobStoreConfig,
  open: () => Promise<BlobStore>,
  { config, logger }: { readonly config: Config; readonly logger: Logger },
): Promise<void> {
  if (place.kind === 'files') await open();
  else
    await untilBlobStore(place, async () => (await open()).check(blobCheckMs), { waitMs: config.startWaitMs, logger });
}
