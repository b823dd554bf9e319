import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { openTarget } from '../../shared/backup/backup-target.ts';
import {
  type BlobStore,
  type BlobStoreFault,
  BlobStoreUnavailableError,
} from '../../shared/platform/blobs/blob-store.ts';
import { type BlobStoreConfig, openBlobStore } from '../../shared/platform/blobs/blob-stores.ts';
import { createBlobLocationRepository } from '../../shared/platform/blobs/locations/blob-location-repository.ts';
import { formatLocation, parseLocation } from '../../shared/platform/blobs/locations/location-url.ts';
import { parseSecondStore } from '../../shared/platform/blobs/second/second-store.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { findLackingOwner } from '../../shared/state/blobs/store-ownership.ts';
import { type Check, fail, type Outcome, ok, sentenceOf, warn } from './check.ts';
import type { Visit } from './visit.ts';

/** Objects of the doctor; a killed doctor leaves some behind. */
const folder = 'doctor/';
const leftoverMs = 2 * 60 * 60 * 1000;
const smallBytes = 1_024;
/** An hour: the clock of the store may be ahead by minutes. */
const probeLockDays = 1 / 24;
/** Larger than a part of an upload to S3. */
const largeBytes = 5 * 1024 * 1024 + 1;

/** The second store and the location of backups only if they are set. */
export function storeChecks(visit: Visit): Check[] {
  const { backup, blobs, secondStore } = visit.config;
  const checks: Check[] = [
    { name: 'blob-store', run: () => tryStore(visit, blobs, openBlobStore, { mustSweep: true }) },
    { name: 'blob-location', run: () => checkLocation(visit) },
  ];
  if (secondStore !== null)
    checks.push({
      name: 'second-store',
      run: () => {
        const { location, ...use } = parseSecondStore(secondStore, blobs);
        return tryStore(visit, location, openBlobStore, use);
      },
    });
  const { to } = backup;
  if (to !== null) {
    // Without the lock, because an object that is written with a lock could not be deleted.
    const location = to.replace(/([?&])lock=[^&]*&?/, '$1').replace(/[?&]$/, '');
    const open = () => openTarget(location, visit.config);
    checks.push({
      name: 'backup-target',
      run: async () => {
        const outcome = await tryStore(visit, parseLocation(location, blobs), open);
        return location === to || outcome?.status !== 'ok' ? outcome : ((await tryLock(visit, to)) ?? outcome);
      },
    });
  }
  return checks;
}

/**
 * Writes, reads and deletes objects. `isReplicated`: the bucket is the target of a replication, so nothing is written to it. `mustSweep`: a
 * task fails if it cannot delete leftovers of broken uploads.
 */
async function tryStore(
  visit: Visit,
  location: BlobStoreConfig,
  open: (location: BlobStoreConfig) => Promise<BlobStore>,
  { isReplicated = false, mustSweep = false } = {},
): Promise<Outcome> {
  const where = location.kind === 's3' ? `Bucket ${location.bucket}` : location.directory;
  // A server creates the folder, with its own user as the owner.
  if (location.kind === 'files' && !existsSync(path.join(location.directory, 'blobs')))
    return existsSync(path.resolve(location.directory, '..'))
      ? ok(`${where} does not exist yet: the first use creates it.`)
      : warn(`Neither ${where} nor its parent folder exists.`, 'Create or mount the parent folder.');
  let doing = 'opening';
  try {
    const store = await open(location);
    visit.closing(() => store.close());
    if (isReplicated) {
      doing = 'listing';
      await store.list(folder);
      return ok(`${where} lists objects.`);
    }
    for (const [what, bytes] of [
      ['small', randomBytes(smallBytes)],
      ['multipart', randomBytes(largeBytes)],
    ] as const) {
      const key = `${folder}${randomBytes(8).toString('hex')}`;
      doing = `writing (${what})`;
      await store.put(key, chunksOf(bytes));
      doing = `reading (${what})`;
      const read = createHash('sha256');
      for await (const chunk of await store.open(key)) read.update(chunk);
      if (read.digest('hex') !== createHash('sha256').update(bytes).digest('hex'))
        return fail(
          `${where} returns other bytes than were written (${what}).`,
          'Use another store: this one would lose states.',
        );
      const stat = await store.stat(key);
      if (stat?.storedBytes !== bytes.length)
        return fail(
          `${where} reports the size ${stat?.storedBytes} for an object of ${bytes.length} bytes.`,
          'Use a store, and a proxy before it, that do not change objects.',
        );
      doing = 'listing';
      const { blobs } = await store.list(folder);
      if (!blobs.some((blob) => blob.key === key))
        return fail(`${where} does not list an object that was just written.`, 'Use a store that lists consistently.');
      doing = 'deleting';
      await store.delete(key);
      if ((await store.stat(key)) !== null)
        return fail(`${where} still has a deleted object.`, 'Use a store that deletes consistently.');
      const old = blobs.filter(({ modifiedAt }) => modifiedAt.getTime() < Date.now() - leftoverMs);
      for (const leftover of old) await store.delete(leftover.key);
    }
    doing = 'listing unfinished uploads';
    try {
      // With this age, the sweep deletes nothing.
      await store.sweepUnfinished(Number.MAX_SAFE_INTEGER, [folder]);
    } catch (error) {
      const fix = 'Allow s3:ListBucketMultipartUploads and s3:AbortMultipartUpload, or parts of broken uploads stay.';
      return (mustSweep ? fail : warn)(`${where}, ${doing}: ${reasonOf(error)}`, fix);
    }
    return ok(`${where} stores, returns, lists and deletes objects.`);
  } catch (error) {
    const fault = error instanceof BlobStoreUnavailableError ? error.fault : null;
    return fail(
      `${where}, ${doing}: ${reasonOf(error)}`,
      fault ? fixes[fault] : 'Name a usable location in the settings.',
    );
  }
}

/** Returns null if the location accepts an object with a short lock. The object stays for that time. */
async function tryLock(visit: Visit, location: string): Promise<Outcome> {
  try {
    const store = await openTarget(location, visit.config, { lockDays: probeLockDays });
    visit.closing(() => store.close());
    const key = `${folder}${randomBytes(8).toString('hex')}`;
    await store.put(key, chunksOf(randomBytes(1)));
    // Each backup extends the locks of blobs that are already there.
    await store.keepLocked?.(key, { storedBytes: 1, modifiedAt: new Date() });
    // Without versions, the deletion is refused while the lock holds: a later doctor deletes the object.
    await store.delete(key).catch(() => {});
    return null;
  } catch (error) {
    return fail(
      `${location}, writing (locked): ${reasonOf(error)}`,
      'Create the bucket with object lock, and allow s3:PutObjectRetention; or remove lock= from HOLDFAST_BACKUP_TO.',
    );
  }
}

const fixes: Readonly<Record<BlobStoreFault, string>> = {
  denied: 'Allow the credentials, or the system user, to read, write, delete and list there.',
  full: 'Make space there.',
  misconfigured: 'Create the bucket (`holdfast create-bucket`), or correct endpoint, region and path style.',
  throttled: "Raise the store's request limit.",
  timeout: 'Check hosts, networks and firewalls between here and the store.',
  unreachable: 'Start the store, or correct HOLDFAST_S3_ENDPOINT.',
  faulty: 'Find the cause in the log of the store.',
};

/** Only the cause of an S3 error says whether the key, the signature or the policy is wrong. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { readonly cause?: { readonly message?: unknown } };
  const said = String(cause?.message ?? '').split('\n')[0] ?? '';
  const detail = said === '' || message.includes(said) ? '' : `: ${said}`;
  return error instanceof BlobStoreUnavailableError ? `${message}${detail}` : sentenceOf(error);
}

async function checkLocation(visit: Visit): Promise<Outcome> {
  const db = await visit.migrated();
  if (!db) return null;
  const row = await createBlobLocationRepository(db).find();
  const own = formatLocation(visit.config.blobs);
  if (!row) return checkOwner(visit, db, own);
  if (formatLocation(parseLocation(row.mainUrl, visit.config.blobs)) !== own)
    return warn(
      `The blobs are at ${row.mainUrl}, but the settings say ${own}.`,
      'Name the location of the blobs in the settings.',
    );
  return ok(
    row.phase === 'copying'
      ? `The blobs are being copied to ${row.otherUrl}.`
      : 'The blobs are where the settings say.',
  );
}

async function checkOwner({ config }: Visit, db: Database, url: string): Promise<Outcome> {
  const blobs = await openBlobStore(config.blobs, { isPrepared: true });
  try {
    const lacking = await findLackingOwner({ blobs, db });
    if (lacking === null) return null;
    return fail(
      `${url} is not the blob store of this database: it lacks the object ${lacking}.`,
      'Name the blob store of the servers in the settings.',
    );
  } catch (error) {
    // Another check reports it.
    if (error instanceof BlobStoreUnavailableError) return null;
    throw error;
  } finally {
    await blobs.close();
  }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
