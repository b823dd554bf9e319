import { randomUUID } from 'node:crypto';
import { BlobNotFoundError, type BlobStore, BlobStoreUnavailableError } from '../../platform/blobs/blob-store.ts';
import type { LocatedBlobStore } from '../../platform/blobs/locations/located-blob-store.ts';
import { formatLocation } from '../../platform/blobs/locations/location-url.ts';
import { bytesOf } from '../../platform/bytes/byte-source.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Queryable } from '../../platform/db/sql.ts';
import { OperatorError } from '../../platform/errors/errors.ts';
import { createHeldOutgoingRepository } from '../../platform/outgoing/held-outgoing-repository.ts';
import { createStoreOwnershipRepository } from './store-ownership-repository.ts';

interface Parts {
  readonly blobs: BlobStore;
  readonly db: Queryable;
}

/** `left for ID`: the owner has moved its blobs to the location with this id. */
type StoreOwner = 'nobody' | 'this database' | 'another copy' | `left for ${string}`;

const prefix = 'owners/';
const left = 'left for ';
/** The nonce is replaced at this age. An older copy of the database does not own the store. */
const nonceSeconds = 60;

/** The object names the copy of the database that owns the store. */
export const ownerKey = (installation: string): string => `${prefix}${installation}`;

/**
 * Whether this database owns the blob store, and may delete from it. Two copies of a database, e.g. a clone for tests or a primary that
 * returns after a failover, do not know which objects the states of the other copy need. Renews the ownership. Throws
 * BlobStoreUnavailableError.
 */
export async function ownsStore({ blobs, db }: Parts): Promise<boolean> {
  const nonces = createStoreOwnershipRepository(db);
  const { isDue, isOther, key, nonce, stored } = await look({ blobs, db });
  if (isOther) return false;
  if (nonce !== null && stored !== nonce) {
    // Another process replaced the nonce but has not written it to the store: it is about to, or has ended.
    await putText(blobs, key, nonce);
    return true;
  }
  const next = randomUUID();
  if (isDue && (await nonces.replace(nonce, next))) await putText(blobs, key, next);
  return true;
}

/** Changes nothing. Throws BlobStoreUnavailableError. */
export async function findStoreOwner(parts: Parts): Promise<StoreOwner> {
  const { isOther, stored } = await look(parts);
  if (stored === null) return 'nobody';
  if (!isOther) return 'this database';
  return stored.startsWith(left) ? (stored as `left for ${string}`) : 'another copy';
}

/** The settings name a store that this database has never used. */
class OtherStoreError extends OperatorError {
  override readonly name = 'OtherStoreError';
}

/**
 * Returns the key of the object that the store lacks if this database owns another store; null otherwise. A restored database may begin
 * with a new store. Throws BlobStoreUnavailableError.
 */
export async function findLackingOwner({ blobs, db }: Parts): Promise<string | null> {
  const { before, installation } = await createStoreOwnershipRepository(db).read(nonceSeconds);
  // The process that made the first nonce may have ended before it wrote the nonce to the store.
  if (before === null || (await createHeldOutgoingRepository(db).isHeld())) return null;
  const key = ownerKey(installation);
  return (await blobs.stat(key)) === null ? key : null;
}

/** Throws OtherStoreError if this database owns another store. An unavailable store passes, because it may belong to this database. */
async function assertOwnStore(parts: Parts, url: string): Promise<void> {
  const lacking = await findLackingOwner(parts).catch((error: unknown) => {
    if (error instanceof BlobStoreUnavailableError) return null;
    throw error;
  });
  if (lacking !== null)
    throw new OtherStoreError(
      `${url} is not the blob store of this database: it lacks the object ${lacking}. Correct the settings. If all blobs were copied there, copy this object, too, or run \`holdfast admin take-over\``,
    );
}

/**
 * For the store that `located` opens according to the settings. Skipped for an embedded server, which has database and blobs in one folder,
 * and after a move, when each location has a mark.
 */
export async function assertConfiguredStore(
  config: Pick<Config, 'blobs' | 'database'>,
  { blobs, db }: { readonly blobs: LocatedBlobStore; readonly db: Queryable },
): Promise<void> {
  const isApart = config.blobs.kind === 's3' || config.database.url !== null;
  if (isApart && (await blobs.read()) === null) await assertOwnStore({ blobs, db }, formatLocation(config.blobs));
}

export async function takeStore({ blobs, db }: Parts): Promise<void> {
  const nonces = createStoreOwnershipRepository(db);
  const { installation, nonce } = await nonces.read(nonceSeconds);
  const next = randomUUID();
  // Otherwise, another process has replaced the nonce, and this database already owns the store.
  if (await nonces.replace(nonce, next)) await putText(blobs, ownerKey(installation), next);
}

/** Call this only for a store that no other copy owns. */
export async function shareOwnership({ blobs, db }: Parts): Promise<void> {
  const { installation, nonce } = await createStoreOwnershipRepository(db).read(nonceSeconds);
  if (nonce === null) await blobs.delete(ownerKey(installation));
  else await putText(blobs, ownerKey(installation), nonce);
}

/** The store was left for the location with this id. */
export async function leaveStore({ blobs, db }: Parts, id: string): Promise<void> {
  const { installation } = await createStoreOwnershipRepository(db).read(nonceSeconds);
  // A full disk may be the reason to leave the store.
  await putText(blobs, ownerKey(installation), `${left}${id}`).catch(() => blobs.delete(ownerKey(installation)));
}

async function look({ blobs, db }: Parts) {
  const nonces = createStoreOwnershipRepository(db);
  let { before, installation, isDue, nonce } = await nonces.read(nonceSeconds);
  const key = ownerKey(installation);
  let stored = await readText(blobs, key);
  let isOther = false;
  while (stored !== null && stored !== nonce && stored !== before && !isOther) {
    const seen = nonce;
    ({ before, isDue, nonce } = await nonces.read(nonceSeconds));
    if (nonce === seen) isOther = true;
    // Another process of this database has replaced the nonce in the meantime.
    else stored = await readText(blobs, key);
  }
  return { isDue, isOther, key, nonce, stored };
}

async function readText(blobs: BlobStore, key: string): Promise<string | null> {
  try {
    return Buffer.concat(await Array.fromAsync(await blobs.open(key))).toString();
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
}

async function putText(blobs: BlobStore, key: string, text: string): Promise<void> {
  await blobs.put(key, bytesOf(Buffer.from(text))());
}
