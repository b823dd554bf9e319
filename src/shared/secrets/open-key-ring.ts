import { type Config, ConfigError } from '../platform/config/config.ts';
import { repeatAtStart } from '../platform/db/postgres-start.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { EncryptionKeyRepository } from './encryption-key-repository.ts';
import { KeyRing } from './key-ring.ts';

/**
 * The key ring of this process; null when it has none and can do without: then it can neither write nor read sealed documents,
 * nor open secrets. Throws ConfigError when documents are sealed, or have ever been, and MasterKeyError.
 */
export async function openKeyRing(
  config: Config,
  masterKeys: string | null,
  { encryptionKeys, logger }: { encryptionKeys: EncryptionKeyRepository; logger: Logger },
): Promise<KeyRing | null> {
  if (masterKeys !== null) return new KeyRing(masterKeys);
  const refuse = (reason: string): never => {
    throw new ConfigError(`Invalid settings:\n  HOLDFAST_MASTER_KEYS: ${reason}`);
  };
  if (config.encryption.sealsDocuments) refuse('needed with HOLDFAST_SEAL_DOCUMENTS');
  const wait = { waitMs: config.startWaitMs, logger };
  if (await repeatAtStart(() => encryptionKeys.hasDocumentKeys(), wait)) {
    refuse('needed because documents in the blob store are sealed, or have been');
  }
  return null;
}
