import { pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { decryptWith, encryptWith, SecretsCrypter } from './secrets-crypter.ts';

/** Same as in the CLI (sdk/go/common/resource/config/crypt.go). */
const iterations = 1_000_000;
const keyBytes = 32;
const saltBytes = 8;
const checkedText = 'pulumi';

export class PassphraseCrypter extends SecretsCrypter {
  /** `v1:SALT:CHECK`, as in the provider's state and in `encryptionsalt` of a configuration file. */
  readonly salt: string;

  private constructor(key: Buffer, salt: string) {
    super(key, { type: 'passphrase', state: { salt } });
    this.salt = salt;
  }

  /** Takes half a second in another thread. */
  static async create(passphrase: string): Promise<PassphraseCrypter> {
    const salt = randomBytes(saltBytes);
    const key = await promisify(pbkdf2)(passphrase, salt, iterations, keyBytes, 'sha256');
    const check = encryptWith(key, Buffer.from(checkedText));
    return new PassphraseCrypter(key, `v1:${salt.toString('base64')}:${check}`);
  }

  static async open(passphrase: string, salt: string): Promise<PassphraseCrypter | null> {
    const [, text = '', check = ''] = /^v1:([^:]+):(.+)$/.exec(salt) ?? [];
    if (text === '') return null;
    const bytes = Buffer.from(text, 'base64');
    const key = await promisify(pbkdf2)(passphrase, bytes, iterations, keyBytes, 'sha256');
    return decryptWith(key, check)?.toString() === checkedText ? new PassphraseCrypter(key, salt) : null;
  }
}
