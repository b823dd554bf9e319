import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { EncryptionKeyRepository, EncryptionKeyRow } from './encryption-key-repository.ts';
import { type KeyRing, MasterKeyError } from './key-ring.ts';

const maxCachedKeys = 10_000;

export interface DataKey {
  readonly id: string;
  /** Null for a key of documents. */
  readonly stackId: string | null;
  readonly bytes: Buffer;
}

/** Caches unwrapped keys by id. The current key is looked up in the database each time, so that no process keeps using a rotated key. */
export class DataKeys {
  readonly #keys: EncryptionKeyRepository;
  readonly #ring: KeyRing | null;
  readonly #maxAgeSeconds: number;
  readonly #cache = new LRUCache<string, DataKey>({ max: maxCachedKeys });

  /**
   * Without a ring, every call that needs a key throws. A current key older than `maxAgeSeconds` (0: never) is rotated when it is
   * requested.
   */
  constructor(keys: EncryptionKeyRepository, ring: KeyRing | null, maxAgeSeconds: number) {
    this.#keys = keys;
    this.#ring = ring;
    this.#maxAgeSeconds = maxAgeSeconds;
  }

  /** Creates a missing key. Null if the stack was deleted. Throws MasterKeyError. */
  async current(stackId: string | null): Promise<DataKey | null> {
    let row = await this.#keys.findCurrent(stackId);
    if (!row || (this.#maxAgeSeconds > 0 && row.ageSeconds >= this.#maxAgeSeconds)) {
      await addVersion(this.#keys, this.#requireRing(), { stackId, version: row?.version ?? 0 });
      row = await this.#keys.findCurrent(stackId);
    }
    return row && this.#open(row);
  }

  /** Finds a key of any version. Throws MasterKeyError. */
  async find(id: string): Promise<DataKey | null> {
    const cached = this.#cache.get(id);
    if (cached) return cached;
    const row = await this.#keys.findById(id);
    return row && this.#open(row);
  }

  #open({ id, stackId, masterKeyId, wrappedKey }: EncryptionKeyRow): DataKey {
    const cached = this.#cache.get(id);
    if (cached) return cached;
    const key = { id, stackId, bytes: this.#requireRing().unwrap(masterKeyId, wrappedKey, stackId) };
    this.#cache.set(id, key);
    return key;
  }

  #requireRing(): KeyRing {
    if (this.#ring) return this.#ring;
    throw new MasterKeyError('This process has no master keys: HOLDFAST_MASTER_KEYS is not set');
  }
}

/**
 * Adds the version after `version` (0 for no key yet). Returns false if another process was first, whose key is then just as new, or if the
 * stack was deleted. Throws MasterKeyError if the master key is no longer stored.
 */
export async function addVersion(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  last: { readonly stackId: string | null; readonly version: number },
): Promise<boolean> {
  const { stackId, version } = last;
  const wrapped = ring.wrap(randomBytes(32), stackId);
  if (await keys.insert({ stackId, version: version + 1, wrapped })) return true;
  if (await keys.isMasterKeyStored(wrapped)) return false;
  throw new MasterKeyError(
    `Master key ${JSON.stringify(wrapped.masterKeyId)} is not in the database any more: restart this process`,
  );
}
