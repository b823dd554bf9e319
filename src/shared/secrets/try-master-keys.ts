import { randomBytes } from 'node:crypto';
import { openKms } from '../platform/kms/open-kms.ts';
import { KeyRing, MasterKeyError } from './key-ring.ts';
import { type MasterKeyEntry, parseMasterKeys } from './master-key-list.ts';
import type { MasterKeyRepository } from './master-key-repository.ts';
import { kmsAccess, kmsContext, type MasterKeyParts } from './open-master-keys.ts';

/** Data keys and secrets that are opened. */
const triedUses = 100;

export interface MasterKeyTrial {
  /** The keys that work. */
  readonly ids: readonly string[];
  /** Counts data keys and secrets. */
  readonly opened: number;
  /** Sentences. */
  readonly faults: readonly string[];
}

/** Also tries the newest data encrypted with the keys. Stores nothing. Throws MasterKeyError if the text is malformed. */
export async function tryMasterKeys(
  text: string,
  { config, rows }: { readonly config: MasterKeyParts['config']; readonly rows: MasterKeyRepository },
): Promise<MasterKeyTrial> {
  const keys = new Map<string, Buffer>();
  const faults: string[] = [];
  const reach = async (entry: MasterKeyEntry): Promise<void> => {
    try {
      const bytes = await openEntry(entry, config, rows);
      if (bytes) keys.set(entry.id, bytes);
    } catch (error) {
      faults.push((error as Error).message);
    }
  };
  await Promise.all(parseMasterKeys(text).map(reach));
  const ring = new KeyRing(keys);
  const uses = faults.length > 0 ? [] : await rows.listNewestUses(triedUses);
  for (const { encrypted, masterKeyId, owner } of uses) {
    try {
      ring.unwrap(masterKeyId, encrypted, owner);
    } catch (error) {
      if (!(error instanceof MasterKeyError)) throw error;
      if (!faults.includes(error.message)) faults.push(error.message);
    }
  }
  return { ids: [...keys.keys()], opened: uses.length, faults };
}

/** The key used under the id of the entry. Null if its KMS works but has no key for it yet. */
async function openEntry(
  entry: MasterKeyEntry,
  config: MasterKeyParts['config'],
  rows: MasterKeyRepository,
): Promise<Buffer | null> {
  const { id } = entry;
  const row = await rows.find(id);
  let { bytes } = entry;
  if (entry.kms !== null) {
    const kms = await openKms(entry.kms, kmsAccess(config));
    if (!row?.wrappedKey) {
      const probe = randomBytes(32);
      await kms.unwrap(await kms.wrap(probe, kmsContext(id)), kmsContext(id));
      return null;
    }
    bytes = await kms.unwrap(row.wrappedKey, kmsContext(id));
  }
  if (bytes && row && !new KeyRing(new Map([[id, bytes]])).matchesCanary(id, row.canary))
    throw new MasterKeyError(`Master key ${JSON.stringify(id)} is not the one that was used under this id before`);
  return bytes;
}
