import { createHash } from 'node:crypto';

const firstSlots = 1024;

/**
 * Keeps only 64 bits of each key, in 16 to 32 bytes. `has` is always right for an added key; among a million keys, it is wrong for another
 * one once in 10¹³ calls.
 */
export class KeySet {
  /** Open addressing; 0 is a free slot. */
  #slots = new BigUint64Array(firstSlots);
  #size = 0;

  add(key: string): void {
    if (this.#size * 2 >= this.#slots.length) this.#grow();
    const hash = hashOf(key);
    const at = this.#find(hash);
    if (this.#slots[at] === hash) return;
    this.#slots[at] = hash;
    this.#size++;
  }

  has(key: string): boolean {
    const hash = hashOf(key);
    return this.#slots[this.#find(hash)] === hash;
  }

  /** Returns the slot of the hash, or the free slot where it belongs. */
  #find(hash: bigint): number {
    const mask = this.#slots.length - 1;
    let at = Number(hash & BigInt(mask));
    for (let found = this.#slots[at]; found !== 0n && found !== hash; found = this.#slots[at]) at = (at + 1) & mask;
    return at;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new BigUint64Array(old.length * 2);
    for (const hash of old) if (hash !== 0n) this.#slots[this.#find(hash)] = hash;
  }
}

function hashOf(key: string): bigint {
  const hash = createHash('sha256').update(key).digest().readBigUInt64LE();
  return hash === 0n ? 1n : hash;
}
