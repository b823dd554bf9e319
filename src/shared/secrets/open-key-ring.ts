import { type Config, ConfigError } from '../platform/config/config.ts';
import { repeatAtStart } from '../platform/db/postgres-start.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { EncryptionKeyRepository } from './encryption-key-repository.ts';
import type { KeyRing } from './key-ring.ts';
import type { MasterKeyRepository } from './master-key-repository.ts';
import { openMasterKeys, type Registration } from './open-master-keys.ts';

/**
 * Null if no master keys are set and none are needed; the process can then neither decrypt secrets nor read or write encrypted documents.
 * Throws ConfigError if keys are missing but documents are or were encrypted, MasterKeyError if a key differs from the one used under its
 * id, and PartUnavailableError if a KMS does not unwrap a key.
 */
export async function openKeyRing(
  config: Config,
  masterKeys: string | null,
  {
    encryptionKeys,
    logger,
    masterKeyRows: rows,
    registers,
  }: {
    encryptionKeys: EncryptionKeyRepository;
    logger: Logger;
    masterKeyRows: MasterKeyRepository;
    registers: Registration;
  },
): Promise<KeyRing | null> {
  const wait = { waitMs: config.startWaitMs, logger };
  if (masterKeys !== null) return (await openMasterKeys(masterKeys, { config, rows, wait, registers })).ring;
  const refuse = (reason: string): never => {
    throw new ConfigError(`Invalid settings:\n  HOLDFAST_MASTER_KEYS: ${reason}`);
  };
  if (config.encryption.encryptsDocuments) refuse('needed with HOLDFAST_ENCRYPT_DOCUMENTS');
  if (config.bundleUrl !== null) refuse('needed with HOLDFAST_BUNDLE_URL');
  if (await repeatAtStart(() => encryptionKeys.hasDocumentKeys(), wait)) {
    refuse('needed because documents in the blob store are encrypted, or have been');
  }
  return null;
}
