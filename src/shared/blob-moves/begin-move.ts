import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from '../platform/blobs/blob-stores.ts';
import { once } from '../platform/blobs/blob-streams.ts';
import {
  type BlobLocationRepository,
  type BlobLocations,
  createBlobLocationRepository,
} from '../platform/blobs/locations/blob-location-repository.ts';
import { type LocatedBlobStore, locationKey } from '../platform/blobs/locations/located-blob-store.ts';
import { formatLocation, parseLocation } from '../platform/blobs/locations/location-url.ts';
import { parseSecondStore } from '../platform/blobs/second/second-store.ts';
import type { Config } from '../platform/config/config.ts';
import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { OperatorError } from '../platform/errors/errors.ts';
import { findStoreOwner, ownerKey, shareOwnership } from '../state/blobs/store-ownership.ts';
import type { BlobRepository } from '../state/checkpoints/blob-repository.ts';

export class BlobMoveError extends OperatorError {
  override readonly name = 'BlobMoveError';
}

export interface MoveParts {
  readonly blobs: LocatedBlobStore;
  readonly blobRows: BlobRepository;
  readonly config: Pick<Config, 'blobs' | 'secondStore'>;
  readonly db: Database;
  readonly locations: BlobLocationRepository;
  /** Runs in the transaction of the change. */
  readonly record?: (db: Queryable) => Promise<void>;
}

export interface Move {
  readonly row: BlobLocations;
  readonly main: BlobStore;
  readonly other: BlobStore;
}

const sampled = 1_000;

/** Throws BlobMoveError without a move in this phase. */
export async function openMove({ blobs }: Pick<MoveParts, 'blobs'>, phase: 'copying' | 'switched'): Promise<Move> {
  const row = await blobs.read();
  if (row?.phase !== phase || row.otherId === null || row.otherUrl === null)
    throw new BlobMoveError(
      phase === 'copying'
        ? 'No blobs are being copied: begin with `holdfast blobs copy`'
        : 'Nothing to finish: run `holdfast blobs switch` first',
    );
  const main = await blobs.storeOf({ id: row.mainId, url: row.mainUrl });
  const other = await blobs.storeOf({ id: row.otherId, url: row.otherUrl });
  // Other tools also copy marks, and two names may lead to one store.
  await assertUnmarked(main, row.mainUrl, row.otherId);
  await assertUnmarked(other, row.otherUrl, row.mainId);
  return { row, main, other };
}

async function assertUnmarked(store: BlobStore, url: string, id: string): Promise<void> {
  if ((await store.stat(locationKey(id))) !== null)
    throw new BlobMoveError(
      `${url} has the mark of the other location: if they are two stores, delete its object ${locationKey(id)} and repeat`,
    );
}

/**
 * Begins or resumes a move: from now on, each process writes new blobs to both locations. Marks both, so that a process that finds another
 * store in one does not use it. Throws BlobMoveError, LocationError and BlobStoreUnavailableError.
 */
export async function beginMove(parts: MoveParts, to: string): Promise<void> {
  const { blobs, config, db, record } = parts;
  const row = await blobs.read();
  const target = parseLocation(to, config.blobs);
  const targetUrl = formatLocation(target);
  const mainUrl = row?.mainUrl ?? formatLocation(config.blobs);
  assertApart(parseLocation(mainUrl, config.blobs), target);
  assertNotSecond(config, targetUrl);
  if (row?.phase === 'copying' && row.otherUrl === targetUrl) {
    await record?.(db);
    return;
  }
  if (row && row.phase !== 'settled')
    throw new BlobMoveError(
      row.phase === 'copying'
        ? `The blobs are being moved to ${row.otherUrl}: finish this move, or give it up with \`holdfast blobs cancel\``
        : `The blobs were moved from ${row.otherUrl}: finish this move with \`holdfast blobs finish\``,
    );
  const main = await blobs.storeOf(row && { id: row.mainId, url: row.mainUrl });
  await assertIsUsed(parts, main);
  const store = await openBlobStore(target);
  try {
    await assertNotForeign(parts, store, targetUrl);
    const mainId = row?.mainId ?? (await markLocation(main, mainUrl));
    const otherId = await markLocation(store, targetUrl);
    if (mainId === otherId)
      throw new BlobMoveError(
        `${targetUrl} says that it is the location where the blobs are: delete its object places/${mainId}`,
      );
    await shareOwnership({ blobs: store, db });
    await db.inTransaction(async (tx) => {
      const locations = createBlobLocationRepository(tx);
      if (!(await locations.begin({ id: mainId, url: mainUrl }, { id: otherId, url: targetUrl })))
        throw new BlobMoveError('Another command has just begun a move: see `holdfast blobs status`');
      await record?.(tx);
    });
  } finally {
    await store.close();
  }
}

/** Writes a new id if the location has none. */
async function markLocation(store: BlobStore, url: string): Promise<string> {
  const { blobs } = await store.list(locationKey(''));
  const [first, ...others] = blobs.map(({ key }) => key.slice(locationKey('').length));
  if (others.length > 0) throw new BlobMoveError(`${url} has several objects places/…: a location may have only one`);
  if (first !== undefined) return first;
  const id = randomUUID();
  await store.put(locationKey(id), once(Buffer.from(`${url}\n`)));
  return id;
}

/** The settings of this command may name another store than the servers' settings. */
async function assertIsUsed({ blobRows }: MoveParts, main: BlobStore): Promise<void> {
  const rows = await blobRows.listAfter('', sampled);
  const needed = rows.filter(({ isReferenced }) => isReferenced).map(({ key }) => key);
  const absent = await main.findAbsent(needed);
  if (absent.length * 2 > needed.length)
    throw new BlobMoveError(
      `The blob store of the settings lacks ${absent.length} of ${needed.length} blobs: use the settings of the servers`,
    );
}

async function assertNotForeign({ blobRows, db }: MoveParts, store: BlobStore, url: string): Promise<void> {
  const installation = await blobRows.installationId();
  const own = `installations/${installation}`;
  const { blobs } = await store.list('installations/');
  if (blobs.some(({ key }) => key !== own))
    throw new BlobMoveError(`${url} has the blobs of another installation: choose an empty location`);
  if ((await findStoreOwner({ blobs: store, db })) === 'another copy')
    throw new BlobMoveError(
      `another copy of this database uses ${url}: choose an empty location, or, if none does, delete its object ${ownerKey(installation)}`,
    );
  if (blobs.length === 0) await store.put(own, once(Buffer.from(`${own}\n`)));
}

function assertApart(main: BlobStoreConfig, target: BlobStoreConfig): void {
  if (main.kind === 'files' && target.kind === 'files') {
    const [one, two] = [path.resolve(main.directory), path.resolve(target.directory)];
    if (one === two || one.startsWith(`${two}/`) || two.startsWith(`${one}/`))
      throw new BlobMoveError(`The blobs are in ${one}: choose a folder that is neither in it nor above it`);
  }
  if (formatLocation(main) === formatLocation(target)) throw new BlobMoveError('The blobs are there already');
}

/** The second store has the copies for the other site. */
export function assertNotSecond({ blobs, secondStore }: MoveParts['config'], url: string): void {
  if (secondStore === null) return;
  const placeOf = (text: string): string => text.replace(/&profile=[^&]*$/, '');
  if (placeOf(formatLocation(parseSecondStore(secondStore, blobs).location)) === placeOf(url))
    throw new BlobMoveError(`${url} is the second store of the settings`);
}
