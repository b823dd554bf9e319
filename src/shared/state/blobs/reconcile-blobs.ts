import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import type { BlobStore } from '../../platform/blobs/blob-store.ts';
import { ListingEndedError } from '../../platform/blobs/listing-cursor.ts';
import { bytesOf } from '../../platform/bytes/byte-source.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import { Nullable } from '../../platform/schema/standard-schema.ts';
import type { BlobRepository } from '../checkpoints/blob-repository.ts';

export const ReconcileCounts = Type.Object({
  objects: Type.Integer(),
  rows: Type.Integer(),
  /** Objects without a row that got one, so that the sweep deletes them. */
  adopted: Type.Integer(),
  /** Objects without a row that were left alone, because they are too many to be leftovers of uploads. */
  held: Type.Integer(),
  /** Rows that the sweep would have missed. */
  marked: Type.Integer(),
  /** Blobs that a state or a journal snapshot needs but the store lacks. */
  missing: Type.Integer(),
});
export type ReconcileCounts = Readonly<Static<typeof ReconcileCounts>>;

/** A round first compares all objects with the rows, then all rows with the objects. */
export const ReconcilePosition = Type.Object({
  pass: Type.Union([Type.Literal('objects'), Type.Literal('rows'), Type.Literal('done')]),
  /** The current pass continues after this key; null at its start. */
  after: Nullable(Type.String()),
  /** The number of objects that this round may still adopt. */
  mayAdopt: Type.Integer(),
  counts: ReconcileCounts,
});
export type ReconcilePosition = Readonly<Static<typeof ReconcilePosition>>;

export interface ReconcileParts {
  readonly blobs: BlobStore;
  readonly blobRows: BlobRepository;
  readonly logger: Logger;
  /** Only compares: adopts and marks nothing. */
  readonly isDry?: boolean;
  /** `isChanged`: the objects were adopted or the rows marked. */
  readonly onFound?: (kind: 'unknown' | 'unswept' | 'missing', keys: readonly string[], isChanged: boolean) => void;
}

const checkpointPrefix = 'checkpoints/';
const markerPrefix = 'installations/';
/** The object names the installation that uses the store. */
export const markerKey = (installation: string): string => `${markerPrefix}${installation}`;
const rowsPerPage = 1000;
/** Limit for a round. A healthy bucket has only a few orphans per fault. */
const maxAdopted = 10_000;
const noCounts: ReconcileCounts = { objects: 0, rows: 0, adopted: 0, held: 0, marked: 0, missing: 0 };

/**
 * Unless `adoptAll` is set, adopts at most as many objects as there are blobs in use: an older or empty database must not cause the
 * deletion of a bucket full of states. Adopts nothing if the store has the marker of another installation.
 */
export async function beginReconcile(
  { blobs, blobRows, isDry = false, logger }: ReconcileParts,
  options: { adoptAll?: boolean } = {},
): Promise<ReconcilePosition> {
  const own = markerKey(await blobRows.installationId());
  if (!isDry && !(await blobs.stat(own))) await blobs.put(own, bytesOf(Buffer.from(`${own}\n`))());
  const others = await findOtherInstallations({ blobs, blobRows });
  if (others.length > 0) {
    logger.error({ others }, 'another installation uses the same blob store: objects without a row are left alone');
  }
  const inUse = options.adoptAll ? Number.MAX_SAFE_INTEGER : await blobRows.countInUse(maxAdopted);
  return { pass: 'objects', after: null, mayAdopt: others.length > 0 || isDry ? 0 : inUse, counts: noCounts };
}

/** Counts the blobs that a state needs and the store lacks, and logs their keys. Changes nothing. */
export async function countMissingBlobs(parts: Pick<ReconcileParts, 'blobs' | 'blobRows' | 'logger'>): Promise<number> {
  const rows = { pass: 'rows', after: null, mayAdopt: 0, counts: noCounts } as const;
  const { counts } = await reconcile({ ...parts, isDry: true }, rows, { objectsPerSecond: Number.POSITIVE_INFINITY });
  return counts.missing;
}

export async function findOtherInstallations({
  blobs,
  blobRows,
}: Pick<ReconcileParts, 'blobs' | 'blobRows'>): Promise<string[]> {
  const own = markerKey(await blobRows.installationId());
  return (await blobs.list(markerPrefix)).blobs.map(({ key }) => key).filter((key) => key !== own);
}

/**
 * `onPage` can return false to end the round. Safe to run concurrently with anything, including itself. Returns the last position. Throws
 * errors of the store and the database; the round can then resume from the last position.
 */
export async function reconcile(
  parts: ReconcileParts,
  start: ReconcilePosition,
  options: {
    objectsPerSecond: number;
    signal?: AbortSignal;
    onPage?: (position: ReconcilePosition) => Promise<boolean>;
  },
): Promise<ReconcilePosition> {
  let position = start;
  while (position.pass !== 'done' && !options.signal?.aborted) {
    const startedAt = performance.now();
    const before = position.counts;
    position = position.pass === 'objects' ? await compareObjects(parts, position) : await compareRows(parts, position);
    if ((await options.onPage?.(position)) === false) break;
    const compared = position.counts.objects + position.counts.rows - before.objects - before.rows;
    const pauseMs = (compared / options.objectsPerSecond) * 1000 - (performance.now() - startedAt);
    if (position.pass !== 'done' && pauseMs > 0) {
      await sleep(pauseMs, undefined, options.signal ? { signal: options.signal } : {}).catch(() => {});
    }
  }
  return position;
}

/**
 * A row is created before its object, so a listed object without a row has lost its row: its upload finished after the sweep, or an older
 * database was restored. The object is not deleted here but gets a row, which is swept like any other and can be referenced until then.
 */
async function compareObjects(
  { blobs, blobRows, logger, onFound = () => {} }: ReconcileParts,
  position: ReconcilePosition,
): Promise<ReconcilePosition> {
  const page = await blobs.list(checkpointPrefix, position.after ?? undefined).catch((error: unknown) => {
    if (error instanceof ListingEndedError) return null;
    throw error;
  });
  if (page === null) return { ...position, after: null, counts: { ...position.counts, objects: 0, held: 0 } };
  const unknown = await blobRows.listUnknown(page.blobs.map(({ key }) => key));
  const adopted = unknown.slice(0, position.mayAdopt);
  if (adopted.length > 0) {
    await blobRows.adopt(adopted);
    logger.warn({ count: adopted.length, keys: adopted.slice(0, 20) }, 'objects without a row: left to the sweep');
  }
  const held = unknown.length - adopted.length;
  onFound('unknown', adopted, true);
  onFound('unknown', unknown.slice(adopted.length), false);
  if (held > 0) {
    logger.error({ count: held, keys: unknown.slice(-held).slice(0, 20) }, 'objects without a row: left alone');
  }
  const { counts } = position;
  return {
    pass: page.next === null ? 'rows' : 'objects',
    after: page.next,
    mayAdopt: position.mayAdopt - adopted.length,
    counts: {
      ...counts,
      objects: counts.objects + page.blobs.length,
      adopted: counts.adopted + adopted.length,
      held: counts.held + held,
    },
  };
}

async function compareRows(
  { blobs, blobRows, isDry = false, logger, onFound }: ReconcileParts,
  position: ReconcilePosition,
): Promise<ReconcilePosition> {
  const rows = await blobRows.listAfter(position.after ?? '', rowsPerPage);
  const unreferenced = rows.filter((row) => !row.isReferenced).map(({ key }) => key);
  onFound?.('unswept', await blobRows.listMissed(unreferenced), !isDry);
  const marked = isDry ? 0 : await blobRows.markMissed(unreferenced);
  const absent = await blobs.findAbsent(rows.filter((row) => row.isReferenced).map(({ key }) => key));
  // A blob that was superseded and swept in the meantime is not missing.
  const missing = absent.length > 0 ? await blobRows.listReferenced(absent) : [];
  onFound?.('missing', missing, false);
  for (const key of missing)
    logger.error({ key }, 'blob missing: a stored state needs it and the store does not have it');
  const { counts } = position;
  const last = rows.at(-1)?.key ?? null;
  return {
    ...position,
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
