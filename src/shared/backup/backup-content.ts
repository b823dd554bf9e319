import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { BackupError, type Manifest, places, readBlobList, type StoredObject } from './manifest.ts';
import { isIntact, Meter, readSmall } from './stored-bytes.ts';

/** The blobs of a backup; `key` is the key in the blob store. Throws BackupError for a list that is damaged. */
export async function* listBlobs(target: BlobStore, { blobLists }: Manifest): AsyncGenerator<StoredObject> {
  for (const list of blobLists) {
    if (!(await isIntact(target, list))) throw new BackupError(`${list.key} is damaged`);
    yield* readBlobList(list.key, await readSmall(target, list.key));
  }
}

const readsAtOnce = 8;

/** Reads all objects of a backup. Returns a line for each that is damaged or missing. */
export async function findDamage(
  target: BlobStore,
  manifest: Manifest,
  onProgress: (done: number, total: number) => void,
): Promise<string[]> {
  const problems: string[] = [];
  const check = async (object: StoredObject, what: string): Promise<boolean> => {
    const reason = await isIntact(target, object).then(
      (intact) => (intact ? null : 'its bytes do not have the hash in the backup'),
      (error: unknown) => (error as Error).message,
    );
    if (reason !== null) problems.push(`${object.key} (${what}): ${reason}`);
    return reason === null;
  };
  const { blobLists, blobs, tables } = manifest;
  const total = tables.length + blobLists.length + blobs.count;
  let done = 0;
  for (const { name, object } of tables) {
    await check(object, `table ${name}`);
    onProgress(++done, total);
  }
  let listed = 0;
  for (const list of blobLists) {
    const isReadable = await check(list, 'list of blobs');
    onProgress(++done, total);
    if (!isReadable) continue;
    const waiting = readBlobList(list.key, await readSmall(target, list.key));
    listed += waiting.length;
    const checkNext = async (): Promise<void> => {
      for (let blob = waiting.pop(); blob; blob = waiting.pop()) {
        await check({ ...blob, key: places.blob(blob.key) }, 'blob');
        onProgress(++done, total);
      }
    };
    await Promise.all(Array.from({ length: readsAtOnce }, checkNext));
  }
  if (problems.length === 0 && listed !== blobs.count)
    problems.push(`The lists have ${listed} blobs; the manifest says ${blobs.count}`);
  for (const key of manifest.missingBlobs)
    problems.push(`${key}: the blob store did not have it when the backup was made`);
  return problems.sort();
}

/** Copies the blobs that the store lacks. Returns how many. Throws BackupError for a damaged one, which is not stored. */
export async function copyBlobs(
  target: BlobStore,
  blobs: BlobStore,
  manifest: Manifest,
  onProgress: (done: number, total: number) => void,
): Promise<number> {
  let copied = 0;
  let done = 0;
  const copy = async ({ bytes, key, sha256 }: StoredObject): Promise<void> => {
    const stored = await blobs.stat(key);
    if (stored?.storedBytes !== bytes) {
      await blobs.put(key, checked(await target.open(places.blob(key)), { bytes, key, sha256 }));
      copied++;
    }
    onProgress(++done, manifest.blobs.count);
  };
  let batch: StoredObject[] = [];
  for await (const blob of listBlobs(target, manifest)) {
    batch.push(blob);
    if (batch.length < readsAtOnce) continue;
    await Promise.all(batch.map(copy));
    batch = [];
  }
  await Promise.all(batch.map(copy));
  return copied;
}

/** Fails at the end of a body that is not what was stored, so that nothing is put. */
async function* checked(body: AsyncIterable<Buffer>, { bytes, key, sha256 }: StoredObject): AsyncGenerator<Buffer> {
  const meter = new Meter();
  yield* meter.pass(body);
  if (meter.bytes !== bytes || meter.sha256 !== sha256) throw new BackupError(`${places.blob(key)} is damaged`);
}
