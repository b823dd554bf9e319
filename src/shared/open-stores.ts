import type { BlobStore } from './platform/blobs/blob-store.ts';
import { createBlobLocationRepository } from './platform/blobs/locations/blob-location-repository.ts';
import { LocatedBlobStore } from './platform/blobs/locations/located-blob-store.ts';
import { MeteredBlobStore } from './platform/blobs/metered-blob-store.ts';
import { openBlobs } from './platform/blobs/open-blobs.ts';
import { createCopyQueueRepository } from './platform/blobs/second/copy-queue-repository.ts';
import { MirroredBlobStore } from './platform/blobs/second/mirrored-blob-store.ts';
import { openSecondStore } from './platform/blobs/second/second-store.ts';
import type { Config } from './platform/config/config.ts';
import type { Database } from './platform/db/database.ts';
import { repeatAtStart } from './platform/db/postgres-start.ts';
import type { Lifecycle } from './platform/lifecycle/lifecycle.ts';
import type { Logger } from './platform/logger/logger.ts';
import type { ReadOnlyMode } from './platform/read-only/read-only-mode.ts';
import type { SiteStore } from './platform/site/site-mark.ts';
import type { Metrics } from './platform/telemetry/metrics.ts';
import { assertConfiguredStore } from './state/blobs/store-ownership.ts';

interface Foundation {
  readonly config: Config;
  readonly db: Database;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly readOnly: ReadOnlyMode;
}

/** The process reads and writes `blobs`, to which all other stores belong. `own` replaces the configured store. `lifecycle` closes them. */
export async function openStores(
  { config, db, lifecycle, logger, metrics, readOnly }: Foundation,
  own: BlobStore | undefined,
) {
  const locations = createBlobLocationRepository(db);
  const second = await openSecondStore(config);
  const located = own
    ? new LocatedBlobStore({ locations, own, config: config.blobs })
    : await openBlobs({ config, db, logger, second });
  const mirror = second && !second.isReplicated ? { main: located, second: second.store } : null;
  const copyQueue = createCopyQueueRepository(db);
  const queue = {
    ...copyQueue,
    // Reads continue at a site that another site has replaced.
    addAll: async (keys: readonly string[]) => readOnly.isFenced || copyQueue.addAll(keys),
  };
  const written = mirror ? new MirroredBlobStore({ ...mirror, queue, isStrict: second?.isStrict === true }) : located;
  const blobs = new MeteredBlobStore(written, metrics, () => readOnly.assertNotFenced());
  if (second && !mirror) lifecycle.onClose('stores', 'second store', () => second.store.close());
  const sources = async () => [
    ...(await located.stores()),
    // A bucket that replicates itself gets blobs only from its replication.
    ...(second ? [{ store: second.store, isWritten: !second.isReplicated }] : []),
  ];
  const siteStores: SiteStore[] = [{ name: 'main', store: located }];
  if (second) siteStores.push({ name: 'second', store: second.store });
  lifecycle.onClose('stores', 'blobs', () => blobs.close());
  if (!own) {
    const wait = { waitMs: config.startWaitMs, logger };
    await repeatAtStart(() => assertConfiguredStore(config, { blobs: located, db }), wait);
  }
  return {
    blobs,
    mirror,
    sources,
    siteStores,
    /** For a blob that is wrong in a store. Without a second store, no task processes the queue. */
    repairLater: async (key: string) => mirror && queue.addPostponed(key),
  };
}
