import { addVersion } from './data-keys.ts';
import type { EncryptionKeyRepository, KeyScope } from './encryption-key-repository.ts';
import type { KeyRing } from './key-ring.ts';

/**
 * Gives each stack of the scope that has a data key a new one. Whatever is encrypted by a call that comes after is encrypted by
 * it, in every process; what was encrypted before stays readable. Returns the number of stacks.
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
 * Gives the stack, or documents (null), a new key after the one they have; does nothing where there is none yet. Returns whether
 * there is a newer one now, be it that of another process.
 */
export async function rotateKey(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  stackId: string | null,
): Promise<boolean> {
  const last = await keys.findCurrent(stackId);
  if (!last) return false;
  if (await addVersion(keys, ring, last)) return true;
  const now = await keys.findCurrent(stackId);
  return now !== null && now.version > last.version;
}
