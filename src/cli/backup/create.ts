import { createBlobHoldRepository } from '../../shared/backup/blob-hold-repository.ts';
import { createBackup } from '../../shared/backup/create-backup.ts';
import { BackupError, type Manifest } from '../../shared/backup/manifest.ts';
import { createTableCopyRepository } from '../../shared/backup/table-copy-repository.ts';
import { openBlobs } from '../../shared/context.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { PostgresConnector } from '../../shared/platform/db/postgres-connector.ts';
import type { BackupCall } from './backup-call.ts';
import { Progress } from './progress.ts';

const holdSeconds = 300;
const renewEveryMs = 60_000;
/** A backup that takes longer fails: blobs that it needs may be gone. */
const longestHoldSeconds = 24 * 3600;

/** Backs up the running installation. Throws BackupError and BlobStoreUnavailableError. */
export async function create({ session, target }: BackupCall): Promise<Manifest> {
  const { config, logger } = session;
  return session.withDatabase(async (db, url) => {
    await using hold = await holdBlobs(db);
    const connection = await new PostgresConnector(url, { connectMs: config.database.connectTimeoutMs }).connect();
    const blobs = await openBlobs(config, logger);
    const progress = new Progress();
    try {
      return await hold.during(
        createBackup({
          ...{ blobs, target, copies: createTableCopyRepository(connection.client) },
          onProgress: ({ done, step, total }) => progress.report(step, done, total),
        }),
      );
    } finally {
      await blobs.close();
      await connection.end();
    }
  });
}

/** Keeps all blobs from becoming due for deletion until it is disposed of. */
async function holdBlobs(db: Database) {
  const holds = createBlobHoldRepository(db);
  const id = await holds.insert(holdSeconds, longestHoldSeconds);
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => {});
  const timer = setInterval(() => {
    // An attempt that fails is repeated: the hold lasts several.
    holds.renew(id, holdSeconds).then(
      (isHeld) =>
        isHeld || reject(new BackupError('The backup took too long: blobs that it needs may be deleted by now')),
      () => {},
    );
  }, renewEveryMs);
  return {
    /** Fails as soon as the hold is lost. */
    during: <T>(work: Promise<T>): Promise<T> => Promise.race([work, lost]),
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      await holds.delete(id).catch(() => {});
    },
  };
}
