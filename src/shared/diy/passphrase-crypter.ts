import { createCipheriv, createDecipheriv, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** As the CLI derives its key (sdk/go/common/resource/config/crypt.go). */
const iterations = 1_000_000;
const keyBytes = 32;
const saltBytes = 8;
const nonceBytes = 12;
const tagBytes = 16;
const checkedText = 'pulumi';

/** The CLI's secrets provider `passphrase`. */
export class PassphraseCrypter {
  /** `v1:SALT:CHECK`, as in the state of the provider and as `encryptionsalt` of a configuration file. */
  readonly salt: string;
  readonly #key: Buffer;

  private constructor(key: Buffer, salt: string) {
    this.#key = key;
    this.salt = salt;
  }

  /** Derives a key with a new salt. Takes half a second of another thread. */
  static async create(passphrase: string): Promise<PassphraseCrypter> {
    const salt = randomBytes(saltBytes);
    const key = await promisify(pbkdf2)(passphrase, salt, iterations, keyBytes, 'sha256');
    const check = encryptWith(key, Buffer.from(checkedText));
    return new PassphraseCrypter(key, `v1:${salt.toString('base64')}:${check}`);
  }

  /** Derives the key of a salt as above; null if it belongs to another passphrase. */
  static async open(passphrase: string, salt: string): Promise<PassphraseCrypter | null> {
    const [, text = '', check = ''] = /^v1:([^:]+):(.+)$/.exec(salt) ?? [];
    const bytes = Buffer.from(text, 'base64');
    const key = await promisify(pbkdf2)(passphrase, bytes, iterations, keyBytes, 'sha256');
    return decryptWith(key, check)?.toString() === checkedText ? new PassphraseCrypter(key, salt) : null;
  }

  encrypt(plaintext: Buffer): string {
    return encryptWith(this.#key, plaintext);
  }

  /** Null if it was encrypted with another key. */
  decrypt(ciphertext: string): Buffer | null {
    return decryptWith(this.#key, ciphertext);
  }
}

function encryptWith(key: Buffer, plaintext: Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const sealed = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return `v1:${nonce.toString('base64')}:${sealed.toString('base64')}`;
}

function decryptWith(key: Buffer, ciphertext: string): Buffer | null {
  const [, nonce = '', sealed = ''] = /^v1:([^:]+):([^:]+)$/.exec(ciphertext) ?? [];
  const bytes = Buffer.from(sealed, 'base64');
  if (Buffer.from(nonce, 'base64').length !== nonceBytes || bytes.length < tagBytes) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64'));
  decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, bytes.length - tagBytes)), decipher.final()]);
  } catch {
    return null;
  }
}
