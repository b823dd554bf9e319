import type { Manifest } from '../../shared/backup/manifest.ts';
import { backUp } from '../../shared/backup/run-backup.ts';
import { openBothBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import type { BackupCall } from './backup-call.ts';
import { Progress } from './progress.ts';

interface CreateOptions {
  readonly bytesPerSecond?: number | undefined;
  /** Null: as the settings say. */
  readonly recipients: readonly string[] | null;
}

/** Backs up the running installation. Throws BackupError and BlobStoreUnavailableError. */
export async function create({ session, target }: BackupCall, options: CreateOptions): Promise<Manifest> {
  return session.withDatabase(async (db) => {
    const blobs = await openBothBlobs({ config: session.config, db, logger: session.logger });
    const progress = new Progress();
    try {
      return await backUp({
        ...{ blobs, db, target, bytesPerSecond: options.bytesPerSecond },
        recipients: options.recipients ?? session.config.backup.recipients,
        onProgress: ({ done, step, total }) => progress.report(step, done, total),
      });
    } finally {
      await blobs.close();
    }
  });
}
