import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { OperatorError } from '../platform/errors/errors.ts';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
/** The context of document keys. That of a stack's keys is its id. */
const documentsOwner = 'documents';
const canaryText = Buffer.from('holdfast');
const canaryContext = (masterKeyId: string): Buffer => Buffer.from(`master key ${masterKeyId}`);

/** Uses AES-256-GCM, bound to `context`. Returns nonce, ciphertext and tag. */
export function encryptWith(key: Buffer, plaintext: Buffer, context: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(context);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Null if key, context or bytes do not match. */
export function decryptWith(key: Buffer, encrypted: Buffer, context: Buffer): Buffer | null {
  if (encrypted.length < nonceBytes + tagBytes) return null;
  const decipher = createDecipheriv(algorithm, key, encrypted.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(context);
  decipher.setAuthTag(encrypted.subarray(encrypted.length - tagBytes));
  try {
    return Buffer.concat([
      decipher.update(encrypted.subarray(nonceBytes, encrypted.length - tagBytes)),
      decipher.final(),
    ]);
  } catch {
    // The caller interprets the wrong tag.
    return null;
  }
}

/** The master keys are malformed or lack the required one. The message contains ids, never keys. */
export class MasterKeyError extends OperatorError {
  override readonly name = 'MasterKeyError';
}

/** No server of the installation could decrypt. */
export const unusedKey = (id: string): MasterKeyError =>
  new MasterKeyError(
    `No server of this installation has used master key ${JSON.stringify(id)}, the first in HOLDFAST_MASTER_KEYS: use the value of the servers; configure a new key on the servers first`,
  );

export interface WrappedDataKey {
  readonly masterKeyId: string;
  readonly wrappedKey: Buffer;
  /** The master key with this canary must still be stored when the data key is; null for a key in the setting. */
  readonly storedCanary: Buffer | null;
}

/** One for each master key. The first one signs; all verify. */
export type DerivedKeys = readonly [Buffer, ...Buffer[]];

export function deriveKey(secret: Buffer, purpose: string, salt: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32));
}

/** The first key wraps new data keys. All can unwrap, so that they can be rotated one by one. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** The key that wraps new data keys. */
  readonly currentId: string;

  readonly #storedCanaries: ReadonlyMap<string, Buffer>;
  #wraps = true;

  /**
   * Keys have 32 bytes. There is at least one; the first is the current one. `storedCanaries` are those of keys that exist only in the
   * table of master keys.
   */
  constructor(keys: ReadonlyMap<string, Buffer>, storedCanaries: ReadonlyMap<string, Buffer> = new Map()) {
    this.#keys = keys;
    this.#storedCanaries = storedCanaries;
    this.currentId = keys.keys().next().value as string;
  }

  /** The text of a ring with one new random key. */
  static generate(): string {
    return `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}:${randomBytes(32).toString('base64')}`;
  }

  /** From now on, `wrap` throws MasterKeyError. */
  wrapNothing(): void {
    this.#wraps = false;
  }

  /** Binds a data key to its stack's id (null for a document key), or another secret to its owner. */
  wrap(dataKey: Buffer, stackId: string | null): WrappedDataKey {
    if (!this.#wraps) throw unusedKey(this.currentId);
    const masterKeyId = this.currentId;
    return {
      masterKeyId,
      wrappedKey: encryptWith(this.#get(masterKeyId), dataKey, Buffer.from(stackId ?? documentsOwner)),
      storedCanary: this.#storedCanaries.get(masterKeyId) ?? null,
    };
  }

  /** A known text encrypted with the key, by which `matchesCanary` recognizes it. */
  makeCanary(masterKeyId: string): Buffer {
    return encryptWith(this.#get(masterKeyId), canaryText, canaryContext(masterKeyId));
  }

  matchesCanary(masterKeyId: string, canary: Buffer): boolean {
    return decryptWith(this.#get(masterKeyId), canary, canaryContext(masterKeyId))?.equals(canaryText) ?? false;
  }

  /** Throws MasterKeyError if the ring lacks the master key, or another key wrapped the bytes. */
  unwrap(masterKeyId: string, wrappedKey: Buffer, stackId: string | null): Buffer {
    const dataKey = decryptWith(this.#get(masterKeyId), wrappedKey, Buffer.from(stackId ?? documentsOwner));
    if (dataKey) return dataKey;
    const owner = stackId === null ? 'documents' : `stack ${stackId}`;
    throw new MasterKeyError(`Master key ${JSON.stringify(masterKeyId)} does not unwrap the data key of ${owner}`);
  }

  /** A copy of the database does not reveal these keys. They change with the master keys. */
  derive(purpose: string, salt: Buffer): DerivedKeys {
    const derived = [...this.#keys.values()].map((key) => deriveKey(key, purpose, salt));
    return derived as [Buffer, ...Buffer[]];
  }

  #get(masterKeyId: string): Buffer {
    const key = this.#keys.get(masterKeyId);
    if (!key) throw new MasterKeyError(`Master key ${JSON.stringify(masterKeyId)} is not in HOLDFAST_MASTER_KEYS`);
    return key;
  }
}
