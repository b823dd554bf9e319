import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts with AES-256-GCM, bound to `context`: nonce, ciphertext, tag. */
export function seal(key: Buffer, plaintext: Buffer, context: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(context);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Undoes `seal`; null when key, context or bytes are not the ones sealed. */
export function unseal(key: Buffer, sealed: Buffer, context: Buffer): Buffer | null {
  if (sealed.length < nonceBytes + tagBytes) return null;
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(context);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, sealed.length - tagBytes)), decipher.final()]);
  } catch {
    // The tag does not match: the caller says what that means.
    return null;
  }
}

/** The master keys, by id. The first wraps new data keys; all unwrap, so that keys can be rotated one by one. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** Id of the key that wraps new data keys. */
  readonly currentId: string;

  /** `text`: `id:base64,id:base64…`, 32 bytes each. Throws Error naming the id that is wrong (never the key). */
  constructor(text: string) {
    const keys = new Map<string, Buffer>();
    for (const pair of text.split(',')) {
      const at = pair.indexOf(':');
      const id = pair.slice(0, at).trim();
      const key = Buffer.from(pair.slice(at + 1), 'base64');
      if (at < 1 || key.length !== 32) throw new Error(`Master key ${JSON.stringify(id)} is not 32 bytes of base64`);
      if (keys.has(id)) throw new Error(`Master key id ${JSON.stringify(id)} occurs twice`);
      keys.set(id, key);
    }
    this.#keys = keys;
    this.currentId = keys.keys().next().value as string;
  }

  /** A ring text with one new random key. */
  static generate(): string {
    return `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}:${randomBytes(32).toString('base64')}`;
  }

  /** Wraps a data key for the stack; bound to the stack's id. */
  wrap(dataKey: Buffer, stackId: string): { masterKeyId: string; wrappedKey: Buffer } {
    const key = this.#keys.get(this.currentId) as Buffer;
    return { masterKeyId: this.currentId, wrappedKey: seal(key, dataKey, Buffer.from(stackId)) };
  }

  /** The data key. Throws Error when the ring lacks the master key or the bytes were not wrapped by it. */
  unwrap(masterKeyId: string, wrappedKey: Buffer, stackId: string): Buffer {
    const key = this.#keys.get(masterKeyId);
    if (!key) throw new Error(`Master key ${JSON.stringify(masterKeyId)} is not in HOLDFAST_MASTER_KEYS`);
    const dataKey = unseal(key, wrappedKey, Buffer.from(stackId));
    if (!dataKey)
      throw new Error(`Master key ${JSON.stringify(masterKeyId)} does not unwrap the key of stack ${stackId}`);
    return dataKey;
  }
}
