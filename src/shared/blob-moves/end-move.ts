import { type BlobStore, BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { inParallel } from '../platform/blobs/in-parallel.ts';
import {
  type BlobLocations,
  createBlobLocationRepository,
} from '../platform/blobs/locations/blob-location-repository.ts';
import { locationKey } from '../platform/blobs/locations/located-blob-store.ts';
import { findStoreOwner, leaveStore, ownerKey } from '../state/blobs/store-ownership.ts';
import { hasRow } from '../state/checkpoints/blob-repository.ts';
import { assertNotSecond, BlobMoveError, type Move, type MoveParts, openMove } from './begin-move.ts';
import { digest, type PassOptions, stillNeeded } from './compare-locations.ts';

/**
 * Also completes an interrupted switch. If this database owns the location that it leaves, marks it as left: `finishMove` empties only a
 * marked one. Throws BlobMoveError if the new location is not verified or a backup is running.
 */
export async function switchMove({ blobs, db, record }: MoveParts): Promise<void> {
  const row = await blobs.read();
  if (row?.phase === 'switched') {
    await leaveSwitched({ blobs, db }, row);
    return;
  }
  const main = await blobs.storeOf(row && { id: row.mainId, url: row.mainUrl });
  // A failing location can be left, too. It is then not marked, so `finishMove` refuses to empty it.
  const owner = row?.phase === 'copying' ? await unlessAway(() => findStoreOwner({ blobs: main, db })) : null;
  await db.inTransaction(async (tx) => {
    const locations = createBlobLocationRepository(tx);
    if (await locations.lockBackups()) throw new BlobMoveError('A backup is being made: repeat this when it has ended');
    if (row?.phase !== 'copying')
      throw new BlobMoveError('No blobs are being copied: begin with `holdfast blobs copy`');
    if (!(await locations.switch()))
      throw new BlobMoveError('The other location is not verified: run `holdfast blobs verify` until it succeeds');
    await record?.(tx);
  });
  const newId = row?.otherId;
  if (owner === 'this database' && newId) await unlessAway(() => leaveStore({ blobs: main, db }, newId));
}

/** Does the rest of a switch after its commit. */
async function leaveSwitched({ blobs, db }: Pick<MoveParts, 'blobs' | 'db'>, row: BlobLocations): Promise<void> {
  const { otherId: id, otherUrl: url } = row;
  if (id === null || url === null) return;
  await unlessAway(async () => {
    const other = await blobs.storeOf({ id, url });
    if ((await findStoreOwner({ blobs: other, db })) === 'this database')
      await leaveStore({ blobs: other, db }, row.mainId);
  });
}

/** The copies stay there. */
export async function cancelMove(parts: MoveParts): Promise<void> {
  const { blobRows, blobs, db } = parts;
  const row = await blobs.read();
  if (!(await settle(parts, 'copying'))) throw new BlobMoveError('No blobs are being copied');
  const { otherId: id, otherUrl: url } = row ?? {};
  if (!id || !url) return;
  await unlessAway(async () => {
    const other = await blobs.storeOf({ id, url });
    // Blobs can then be copied there again.
    if ((await findStoreOwner({ blobs: other, db })) === 'this database')
      await other.delete(ownerKey(await blobRows.installationId()));
  });
}

function settle({ db, record }: MoveParts, phase: 'copying' | 'switched'): Promise<boolean> {
  return db.inTransaction(async (tx) => {
    const isSettled = await createBlobLocationRepository(tx).settle(phase);
    if (isSettled) await record?.(tx);
    return isSettled;
  });
}

async function unlessAway<T>(run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof BlobStoreUnavailableError) return null;
    throw error;
  }
}

export interface EmptyOptions {
  readonly empty?: boolean;
  /** Repairs the main location if the left one has the hash in the database. Returns whether the main one is right. */
  readonly repair?: (key: string) => Promise<boolean>;
}

/**
 * Forgets the location that was left. With `empty`, first deletes its blobs, except unneeded ones that the main location lacks. Can be
 * repeated after an interruption. Throws BlobMoveError, before any deletion, if the main location lacks a needed blob or has other bytes,
 * if another copy of the database may use the location, or if it is the second store.
 */
export async function finishMove(
  parts: MoveParts,
  { empty = false, repair = async () => false, ...options }: PassOptions & EmptyOptions = {},
): Promise<{ deleted: number; left: number }> {
  const { config, locations } = parts;
  const row = await locations.find();
  if (row?.phase !== 'switched') throw new BlobMoveError('Nothing to finish: run `holdfast blobs switch` first');
  // A location that is not emptied may be gone already.
  if (!empty) {
    await settle(parts, 'switched');
    return { deleted: 0, left: 0 };
  }
  const move = await openMove(parts, 'switched');
  assertNotSecond(config, move.row.otherUrl as string);
  await assertLeft(parts, move);
  await assertSame(parts, move, repair, options);
  // Recorded before the first blob is deleted.
  await parts.record?.(parts.db);
  const result = await emptyLocation(parts, move, options);
  await locations.settle('switched');
  await move.other.delete(ownerKey(await parts.blobRows.installationId()));
  await move.other.delete(locationKey(row.otherId as string));
  return result;
}

/** A location that this database did not own at the switch may belong to another copy of it. */
async function assertLeft({ blobRows, db }: MoveParts, { other, row }: Move): Promise<void> {
  const owner = await findStoreOwner({ blobs: other, db });
  if (owner === 'nobody' || owner === `left for ${row.mainId}`) return;
  throw new BlobMoveError(
    `Another copy of this database uses ${row.otherUrl}, or did at the switch: its blobs stay. If none does, delete its object ${ownerKey(await blobRows.installationId())} and repeat`,
  );
}

const shownKeys = 100;
/** Blobs deleted between two checks of the location's owner. */
const deletesAtOnce = 16;

/** Compares the blobs of the left location in both. */
async function assertSame(
  { blobRows }: MoveParts,
  { main, other }: Move,
  repair: (key: string) => Promise<boolean>,
  { signal }: PassOptions,
): Promise<void> {
  const faults: string[] = [];
  for await (const keys of listPages(other)) {
    const missing: string[] = [];
    // Other objects there describe the location.
    const compared = keys.filter((key) => hasRow(key) || key.startsWith('audit/'));
    await inParallel(compared, signal, async (key) => {
      const [here, there] = await Promise.all([digest(main, key), digest(other, key)]);
      if (here === null) missing.push(key);
      else if (there !== null && here !== there && !(await repair(key))) faults.push(`${key}: different`);
    });
    for (const key of await stillNeeded(blobRows, missing)) faults.push(`${key}: missing`);
  }
  if (faults.length === 0) return;
  const shown = faults.sort().slice(0, shownKeys);
  const more = faults.length > shown.length ? [`and ${faults.length - shown.length} more`] : [];
  throw new BlobMoveError(
    [`The new location differs from the old one; nothing was deleted (${faults.length}):`, ...shown, ...more].join(
      '\n',
    ),
  );
}

/** Keeps blobs that the main location lacks. */
async function emptyLocation(
  parts: MoveParts,
  move: Move,
  options: PassOptions,
): Promise<{ deleted: number; left: number }> {
  const { main, other } = move;
  let deleted = 0;
  let left = 0;
  for await (const page of listPages(other)) {
    const absent = new Set(await main.findAbsent(page));
    left += absent.size;
    const keys = page.filter((key) => !absent.has(key));
    for (let at = 0; at < keys.length; at += deletesAtOnce) {
      // While this process was frozen, a copy of the database may have been started or have taken over.
      await assertLeft(parts, move);
      await inParallel(keys.slice(at, at + deletesAtOnce), options.signal, async (key) => {
        await other.delete(key);
        deleted++;
        options.onProgress?.({ done: deleted, total: deleted });
      });
    }
  }
  return { deleted, left };
}

/** Omits the mark and the owner. */
async function* listPages(store: BlobStore): AsyncGenerator<readonly string[]> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: Awaited<ReturnType<BlobStore['list']>> = await store.list('', after);
    yield page.blobs
      .map(({ key }) => key)
      .filter((key) => !key.startsWith(locationKey('')) && !key.startsWith(ownerKey('')));
    after = page.next;
  }
}
