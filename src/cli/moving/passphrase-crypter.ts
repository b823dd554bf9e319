import { createCipheriv, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

/** As the CLI derives its key (sdk/go/common/resource/config/crypt.go). */
const iterations = 1_000_000;
const keyBytes = 32;
const saltBytes = 8;
const nonceBytes = 12;
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

  encrypt(plaintext: Buffer): string {
    return encryptWith(this.#key, plaintext);
  }
}

function encryptWith(key: Buffer, plaintext: Buffer): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const sealed = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return `v1:${nonce.toString('base64')}:${sealed.toString('base64')}`;
}
