import type { Manifest } from '../../shared/backup/manifest.ts';
import { backUp } from '../../shared/backup/run-backup.ts';
import { Progress } from '../output/progress.ts';
import type { BackupCall } from './backup-call.ts';

interface CreateOptions {
  readonly bytesPerSecond?: number | undefined;
  /** Null: the recipients of the settings. */
  readonly recipients: readonly string[] | null;
}

/** Throws BackupError and BlobStoreUnavailableError. */
export async function create({ session, target }: BackupCall, options: CreateOptions): Promise<Manifest> {
  // Without keys, encrypted blobs are copied but not compared.
  const keys = session.masterKeys === null ? { ring: null } : {};
  return session.withContext(async (source) => {
    const progress = new Progress();
    return backUp({
      ...{ source, target, bytesPerSecond: options.bytesPerSecond },
      recipients: options.recipients ?? session.config.backup.recipients,
      onProgress: ({ done, step, total }) => progress.report(step, done, total),
    });
  }, keys);
}
