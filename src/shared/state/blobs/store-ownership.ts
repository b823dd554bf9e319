import { randomUUID } from 'node:crypto';
import { BlobNotFoundError, type BlobStore } from '../../platform/blobs/blob-store.ts';
import type { Queryable } from '../../platform/db/sql.ts';
import { bytesOf } from '../checkpoints/body-buffer.ts';
import { createStoreOwnershipRepository } from './store-ownership-repository.ts';

interface Parts {
  readonly blobs: BlobStore;
  readonly db: Queryable;
}

const prefix = 'owners/';
/** The age at which the nonce is replaced, in seconds: a copy of the database that is older does not own the store. */
const nonceSeconds = 60;

/**
 * Whether this database owns the blob store, and may delete from it. A copy of the database, such as a clone for tests or a primary that
 * returns after a failover, does not know which objects the states of the other one need. Renews the ownership. Throws
 * BlobStoreUnavailableError.
 */
export async function ownsStore({ blobs, db }: Parts): Promise<boolean> {
  const nonces = createStoreOwnershipRepository(db);
  let { before, installation, isDue, nonce } = await nonces.read(nonceSeconds);
  const key = `${prefix}${installation}`;
  let stored = await readNonce(blobs, key);
  while (stored !== null && stored !== nonce && stored !== before) {
    const seen = nonce;
    ({ before, isDue, nonce } = await nonces.read(nonceSeconds));
    if (nonce === seen) return false;
    // Another process of this database has replaced it meanwhile.
    stored = await readNonce(blobs, key);
  }
  if (nonce !== null && stored !== nonce) {
    // The process that replaced it has not written it to the store: it is about to, or has ended.
    await putNonce(blobs, key, nonce);
    return true;
  }
  const next = randomUUID();
  if (isDue && (await nonces.replace(nonce, next))) await putNonce(blobs, key, next);
  return true;
}

/** Makes this database the owner of the blob store. */
export async function takeStore({ blobs, db }: Parts): Promise<void> {
  const nonces = createStoreOwnershipRepository(db);
  const { installation, nonce } = await nonces.read(nonceSeconds);
  const next = randomUUID();
  // If another process has replaced it meanwhile, this database owns the store already.
  if (await nonces.replace(nonce, next)) await putNonce(blobs, `${prefix}${installation}`, next);
}

async function readNonce(blobs: BlobStore, key: string): Promise<string | null> {
  try {
    return Buffer.concat(await Array.fromAsync(await blobs.open(key))).toString();
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
}

async function putNonce(blobs: BlobStore, key: string, nonce: string): Promise<void> {
  await blobs.put(key, bytesOf(Buffer.from(nonce))());
}
