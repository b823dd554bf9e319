import type { BlobStore } from '../platform/blobs/blob-store.ts';
import type { Database } from '../platform/db/database.ts';
import type { PostgresConnection } from '../platform/db/postgres-connector.ts';
import { encryptToRecipients } from './backup-encryption.ts';
import { BackupError } from './backup-error.ts';
import { createBlobHoldRepository, holdSeconds } from './blob-hold-repository.ts';
import type { BackupSource } from './checked-blob.ts';
import { type BackupProgress, createBackup } from './create-backup.ts';
import type { Manifest } from './manifest.ts';
import { BodyPace } from './stored-bytes.ts';
import { createTableCopyRepository } from './table-copy-repository.ts';

const renewEveryMs = 60_000;
/** A backup that takes longer fails, because blobs that it needs may be gone. */
const longestHoldSeconds = 24 * 3600;

/** During the backup, no blob becomes due for deletion. */
export async function backUp({
  bytesPerSecond,
  onProgress = () => {},
  recipients,
  signal,
  source,
  target,
}: {
  readonly source: BackupSource & { readonly db: Database };
  readonly bytesPerSecond?: number | undefined;
  /** Age recipients; empty if everybody can read the backup. */
  readonly recipients: readonly string[];
  readonly onProgress?: (progress: BackupProgress) => void;
  readonly signal?: AbortSignal;
  readonly target: BlobStore;
}): Promise<Manifest> {
  const { db } = source;
  const encryption = await encryptToRecipients(recipients);
  const pace = new BodyPace(bytesPerSecond);
  const holds = createBlobHoldRepository(db);
  const id = await holds.insert(holdSeconds, longestHoldSeconds);
  const lost = new AbortController();
  const renew = (): void => {
    // A failed renewal is repeated: the hold outlasts several.
    holds.renew(id, holdSeconds).then(
      (isHeld) =>
        isHeld || lost.abort(new BackupError('The backup took too long: blobs that it needs may be deleted by now')),
      () => {},
    );
  };
  let timer: NodeJS.Timeout | undefined;
  let connection: PostgresConnection | undefined;
  try {
    timer = setInterval(renew, renewEveryMs);
    connection = await db.openSession();
    return await createBackup({
      ...{ onProgress, pace, encryption, source, target, copies: createTableCopyRepository(connection.client) },
      signal: AbortSignal.any([lost.signal, ...(signal ? [signal] : [])]),
    });
  } finally {
    clearInterval(timer);
    await connection?.end();
    await holds.delete(id).catch(() => {});
  }
}
