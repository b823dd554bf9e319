import type { Database } from '../../shared/platform/db/database.ts';
import type { EncryptedSecrets } from '../../shared/secrets/encrypted-secrets.ts';
import { MasterKeyError } from '../../shared/secrets/key-ring.ts';
import { secretOwner } from '../../shared/webhooks/delivery-attempt.ts';
import { createWebhookRepository } from '../../shared/webhooks/webhook-repository.ts';
import type { LostKey } from './rewrap-keys.ts';

const pageSize = 500;

/**
 * Encrypts the secrets of all webhooks with the first master key, so that the others can be retired. Servers may run meanwhile. Returns
 * secrets that cannot be decrypted as `lost`.
 */
export function rewrapSecrets(db: Database, secrets: EncryptedSecrets): Promise<{ done: number; lost: LostKey[] }> {
  return forEachSecret(db, secrets, secrets.currentId, async ({ id, opened, encrypted }) => {
    await db.inTransaction(async (tx) => {
      const next = await secrets.encrypt(tx, secretOwner(id), opened);
      await createWebhookRepository(tx).replaceSecret(id, encrypted, next);
    });
  });
}

/** Counts the secrets of all webhooks by master key; `lost` ones cannot be decrypted. */
export async function checkSecrets(
  db: Database,
  secrets: EncryptedSecrets,
): Promise<{ done: number; byMasterKey: ReadonlyMap<string, number>; lost: LostKey[] }> {
  const byMasterKey = new Map<string, number>();
  const count = (id: string): unknown => byMasterKey.set(id, (byMasterKey.get(id) ?? 0) + 1);
  const { done, lost } = await forEachSecret(db, secrets, null, async ({ masterKeyId }) => void count(masterKeyId));
  for (const { masterKeyId } of lost) count(masterKeyId);
  return { done, byMasterKey, lost };
}

async function forEachSecret(
  db: Database,
  secrets: EncryptedSecrets,
  except: string | null,
  work: (secret: { id: string; masterKeyId: string; opened: string; encrypted: Buffer }) => Promise<void>,
): Promise<{ done: number; lost: LostKey[] }> {
  const webhooks = createWebhookRepository(db);
  const lost: LostKey[] = [];
  let done = 0;
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof webhooks.listSecrets>> = await webhooks.listSecrets(except, after, pageSize);
    for (const { id, masterKeyId, encrypted } of page) {
      try {
        await work({ id, masterKeyId, encrypted, opened: secrets.open(secretOwner(id), { masterKeyId, encrypted }) });
        done++;
      } catch (error) {
        if (!(error instanceof MasterKeyError)) throw error;
        lost.push({ owner: secretOwner(id), version: 1, masterKeyId, reason: error.message });
      }
    }
    after = page.at(-1)?.id ?? null;
    if (after === null) return { done, lost };
  }
}
