import { type Config, ConfigError } from '../platform/config/config.ts';
import { repeatAtStart } from '../platform/db/postgres-start.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { EncryptionKeyRepository } from './encryption-key-repository.ts';
import { KeyRing } from './key-ring.ts';

/**
 * Opens the key ring of this process. Returns null if no master keys are set and none are needed; the process can then
 * neither decrypt secrets nor read or write sealed documents. Throws ConfigError if keys are missing but documents are
 * or were sealed, and MasterKeyError.
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
