import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { BlobRepository } from './blob-repository.ts';

/** What a round has found so far. */
export interface ReconcileCounts {
  /** Objects and rows looked at. */
  readonly objects: number;
  readonly rows: number;
  /** Objects without a row that were given one, for the sweep to delete in its time. */
  readonly adopted: number;
  /** Objects without a row that were left alone: so many are no remains of uploads. */
  readonly held: number;
  /** Rows that the sweep would have overlooked. */
  readonly marked: number;
  /** Blobs that a state or a journal snapshot needs and that the store says it does not have. */
  readonly missing: number;
}

/** Where a round is; JSON. First all objects are compared with the rows, then all rows with the objects. */
export interface ReconcilePlace {
  readonly pass: 'objects' | 'rows' | 'done';
  /** Key after which the pass goes on; null at its beginning. */
  readonly after: string | null;
  /** How many more objects may be adopted in this round. */
  readonly mayAdopt: number;
  readonly counts: ReconcileCounts;
}

export interface ReconcileParts {
  readonly blobs: BlobStore;
  readonly blobRows: BlobRepository;
  readonly logger: Logger;
}

const checkpointPrefix = 'checkpoints/';
const markerPrefix = 'installations/';
const rowsPerPage = 1000;
/** A bucket in order has a few orphans for each fault. */
const adoptAtMost = 10_000;

/**
 * Begins a round. At most as many objects are adopted as blobs are in use, unless `adoptAll`: an older or empty database on a
 * bucket full of states must not have them deleted. Nothing is adopted while another installation has left its mark in the store.
 */
export async function beginReconcile(
  { blobs, blobRows, logger }: ReconcileParts,
  options: { adoptAll?: boolean } = {},
): Promise<ReconcilePlace> {
  const own = `${markerPrefix}${await blobRows.installationId()}`;
  if (!(await blobs.stat(own))) await blobs.put(own, markerOf(own));
  const others = (await blobs.list(markerPrefix)).blobs.map(({ key }) => key).filter((key) => key !== own);
  if (others.length > 0) {
    logger.error({ others }, 'another installation uses the same blob store: objects without a row are left alone');
  }
  const inUse = options.adoptAll ? Number.MAX_SAFE_INTEGER : await blobRows.countInUse(adoptAtMost);
  return {
    pass: 'objects',
    after: null,
    mayAdopt: others.length > 0 ? 0 : inUse,
    counts: { objects: 0, rows: 0, adopted: 0, held: 0, marked: 0, missing: 0 },
  };
}

/**
 * Compares store and rows from `place` to the end, page by page, at no more than `objectsPerSecond`; or until the signal fires.
 * `onPage` gets each place reached, and ends the round with false. Safe beside everything else, itself included. Returns
 * the last place; throws what store or database throw, and may then go on from the last place.
 */
export async function reconcile(
  parts: ReconcileParts,
  begun: ReconcilePlace,
  options: {
    objectsPerSecond: number;
    signal?: AbortSignal;
    onPage?: (place: ReconcilePlace) => Promise<boolean>;
  },
): Promise<ReconcilePlace> {
  let place = begun;
  while (place.pass !== 'done' && !options.signal?.aborted) {
    const startedAt = performance.now();
    const before = place.counts;
    place = place.pass === 'objects' ? await compareObjects(parts, place) : await compareRows(parts, place);
    if ((await options.onPage?.(place)) === false) break;
    const seen = place.counts.objects + place.counts.rows - before.objects - before.rows;
    const pauseMs = (seen / options.objectsPerSecond) * 1000 - (performance.now() - startedAt);
    if (place.pass !== 'done' && pauseMs > 0) {
      await sleep(pauseMs, undefined, options.signal ? { signal: options.signal } : {}).catch(() => {});
    }
  }
  return place;
}

/**
 * A row is there before its object, so whichever object was listed and has no row now has lost it: by a request that arrived
 * after the sweep, or with a database that was set back. It is not deleted here but given a row, which is swept like any
 * other and may be referred to until then.
 */
async function compareObjects(
  { blobs, blobRows, logger }: ReconcileParts,
  place: ReconcilePlace,
): Promise<ReconcilePlace> {
  const page = await blobs.list(checkpointPrefix, place.after ?? undefined);
  const unknown = await blobRows.listUnknown(page.blobs.map(({ key }) => key));
  const adopted = unknown.slice(0, place.mayAdopt);
  if (adopted.length > 0) {
    await blobRows.adopt(adopted);
    logger.warn({ count: adopted.length, keys: adopted.slice(0, 20) }, 'objects without a row: left to the sweep');
  }
  const held = unknown.length - adopted.length;
  if (held > 0) {
    logger.error({ count: held, keys: unknown.slice(-held).slice(0, 20) }, 'objects without a row: left alone');
  }
  const { counts } = place;
  return {
    pass: page.next === null ? 'rows' : 'objects',
    after: page.next,
    mayAdopt: place.mayAdopt - adopted.length,
    counts: {
      ...counts,
      objects: counts.objects + page.blobs.length,
      adopted: counts.adopted + adopted.length,
      held: counts.held + held,
    },
  };
}

async function compareRows(
  { blobs, blobRows, logger }: ReconcileParts,
  place: ReconcilePlace,
): Promise<ReconcilePlace> {
  const rows = await blobRows.listAfter(place.after ?? '', rowsPerPage);
  const marked = await blobRows.markMissed(rows.filter((row) => !row.isReferenced).map(({ key }) => key));
  const absent = await blobs.findAbsent(rows.filter((row) => row.isReferenced).map(({ key }) => key));
  // What was superseded and swept meanwhile is not missing.
  const missing = absent.length > 0 ? await blobRows.listReferenced(absent) : [];
  for (const key of missing)
    logger.error({ key }, 'blob missing: a stored state needs it and the store does not have it');
  const { counts } = place;
  const last = rows.at(-1)?.key ?? null;
  return {
    ...place,
    pass: rows.length < rowsPerPage ? 'done' : 'rows',
    after: last,
    counts: {
      ...counts,
      rows: counts.rows + rows.length,
      marked: counts.marked + marked,
      missing: counts.missing + missing.length,
    },
  };
}

async function* markerOf(key: string): AsyncGenerator<Buffer> {
  yield Buffer.from(`${key}\n`);
}
