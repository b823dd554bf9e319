import { KmsError } from '../../shared/platform/kms/kms.ts';
import type { EncryptionKeyRepository, EncryptionKeyRow } from '../../shared/secrets/encryption-key-repository.ts';
import { type KeyRing, MasterKeyError } from '../../shared/secrets/key-ring.ts';
import type { MasterKeyRepository } from '../../shared/secrets/master-key-repository.ts';
import { kmsContext, type WrappedMasterKey } from '../../shared/secrets/open-master-keys.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';

const keysPerPage = 500;

export interface LostKey {
  /** `organization/project/stack`, or a description of another owner of the key. */
  readonly owner: string;
  readonly version: number;
  readonly masterKeyId: string;
  readonly reason: string;
}

/**
 * Wraps all data keys of every version with the ring's first master key, so that the others can be removed from the ring. The data keys
 * themselves do not change, and neither do the ciphertexts inside states. Servers may run meanwhile. Returns keys that the ring cannot
 * unwrap as `lost`.
 */
export async function rewrapKeys(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
  pageSize = keysPerPage,
): Promise<{ rewrapped: number; lost: LostKey[] }> {
  let rewrapped = 0;
  const page = (after: string | null) => keys.listWrappedByOthers(ring.currentId, after, pageSize);
  const lost = await forEachKey(keys, page, async (row) => {
    const dataKey = ring.unwrap(row.masterKeyId, row.wrappedKey, row.stackId);
    if (await keys.rewrap(row, ring.wrap(dataKey, row.stackId))) rewrapped++;
  });
  return { rewrapped, lost };
}

/**
 * Lets each KMS rewrap its master keys with the newest version of its key, so that older versions can be disabled. A wrapped key is
 * replaced only after the KMS has unwrapped the new one. Throws KmsError.
 */
export async function renewWrapping(rows: MasterKeyRepository, wrapped: readonly WrappedMasterKey[]): Promise<void> {
  for (const { bytes, id, kms } of wrapped) {
    const row = await rows.find(id);
    if (!row?.wrappedKey) continue;
    const wrappedKey = await kms.wrap(bytes, kmsContext(id));
    if (!(await kms.unwrap(wrappedKey, kmsContext(id))).equals(bytes))
      throw new KmsError(kms, 'refused', 'it does not unwrap what it has just wrapped');
    await rows.rewrap(id, row.wrappedKey, { wrappedKey, wrappedBy: kms.name });
  }
}

/** Counts the keys by master key; `lost` ones cannot be unwrapped. */
export async function checkKeys(
  keys: EncryptionKeyRepository,
  ring: KeyRing,
): Promise<{ byMasterKey: ReadonlyMap<string, number>; lost: LostKey[] }> {
  const byMasterKey = new Map<string, number>();
  const lost = await forEachKey(
    keys,
    (after) => keys.listAfter(after, keysPerPage),
    async ({ masterKeyId, wrappedKey, stackId }) => {
      byMasterKey.set(masterKeyId, (byMasterKey.get(masterKeyId) ?? 0) + 1);
      ring.unwrap(masterKeyId, wrappedKey, stackId);
    },
  );
  return { byMasterKey, lost };
}

async function forEachKey(
  keys: EncryptionKeyRepository,
  list: (after: string | null) => Promise<readonly EncryptionKeyRow[]>,
  work: (row: EncryptionKeyRow) => Promise<void>,
): Promise<LostKey[]> {
  const lost: LostKey[] = [];
  for (let after: string | null = null; ; ) {
    const page: readonly EncryptionKeyRow[] = await list(after);
    const failed: { row: EncryptionKeyRow; reason: string }[] = [];
    for (const row of page) {
      try {
        await work(row);
      } catch (error) {
        if (!(error instanceof MasterKeyError)) throw error;
        failed.push({ row, reason: error.message });
      }
    }
    lost.push(...(await nameOwners(keys, failed)));
    after = page.at(-1)?.id ?? null;
    if (after === null) return lost;
  }
}

async function nameOwners(
  keys: EncryptionKeyRepository,
  failed: readonly { row: EncryptionKeyRow; reason: string }[],
): Promise<LostKey[]> {
  const stackIds = failed.flatMap(({ row }) => row.stackId ?? []);
  const names = stackIds.length === 0 ? [] : await keys.listStackNames(stackIds);
  const nameOf = new Map(names.map((stack) => [stack.id, formatStackRef(stack)]));
  return failed.map(({ row: { stackId, version, masterKeyId }, reason }) => ({
    owner: stackId === null ? 'documents in the blob store' : (nameOf.get(stackId) ?? `deleted stack ${stackId}`),
    version,
    masterKeyId,
    reason,
  }));
}
