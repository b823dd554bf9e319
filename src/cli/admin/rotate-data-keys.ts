import { addVersion } from '../../shared/secrets/data-keys.ts';
import type { EncryptionKeyRepository, KeyScope } from '../../shared/secrets/encryption-key-repository.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';

/**
 * Creates a new data key for each stack of the scope that already has one. All later calls, in every process, encrypt with
 * the new key. Existing ciphertexts stay readable. Returns the number of stacks.
 */
export async function rotateStackKeys(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  scope: KeyScope,
  pageSize = 500,
): Promise<number> {
  let rotated = 0;
  for (let after: string | null = null; ; ) {
    const page: readonly string[] = await keys.listStacksWithKeys(scope, after, pageSize);
    for (const stackId of page) if (await rotateKey(keys, ring, stackId)) rotated++;
    after = page.at(-1) ?? null;
    if (after === null) return rotated;
  }
}

/**
 * Creates a new key for the stack, or for documents (null), unless a newer key already exists. Returns whether there is a newer key now,
 * even if another process created it.
 */
export async function rotateKey(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  stackId: string | null,
): Promise<boolean> {
  const last = await keys.findCurrent(stackId);
  if (!last) return false;
  if (await addVersion(keys, ring, last)) return true;
  const current = await keys.findCurrent(stackId);
  return current !== null && current.version > last.version;
}
