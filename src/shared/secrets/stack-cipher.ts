import { InvalidRequestError, NotFoundError } from '../platform/errors/errors.ts';
import { Slices } from '../platform/slices/slices.ts';
import type { DataKey, DataKeys } from './data-keys.ts';
import { keyIdBytes, keyIdOf, keyIdText } from './key-id.ts';
import { decryptWith, encryptWith } from './key-ring.ts';

/**
 * Ciphertext format: this byte, the id of the data key (16 bytes), then nonce, ciphertext and tag of AES-256-GCM with the immutable stack
 * id as context. Because of the key id, ciphertexts survive renames of the stack and key rotations.
 */
const formatByte = 1;

/** Encrypting a short text takes as long as reading this many bytes: some 10 µs. */
const minSpentBytes = 4096;

/** Keeps no plaintext. */
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
    const slices = new Slices();
    const ciphertexts: Buffer[] = [];
    for (const plaintext of plaintexts) {
      ciphertexts.push(Buffer.concat([header, encryptWith(key.bytes, plaintext, context)]));
      await slices.spend(Math.max(plaintext.length, minSpentBytes));
    }
    return ciphertexts;
  }

  /**
   * `stackIds` are the addressed stack and stacks that had its name before. Throws InvalidRequestError if a ciphertext belongs to none of
   * them.
   */
  async decrypt(stackIds: readonly string[], ciphertexts: readonly Buffer[]): Promise<Buffer[]> {
    return (await this.decryptEach(stackIds, ciphertexts)).map((plaintext) => {
      if (plaintext) return plaintext;
      throw new InvalidRequestError(
        'The ciphertext does not belong to this stack, or is damaged. Set the value again: pulumi config set --secret',
      );
    });
  }

  /** Null for each ciphertext that belongs to none of the stacks. Looks up each key once. */
  async decryptEach(stackIds: readonly string[], ciphertexts: readonly Buffer[]): Promise<(Buffer | null)[]> {
    const keys = new Map<string, DataKey | null>();
    const slices = new Slices();
    const plaintexts: (Buffer | null)[] = [];
    for (const ciphertext of ciphertexts) {
      const id = keyIdIn(ciphertext);
      if (id !== null && !keys.has(id)) keys.set(id, await this.#keys.find(id));
      const key = id === null ? null : keys.get(id);
      plaintexts.push(
        key?.stackId && stackIds.includes(key.stackId)
          ? decryptWith(key.bytes, ciphertext.subarray(1 + keyIdBytes), Buffer.from(key.stackId))
          : null,
      );
      await slices.spend(Math.max(ciphertext.length, minSpentBytes));
    }
    return plaintexts;
  }
}

/** Null if the text is not a ciphertext of this format. */
function keyIdIn(ciphertext: Buffer): string | null {
  if (ciphertext.length <= 1 + keyIdBytes || ciphertext[0] !== formatByte) return null;
  return keyIdText(ciphertext.subarray(1, 1 + keyIdBytes));
}
