import { openBlobStore } from '../../shared/platform/blobs/blob-stores.ts';
import { createBlobLocationRepository } from '../../shared/platform/blobs/locations/blob-location-repository.ts';
import { LocatedBlobStore } from '../../shared/platform/blobs/locations/located-blob-store.ts';
import { createCopyQueueRepository } from '../../shared/platform/blobs/second/copy-queue-repository.ts';
import { openSecondStore, type SecondStore } from '../../shared/platform/blobs/second/second-store.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';
import { isForeign, readMarks, type SiteStore } from '../../shared/platform/site/site-mark.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';

export type SiteStatus = Awaited<ReturnType<typeof readSiteStatus>>;

/**
 * The stores that have the mark of the site, without waiting for unreachable ones. Leaves folders unchanged, unless `isPrepared` is false.
 */
export async function withSiteStores<T>(
  db: Database,
  config: Config,
  work: (stores: readonly SiteStore[], second: SecondStore | null) => Promise<T>,
  { isPrepared = true }: { readonly isPrepared?: boolean } = {},
): Promise<T> {
  const own = await openBlobStore(config.blobs, { isPrepared });
  const locations = createBlobLocationRepository(db);
  const main = new LocatedBlobStore({ locations, own, isPrepared, config: config.blobs });
  try {
    const second = await openSecondStore(config, { isPrepared });
    try {
      const stores: SiteStore[] = [{ name: 'main', store: main }];
      if (second) stores.push({ name: 'second', store: second.store });
      return await work(stores, second);
    } finally {
      await second?.store.close();
    }
  } finally {
    await main.close();
  }
}

/** Reads database and stores; works on a standby, too. */
export async function readSiteStatus(db: Database, config: Config) {
  const sites = createSiteRepository(db);
  const own = await sites.read();
  const { isReceiving, isStandby, replaySeconds } = await sites.postgres();
  const standbys = await sites.listStandbys();
  const { mode, updates } = await createReadOnlyRepository(db).find();
  const lag = await createCopyQueueRepository(db).readLag();
  return withSiteStores(db, config, async (opened, second) => {
    const marks = await readMarks(opened, own.installation);
    const stores = marks.map(({ error, mark, name }) => ({
      name,
      state: error !== null ? 'away' : mark === null ? 'unmarked' : isForeign(own, mark) ? 'other site' : 'this site',
      term: mark?.term ?? null,
    }));
    const isReplaced = own.fencedSince !== null || stores.some(({ state }) => state === 'other site');
    return {
      role: isStandby ? 'standby' : isReplaced ? 'replaced' : 'primary',
      term: own.term,
      fencedSince: own.fencedSince,
      readOnly: mode,
      runningUpdates: updates,
      postgres: { isReceiving, replaySeconds, standbys: [...standbys] },
      stores,
      blobs: { copies: second === null ? 'none' : second.isReplicated ? 'by the bucket' : 'by the servers', ...lag },
    } as const;
  });
}

function connectionOf(isReceiving: boolean | null): string {
  if (isReceiving === null) return 'unknown whether it follows its primary';
  return isReceiving ? 'follows its primary' : 'is not connected to its primary';
}

export function describeSite(status: SiteStatus): string[] {
  const { blobs, postgres, readOnly, role, runningUpdates, stores, term } = status;
  const roles = {
    standby: 'a standby',
    replaced: 'replaced by another one: it refuses writes',
    primary: 'the one that writes',
  };
  const behind = `${blobs.blobs} blobs (${(blobs.bytes / 2 ** 20).toFixed(1)} MiB) wait, the oldest for ${blobs.seconds} s`;
  return [
    `Site: ${roles[role]}, term ${term}.`,
    ...(readOnly ? [`Read-only since ${readOnly.since.toISOString()}: ${readOnly.reason}.`] : []),
    `Updates running: ${runningUpdates}.`,
    ...(role === 'standby'
      ? [
          `Postgres: ${connectionOf(postgres.isReceiving)}, ${postgres.replaySeconds === null ? 'an unknown time' : `${Math.ceil(postgres.replaySeconds)} s`} behind.`,
        ]
      : postgres.standbys.length === 0
        ? ['Postgres: no standby is connected.']
        : postgres.standbys.map(
            ({ lagBytes, name, state, sync }) =>
              `Postgres: standby ${name} (${state ?? 'unknown'}, ${sync ?? 'unknown'}), ${lagBytes ?? 'unknown'} bytes behind.`,
          )),
    ...stores.map(
      (store) => `Mark in the ${store.name} store: ${store.state}${store.term ? `, term ${store.term}` : ''}.`,
    ),
    {
      none: 'Copies of blobs: no second store is set.',
      'by the bucket': 'Copies of blobs: the bucket replicates itself; its own metrics show how far it is behind.',
      'by the servers': `Copies of blobs: ${behind}.`,
    }[blobs.copies],
  ];
}
