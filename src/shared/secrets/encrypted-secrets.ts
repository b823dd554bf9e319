import type { Queryable } from '../platform/db/sql.ts';
import { createEncryptionKeyRepository } from './encryption-key-repository.ts';
import { type DerivedKeys, deriveKey, type KeyRing, MasterKeyError } from './key-ring.ts';

export interface EncryptedSecret {
  readonly masterKeyId: string;
  readonly encrypted: Buffer;
}

/** Uses the first master key for the server's own short secrets, each bound to its owner. */
export class EncryptedSecrets {
  readonly #ring: KeyRing | null;

  /** Without a ring, secrets can be neither stored nor read. */
  constructor(ring: KeyRing | null) {
    this.#ring = ring;
  }

  /** Workers have master keys only if documents are encrypted. */
  get hasKeys(): boolean {
    return this.#ring !== null;
  }

  /** For a secret that the transaction will store. Throws MasterKeyError. */
  async encrypt(tx: Queryable, owner: string, secret: string): Promise<EncryptedSecret> {
    const wrapped = this.#requireRing().wrap(Buffer.from(secret), owner);
    if (!(await createEncryptionKeyRepository(tx).isMasterKeyStored(wrapped)))
      throw new MasterKeyError(
        `Master key ${JSON.stringify(wrapped.masterKeyId)} is not in the database any more: restart this process`,
      );
    return { masterKeyId: wrapped.masterKeyId, encrypted: wrapped.wrappedKey };
  }

  /** Throws MasterKeyError if the key is missing, or if the bytes belong to another owner. */
  open(owner: string, { masterKeyId, encrypted }: EncryptedSecret): string {
    return this.#requireRing().unwrap(masterKeyId, encrypted, owner).toString();
  }

  /**
   * Like `KeyRing.derive`. Without master keys, a copy of the database reveals the key. There are no secrets then, but users still sign in.
   */
  async deriveKeys(db: Queryable, purpose: string): Promise<DerivedKeys> {
    const salt = await createEncryptionKeyRepository(db).derivationSalt();
    return this.#ring?.derive(purpose, salt) ?? [deriveKey(Buffer.alloc(0), purpose, salt)];
  }

  /** The encrypting master key; null without master keys. */
  get currentId(): string | null {
    return this.#ring?.currentId ?? null;
  }

  #requireRing(): KeyRing {
    if (this.#ring) return this.#ring;
    throw new MasterKeyError('This process has no master keys: HOLDFAST_MASTER_KEYS is not set');
  }
}
