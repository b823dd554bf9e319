import { InvalidRequestError, NotFoundError } from '../platform/errors/errors.ts';
import type { DataKey, DataKeys } from './data-keys.ts';
import { keyIdBytes, keyIdOf, keyIdText } from './key-id.ts';
import { seal, unseal } from './key-ring.ts';

/**
 * Ciphertext format: this byte, the id of the data key (16 bytes), then nonce, ciphertext and tag of AES-256-GCM with the
 * immutable stack id as context. Thanks to the key id, ciphertexts survive renames of the stack and key rotations.
 */
const formatByte = 1;

/** Encrypts and decrypts the secrets of stacks. Keeps no plaintext. */
export class StackCipher {
  readonly #keys: DataKeys;

  constructor(keys: DataKeys) {
    this.#keys = keys;
  }

  /** Throws NotFoundError if the stack was deleted in the meantime. */
  async encrypt(stackId: string, plaintexts: readonly Buffer[]): Promise<Buffer[]> {
    const key = await this.#keys.current(stackId);
    if (!key) throw new NotFoundError('The stack was deleted meanwhile');
    const header = Buffer.concat([Buffer.from([formatByte]), keyIdOf(key.id)]);
    const context = Buffer.from(stackId);
    return plaintexts.map((plaintext) => Buffer.concat([header, seal(key.bytes, plaintext, context)]));
  }

  /**
   * Decrypts ciphertexts of the given stacks (the addressed one and those that had its name before).
   * Throws InvalidRequestError if a ciphertext belongs to none of them.
   */
  async decrypt(stackIds: readonly string[], ciphertexts: readonly Buffer[]): Promise<Buffer[]> {
    const plaintexts: Buffer[] = [];
    for (const ciphertext of ciphertexts) {
      const key = await this.#keyOfCiphertext(ciphertext);
      const plaintext =
        key?.stackId && stackIds.includes(key.stackId)
          ? unseal(key.bytes, ciphertext.subarray(1 + keyIdBytes), Buffer.from(key.stackId))
          : null;
      if (!plaintext) throw new InvalidRequestError('The ciphertext does not belong to this stack, or is damaged');
      plaintexts.push(plaintext);
    }
    return plaintexts;
  }

  async #keyOfCiphertext(ciphertext: Buffer): Promise<DataKey | null> {
    if (ciphertext.length <= 1 + keyIdBytes || ciphertext[0] !== formatByte) return null;
    return this.#keys.find(keyIdText(ciphertext.subarray(1, 1 + keyIdBytes)));
  }
}
