import { randomBytes } from 'node:crypto';
import { type Kms, KmsError } from '../platform/kms/kms.ts';
import { SecretsCrypter } from './secrets-crypter.ts';

const keyBytes = 32;

/**
 * Like the CLI (pkg/secrets/cloud): a data key encrypts the secrets. A state contains it, wrapped by a key management service without a
 * context.
 */
export class CloudCrypter extends SecretsCrypter {
  /** Base64. */
  readonly wrapped: string;

  private constructor(key: Buffer, url: string, wrapped: string) {
    super(key, { type: 'cloud', state: { url, encryptedkey: wrapped } });
    this.wrapped = wrapped;
  }

  /** `url` names the service's key for the CLI. */
  static async create(kms: Kms, url: string): Promise<CloudCrypter> {
    const key = randomBytes(keyBytes);
    const wrapped = await kms.wrap(key, null);
    return new CloudCrypter(key, url, wrapped.toString('base64'));
  }

  /** Null if another key of the service has wrapped the data key. */
  static async open(kms: Kms, url: string, wrapped: string): Promise<CloudCrypter | null> {
    try {
      const key = await kms.unwrap(Buffer.from(wrapped, 'base64'), null);
      return key.length === keyBytes ? new CloudCrypter(key, url, wrapped) : null;
    } catch (error) {
      if (error instanceof KmsError && error.fault === 'mismatch') return null;
      throw error;
    }
  }
}
