import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { inParallel } from '../platform/blobs/in-parallel.ts';
import { readBlob } from '../platform/blobs/locations/located-blob-store.ts';
import type { Decrypt } from './backup-encryption.ts';
import { BackupError, isOutageBeside } from './backup-error.ts';
import { type BlobCopy, type Manifest, type ManifestHead, readBlobList } from './manifest.ts';
import { isIntact, Meter, readSmall, type StoredObject } from './stored-bytes.ts';

/** Throws BackupError for a damaged list. */
export async function* listBlobs(
  target: BlobStore,
  { blobLists }: Pick<ManifestHead, 'blobLists'>,
): AsyncGenerator<BlobCopy> {
  for (const list of blobLists) {
    if (!(await isIntact(target, list))) throw new BackupError(`${list.key} is damaged`);
    yield* readBlobList(list.key, await readSmall(target, list.key));
  }
}

const readsAtOnce = 8;

/** Reads all objects of a backup. Returns a line for each damaged or missing object. Throws only for an outage. */
export async function findDamage(
  target: BlobStore,
  manifest: Manifest,
  onProgress: (done: number, total: number) => void,
): Promise<string[]> {
  const problems: string[] = [];
  const check = async (object: StoredObject, what: string): Promise<boolean> => {
    const reason = await isIntact(target, object).then(
      (intact) => (intact ? null : 'its bytes do not have the hash in the backup'),
      (error: unknown) => {
        if (isOutageBeside(error)) throw error;
        return (error as Error).message;
      },
    );
    if (reason !== null) problems.push(`${object.key} (${what}): ${reason}`);
    return reason === null;
  };
  const { blobLists, blobPrefix, blobs, tables } = manifest;
  const total = tables.length + blobLists.length + blobs.count;
  let done = 0;
  for (const { name, object } of tables) {
    await check(object, `table ${name}`);
    onProgress(++done, total);
  }
  const listed = { count: 0, bytes: 0 };
  const keys = new Set<string>();
  for (const list of blobLists) {
    const isReadable = await check(list, 'list of blobs');
    onProgress(++done, total);
    if (!isReadable) continue;
    const waiting = readBlobList(list.key, await readSmall(target, list.key));
    for (const { bytes, key } of waiting) {
      listed.count++;
      listed.bytes += bytes;
      if (keys.has(key) || !key.startsWith(blobPrefix)) problems.push(`${list.key}: ${key} does not belong there`);
      keys.add(key);
    }
    await inParallel(
      waiting,
      undefined,
      async (blob) => {
        await check(blob, 'blob');
        onProgress(++done, total);
      },
      readsAtOnce,
    );
  }
  if (problems.length === 0 && (listed.count !== blobs.count || listed.bytes !== blobs.bytes))
    problems.push(
      `The lists have ${listed.count} blobs of ${listed.bytes} bytes; the manifest says ${blobs.count} of ${blobs.bytes}`,
    );
  for (const key of manifest.missingBlobs)
    problems.push(`${key}: the blob store did not have it when the backup was made`);
  for (const key of manifest.wrongBlobs ?? [])
    problems.push(`${key}: no copy with its hash could be read when the backup was made`);
  return problems.sort();
}

export interface CopiedBlobs {
  readonly copied: number;
  /** Keys of blobs whose copies in the backup are damaged. The store's own blobs, which may differ, stay. */
  readonly unsure: readonly string[];
}

/**
 * Copies the blobs that the store lacks or has with other bytes. `decrypt` is null if the backup is not encrypted. Throws BackupError, and
 * stores nothing, for a damaged blob that the store lacks.
 */
export async function copyBlobs(
  target: BlobStore,
  blobs: BlobStore,
  manifest: Manifest,
  {
    onProgress,
    decrypt,
  }: { readonly onProgress: (done: number, total: number) => void; readonly decrypt: Decrypt | null },
): Promise<CopiedBlobs> {
  let copied = 0;
  const unsure: string[] = [];
  let done = 0;
  const read = (blob: BlobCopy) => checked(readBlob(target, blob.key), blob, decrypt);
  const isSame = async (key: string, blob: BlobCopy): Promise<boolean> => {
    const stored = await hashOf(readBlob(blobs, key)).catch((error: unknown) => {
      if (isOutageBeside(error)) throw error;
      return null;
    });
    return stored === (decrypt === null ? blob.sha256 : await hashOf(read(blob)));
  };
  const copy = async (blob: BlobCopy): Promise<void> => {
    const key = blob.key.slice(manifest.blobPrefix.length);
    const isPresent = (await blobs.stat(key))?.storedBytes === blob.size;
    try {
      if (!isPresent || !(await isSame(key, blob))) {
        await blobs.put(key, read(blob));
        copied++;
      }
    } catch (error) {
      if (!isPresent || isOutageBeside(error)) throw error;
      unsure.push(key);
    }
    onProgress(++done, manifest.blobs.count);
  };
  let batch: BlobCopy[] = [];
  for await (const blob of listBlobs(target, manifest)) {
    batch.push(blob);
    if (batch.length < readsAtOnce) continue;
    await Promise.all(batch.map(copy));
    batch = [];
  }
  await Promise.all(batch.map(copy));
  return { copied, unsure };
}

async function hashOf(body: AsyncIterable<Buffer>): Promise<string> {
  const meter = new Meter();
  for await (const _ of meter.pass(body));
  return meter.sha256;
}

/** Fails at the end of a body that differs from the backed up one, so that nothing is put. */
async function* checked(
  body: AsyncIterable<Buffer>,
  { bytes, key, sha256 }: BlobCopy,
  decrypt: Decrypt | null,
): AsyncGenerator<Buffer> {
  const meter = new Meter();
  const passed = meter.pass(body);
  try {
    yield* decrypt ? decrypt(passed) : passed;
  } catch (error) {
    throw error instanceof BackupError ? new BackupError(`${key}: ${error.message}`, { cause: error }) : error;
  }
  if (meter.bytes !== bytes || meter.sha256 !== sha256) throw new BackupError(`${key} is damaged`);
}
