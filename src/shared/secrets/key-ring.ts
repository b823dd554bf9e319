import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { OperatorError } from '../platform/errors/errors.ts';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
/** Context of document keys; keys of stacks use the stack id. */
const documentsOwner = 'documents';

/** Encrypts with AES-256-GCM, bound to `context`. Returns nonce, ciphertext and tag. */
export function seal(key: Buffer, plaintext: Buffer, context: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(context);
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** Reverses `seal`. Returns null if key, context or bytes do not match. */
export function unseal(key: Buffer, sealed: Buffer, context: Buffer): Buffer | null {
  if (sealed.length < nonceBytes + tagBytes) return null;
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(context);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, sealed.length - tagBytes)), decipher.final()]);
  } catch {
    // The tag does not match. The caller decides what that means.
    return null;
  }
}

/** The master keys of this process are malformed or lack the required one. The message contains ids, never keys. */
export class MasterKeyError extends OperatorError {
  override readonly name = 'MasterKeyError';
}

/** Master keys by id. The first one wraps new data keys; all can unwrap, so that they can be rotated one by one. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** Id of the master key that wraps new data keys. */
  readonly currentId: string;

  /** Parses `id:base64,id:base64…`, 32 bytes each. Throws MasterKeyError, which names the invalid key. */
  constructor(text: string) {
    const keys = new Map<string, Buffer>();
    for (const [index, pair] of text.split(',').entries()) {
      const at = pair.indexOf(':');
      // Without an id, the text may be a key, so do not show it.
      if (at < 1) throw new MasterKeyError(`Master key ${index + 1} of the list is not of the form id:base64`);
      const id = pair.slice(0, at).trim();
      const key = Buffer.from(pair.slice(at + 1), 'base64');
      if (key.length !== 32) {
        throw new MasterKeyError(`Master key ${JSON.stringify(id)} has ${key.length} bytes; it must be 32, in base64`);
      }
      if (key.toString('base64') !== pair.slice(at + 1).trim()) {
        throw new MasterKeyError(`Master key ${JSON.stringify(id)} is not valid base64`);
      }
      if (keys.has(id)) throw new MasterKeyError(`Master key id ${JSON.stringify(id)} occurs twice`);
      keys.set(id, key);
    }
    this.#keys = keys;
    this.currentId = keys.keys().next().value as string;
  }

  /** Returns the text of a ring with one new random key. */
  static generate(): string {
    return `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}:${randomBytes(32).toString('base64')}`;
  }

  /** Wraps a data key, bound to the id of its stack; null for a document key. */
  wrap(dataKey: Buffer, stackId: string | null): { masterKeyId: string; wrappedKey: Buffer } {
    const key = this.#keys.get(this.currentId) as Buffer;
    return { masterKeyId: this.currentId, wrappedKey: seal(key, dataKey, Buffer.from(stackId ?? documentsOwner)) };
  }

  /** Unwraps a data key. Throws MasterKeyError if the ring lacks the master key or the bytes were not wrapped by it. */
  unwrap(masterKeyId: string, wrappedKey: Buffer, stackId: string | null): Buffer {
    const key = this.#keys.get(masterKeyId);
    if (!key) throw new MasterKeyError(`Master key ${JSON.stringify(masterKeyId)} is not in HOLDFAST_MASTER_KEYS`);
    const dataKey = unseal(key, wrappedKey, Buffer.from(stackId ?? documentsOwner));
    if (dataKey) return dataKey;
    const owner = stackId === null ? 'documents' : `stack ${stackId}`;
    throw new MasterKeyError(`Master key ${JSON.stringify(masterKeyId)} does not unwrap the data key of ${owner}`);
  }
}
