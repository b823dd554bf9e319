import type { EncryptionKeyRepository } from './encryption-key-repository.ts';
import type { KeyRing } from './key-ring.ts';

/**
 * Wraps the data keys of all stacks by the ring's first master key, so that the others can leave the ring. The data keys
 * themselves, and with them the ciphertexts inside states, stay what they are; servers may run meanwhile. Keys that the
 * ring cannot unwrap are left as they are, and told.
 */
export async function rewrapKeys(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  pageSize = 500,
): Promise<{ rewrapped: number; failures: string[] }> {
  let rewrapped = 0;
  const failures: string[] = [];
  let after: string | null = null;
  for (;;) {
    const page = await keys.listWrappedByOthers(ring.currentId, after, pageSize);
    for (const row of page) {
      try {
        const dataKey = ring.unwrap(row.masterKeyId, row.wrappedKey, row.stackId);
        if (await keys.rewrap(row, ring.wrap(dataKey, row.stackId))) rewrapped++;
      } catch (error) {
        failures.push((error as Error).message);
      }
    }
    after = page.at(-1)?.id ?? null;
    if (after === null) return { rewrapped, failures };
  }
}
