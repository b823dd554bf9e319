import { Meter } from '../backup/stored-bytes.ts';
import { BlobNotFoundError, type BlobStore } from '../platform/blobs/blob-store.ts';
import { inParallel } from '../platform/blobs/in-parallel.ts';
import { readBlob } from '../platform/blobs/locations/located-blob-store.ts';
import type { BlobRepository } from '../state/checkpoints/blob-repository.ts';
import { BlobMoveError, type Move, type MoveParts } from './begin-move.ts';

export interface PassProgress {
  readonly done: number;
  readonly total: number;
}

export interface PassOptions {
  readonly onProgress?: (progress: PassProgress) => void;
  /** Checked between blobs. */
  readonly signal?: AbortSignal;
}

export interface CopyOptions {
  /** Also compares blobs that are in both locations. */
  readonly again?: boolean;
  /** Replaces a copy without the hash of its row. Returns false if there is no hash; the main location is then right. */
  readonly repair?: (key: string) => Promise<boolean>;
}

export interface CopyResult {
  readonly blobs: number;
  readonly copied: number;
  readonly bytes: number;
}

export interface BlobFault {
  readonly key: string;
  readonly fault: 'missing' | 'different';
}

export interface VerifyResult {
  readonly compared: number;
  readonly faults: readonly BlobFault[];
  /** A state needs these blobs, but they were lost before the move. */
  readonly lost: readonly string[];
}

interface PassBlob {
  readonly key: string;
  readonly isNeeded: boolean;
}

const pageSize = 1_000;
/** Blobs of the audit log, and the marks of installations, have no rows. */
const rowlessPrefixes = ['audit/', 'installations/'];

/**
 * Copies the blobs that the other location lacks; `again` also compares the others and replaces wrong ones. Each copy is read back and
 * compared. Concurrent writes go to both locations. Can be repeated after an interruption.
 */
export async function copyBlobs(
  parts: MoveParts,
  move: Move,
  { again = false, repair = async () => false, ...options }: PassOptions & CopyOptions = {},
): Promise<CopyResult> {
  const { main, other } = move;
  let copied = 0;
  let bytes = 0;
  const blobs = await overAllBlobs(parts, main, options, async (page, each) => {
    const absent = new Set(await other.findAbsent(page.map(({ key }) => key)));
    await each(async ({ key }) => {
      if (!absent.has(key)) {
        if (!again || (await areSame(main, other, key))) return;
        if (await repair(key)) return;
      }
      const copiedBytes = await copyBlob(main, other, key);
      if (copiedBytes === null) return;
      copied++;
      bytes += copiedBytes;
    });
  });
  return { blobs, copied, bytes };
}

/** A result without faults permits the switch, unless a later upload to the other location fails. */
export async function verifyBlobs(parts: MoveParts, move: Move, options: PassOptions = {}): Promise<VerifyResult> {
  const { blobRows, locations } = parts;
  const { main, other, row } = move;
  await locations.clearVerified();
  const faults: BlobFault[] = [];
  const lost: string[] = [];
  const compared = await overAllBlobs(parts, main, options, async (_, each) => {
    const missing: string[] = [];
    await each(async ({ isNeeded, key }) => {
      const [here, there] = await Promise.all([digest(main, key), digest(other, key)]);
      if (there === null ? isNeeded : here !== null && here !== there) {
        if (there !== null) faults.push({ key, fault: 'different' });
        else missing.push(key);
      }
    });
    // A blob that was deleted meanwhile is no fault.
    for (const key of await stillNeeded(blobRows, missing)) {
      if ((await other.stat(key)) !== null) continue;
      if ((await main.stat(key)) === null) lost.push(key);
      else faults.push({ key, fault: 'missing' });
    }
  });
  if (faults.length === 0 && !(await locations.noteVerified(row)))
    throw new BlobMoveError(
      'A blob written during the verification is missing from the other location: run `holdfast blobs copy` again',
    );
  return { compared, faults: faults.sort((one, two) => (one.key < two.key ? -1 : 1)), lost: lost.sort() };
}

/** `each` runs its function on the blobs of the page, some at a time. Returns the number of blobs. */
async function overAllBlobs(
  { blobRows }: MoveParts,
  main: BlobStore,
  { onProgress = () => {}, signal }: PassOptions,
  compare: (
    page: readonly PassBlob[],
    each: (work: (blob: PassBlob) => Promise<void>) => Promise<void>,
  ) => Promise<void>,
): Promise<number> {
  const total = await blobRows.count();
  let done = 0;
  const comparePage = (page: readonly PassBlob[]): Promise<void> =>
    compare(page, (work) =>
      inParallel(page, signal, async (blob) => {
        await work(blob);
        onProgress({ done: ++done, total: Math.max(total, done) });
      }),
    );
  for (const prefix of rowlessPrefixes) {
    for (let after: string | null | undefined; after !== null; ) {
      const page: Awaited<ReturnType<BlobStore['list']>> = await main.list(prefix, after);
      await comparePage(page.blobs.map(({ key }) => ({ key, isNeeded: true })));
      after = page.next;
    }
  }
  for (let after = ''; ; ) {
    const rows = await blobRows.listAfter(after, pageSize);
    await comparePage(rows.map(({ isReferenced, key }) => ({ key, isNeeded: isReferenced })));
    if (rows.length < pageSize) break;
    after = rows.at(-1)?.key ?? '';
  }
  onProgress({ done, total: done });
  return done;
}

/** Reads the copy back. Returns its size; null if the blob was deleted meanwhile. */
async function copyBlob(from: BlobStore, to: BlobStore, key: string): Promise<number | null> {
  const meter = new Meter();
  try {
    await to.put(key, meter.pass(readBlob(from, key)));
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
  const copy = await digest(to, key);
  if (copy !== null && copy !== meter.sha256)
    throw new BlobMoveError(
      `The copy of ${key} has another SHA-256 when read back: the location does not store bytes correctly`,
    );
  return meter.bytes;
}

async function areSame(one: BlobStore, two: BlobStore, key: string): Promise<boolean> {
  const [here, there] = await Promise.all([digest(one, key), digest(two, key)]);
  return here === null || here === there;
}

export async function digest(store: BlobStore, key: string): Promise<string | null> {
  const meter = new Meter();
  try {
    for await (const _ of meter.pass(await store.open(key)));
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
  return meter.sha256;
}

/** Keeps the keys that a state or the audit log needs. */
export async function stillNeeded(blobRows: BlobRepository, keys: readonly string[]): Promise<readonly string[]> {
  if (keys.length === 0) return keys;
  const rowless = keys.filter((key) => rowlessPrefixes.some((prefix) => key.startsWith(prefix)));
  return [...rowless, ...(await blobRows.listReferenced(keys))];
}
