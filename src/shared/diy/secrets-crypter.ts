import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const nonceBytes = 12;
const tagBytes = 16;

/** A secrets provider as named in a state. */
export interface SecretsProvider {
  readonly type: string;
  readonly state: Readonly<Record<string, unknown>>;
}

/** Encrypts like the CLI with its own key (sdk/go/common/resource/config/crypt.go). */
export class SecretsCrypter {
  readonly provider: SecretsProvider;
  readonly #key: Buffer;

  /** `key` has 32 bytes. */
  constructor(key: Buffer, provider: SecretsProvider) {
    this.#key = key;
    this.provider = provider;
  }

  encrypt(plaintext: Buffer): string {
    return encryptWith(this.#key, plaintext);
  }

  /** Returns null for a ciphertext of another key. */
  decrypt(ciphertext: string): Buffer | null {
    return decryptWith(this.#key, ciphertext);
  }
}

/** The first members of `Pulumi.<stack>.yaml`; null if the CLI needs other members. */
export function settingsOf({ state, type }: SecretsProvider): Record<string, unknown> | null {
  if (type === 'passphrase') return { encryptionsalt: state['salt'] };
  if (type === 'cloud') return { secretsprovider: state['url'], encryptedkey: state['encryptedkey'] };
  return null;
}

export function encryptWith(key: Buffer, plaintext: Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const encrypted = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return `v1:${nonce.toString('base64')}:${encrypted.toString('base64')}`;
}

export function decryptWith(key: Buffer, ciphertext: string): Buffer | null {
  const [, nonce = '', encrypted = ''] = /^v1:([^:]+):([^:]+)$/.exec(ciphertext) ?? [];
  const bytes = Buffer.from(encrypted, 'base64');
  if (Buffer.from(nonce, 'base64').length !== nonceBytes || bytes.length < tagBytes) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64'));
  decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, bytes.length - tagBytes)), decipher.final()]);
  } catch {
    return null;
  }
}
