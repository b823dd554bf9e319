import { randomBytes } from 'node:crypto';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import type { EncryptionKeyRepository, EncryptionKeyRow } from './encryption-key-repository.ts';
import { type KeyRing, seal, unseal } from './key-ring.ts';

/**
 * Ciphertext: one format byte, the id of the data key (16 bytes), then nonce, ciphertext and tag of AES-256-GCM with the
 * immutable stack id as context. The key id lets a ciphertext outlive renames of its stack.
 */
const formatByte = 1;
const keyIdBytes = 16;
const maxCachedKeys = 10_000;

/** Encrypts and decrypts the secrets of stacks. Keeps unwrapped data keys in memory, plaintexts never. */
export class StackCipher {
  readonly #keys: EncryptionKeyRepository;
  readonly #ring: KeyRing;
  readonly #cache = new Map<string, { stackId: string; dataKey: Buffer }>();
  readonly #keyIdOfStack = new Map<string, string>();

  constructor(keys: EncryptionKeyRepository, ring: KeyRing) {
    this.#keys = keys;
    this.#ring = ring;
  }

  async encrypt(stackId: string, plaintexts: readonly Buffer[]): Promise<Buffer[]> {
    const { keyId, dataKey } = await this.#keyForStack(stackId);
    const header = Buffer.concat([Buffer.from([formatByte]), Buffer.from(keyId.replaceAll('-', ''), 'hex')]);
    const context = Buffer.from(stackId);
    return plaintexts.map((plaintext) => Buffer.concat([header, seal(dataKey, plaintext, context)]));
  }

  /**
   * Decrypts ciphertexts of the stacks given (the one addressed, and those that had its name before).
   * Throws InvalidRequestError when one is not theirs.
   */
  async decrypt(stackIds: readonly string[], ciphertexts: readonly Buffer[]): Promise<Buffer[]> {
    const plaintexts: Buffer[] = [];
    for (const ciphertext of ciphertexts) {
      const key = await this.#keyOfCiphertext(ciphertext);
      const plaintext =
        key && stackIds.includes(key.stackId)
          ? unseal(key.dataKey, ciphertext.subarray(1 + keyIdBytes), Buffer.from(key.stackId))
          : null;
      if (!plaintext) throw new InvalidRequestError('The ciphertext was not made by this stack, or is damaged');
      plaintexts.push(plaintext);
    }
    return plaintexts;
  }

  async #keyForStack(stackId: string): Promise<{ keyId: string; dataKey: Buffer }> {
    const known = this.#keyIdOfStack.get(stackId);
    const cached = known ? this.#cache.get(known) : undefined;
    if (known && cached) return { keyId: known, dataKey: cached.dataKey };
    const row =
      (await this.#keys.findByStack(stackId)) ??
      (await this.#keys.insertOrGet({ stackId, ...this.#ring.wrap(randomBytes(32), stackId) }));
    return { keyId: row.id, dataKey: this.#remember(row) };
  }

  async #keyOfCiphertext(ciphertext: Buffer): Promise<{ stackId: string; dataKey: Buffer } | null> {
    if (ciphertext.length <= 1 + keyIdBytes || ciphertext[0] !== formatByte) return null;
    const hex = ciphertext.subarray(1, 1 + keyIdBytes).toString('hex');
    const keyId = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    const cached = this.#cache.get(keyId);
    if (cached) return cached;
    const row = await this.#keys.findById(keyId);
    return row ? { stackId: row.stackId, dataKey: this.#remember(row) } : null;
  }

  #remember(row: EncryptionKeyRow): Buffer {
    const dataKey = this.#ring.unwrap(row.masterKeyId, row.wrappedKey, row.stackId);
    if (this.#cache.size >= maxCachedKeys) {
      this.#cache.clear();
      this.#keyIdOfStack.clear();
    }
    this.#cache.set(row.id, { stackId: row.stackId, dataKey });
    this.#keyIdOfStack.set(row.stackId, row.id);
    return dataKey;
  }
}
