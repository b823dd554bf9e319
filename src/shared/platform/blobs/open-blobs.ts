import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import { repeatAtStart } from '../db/postgres-start.ts';
import type { Logger } from '../logger/logger.ts';
import { untilBlobStore } from './blob-start.ts';
import { type BlobStore, BlobStoreUnavailableError } from './blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from './blob-stores.ts';
import { createBlobLocationRepository } from './locations/blob-location-repository.ts';
import { LocatedBlobStore } from './locations/located-blob-store.ts';
import { parseLocation } from './locations/location-url.ts';
import { createCopyQueueRepository } from './second/copy-queue-repository.ts';
import { MirroredBlobStore } from './second/mirrored-blob-store.ts';
import { openSecondStore, type SecondStore } from './second/second-store.ts';

const blobCheckMs = 5_000;

/**
 * Waits for the blob store at its present location. A running process survives an S3 outage, but one that cannot reach S3 at startup may be
 * misconfigured, unless it reaches the `second` store.
 */
export async function openBlobs({
  config,
  db,
  logger,
  second = null,
}: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
  readonly second?: SecondStore | null;
}): Promise<LocatedBlobStore> {
  const own = await openBlobStore(config.blobs);
  const located = new LocatedBlobStore({ locations: createBlobLocationRepository(db), own, config: config.blobs });
  try {
    const row = await repeatAtStart(() => located.read(), { waitMs: config.startWaitMs, logger });
    const open = () => located.storeOf(row && { id: row.mainId, url: row.mainUrl });
    const parts = { config, logger, second: second?.store ?? null };
    await untilAvailable(row ? parseLocation(row.mainUrl, config.blobs) : config.blobs, open, parts);
    if (row && (await open()) !== own)
      logger.warn(
        { location: row.mainUrl },
        'the blobs were moved, and the settings name another location: change them',
      );
  } catch (error) {
    await located.close();
    throw error;
  }
  return located;
}

/** The second store serves reads while the main one is away. Closing `both` closes `main`. */
export async function openBothBlobs(parts: {
  readonly config: Config;
  readonly db: Database;
  readonly logger: Logger;
}): Promise<{ readonly both: BlobStore; readonly main: LocatedBlobStore }> {
  const second = await openSecondStore(parts.config);
  try {
    const main = await openBlobs({ ...parts, second });
    if (second === null) return { both: main, main };
    const queue = createCopyQueueRepository(parts.db);
    return { both: new MirroredBlobStore({ main, second: second.store, queue }), main };
  } catch (error) {
    await second?.store.close();
    throw error;
  }
}

/** Does not ask the database, which may name another location. */
export async function openOwnBlobs(config: Config, logger: Logger): Promise<BlobStore> {
  const store = await openBlobStore(config.blobs);
  try {
    await untilAvailable(config.blobs, async () => store, { config, logger, second: null });
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function untilAvailable(
  location: BlobStoreConfig,
  open: () => Promise<BlobStore>,
  { config, logger, second }: { readonly config: Config; readonly logger: Logger; readonly second: BlobStore | null },
): Promise<void> {
  if (location.kind === 'files') {
    await open();
    return;
  }
  const attempt = async (): Promise<void> => {
    try {
      await (await open()).check(blobCheckMs);
    } catch (error) {
      if (second === null || !(error instanceof BlobStoreUnavailableError) || error.fault === 'misconfigured')
        throw error;
      await second.check(blobCheckMs).catch(() => {
        throw error;
      });
      logger.warn({ err: error }, 'the blob store is down: blobs are read from the second one');
    }
  };
  await untilBlobStore(location, attempt, { waitMs: config.startWaitMs, logger });
}
