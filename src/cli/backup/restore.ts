import path from 'node:path';
import { copyBlobs } from '../../shared/backup/backup-content.ts';
import { openBackup } from '../../shared/backup/backup-list.ts';
import { assertKnownMigrations, loadTables } from '../../shared/backup/load-backup.ts';
import { BackupError, type Manifest } from '../../shared/backup/manifest.ts';
import { createTableCopyRepository } from '../../shared/backup/table-copy-repository.ts';
import { openOwnBlobs } from '../../shared/context.ts';
import { claimDataDir, masterKeysFile } from '../../shared/platform/config/data-dir.ts';
import { openDatabase } from '../../shared/platform/db/database.ts';
import { startEmbeddedPostgres } from '../../shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../shared/platform/db/migrate.ts';
import { PostgresConnector } from '../../shared/platform/db/postgres-connector.ts';
import { parseMasterKeys } from '../../shared/secrets/master-key-list.ts';
import type { AdminSession } from '../admin/admin-session.ts';
import { afterRestore } from '../admin/after-restore-command.ts';
import type { BackupCall } from './backup-call.ts';
import { Progress } from './progress.ts';

/**
 * Restores a backup: first the blobs that the store lacks, then the database, in one transaction, and ends the updates that were running.
 * An interrupted restore changes nothing in the database and can be repeated. Throws BackupError for a database that is not empty.
 */
export async function restore(call: BackupCall, id: string | null): Promise<void> {
  const manifest = await openBackup(call.target, id);
  assertKnownMigrations(manifest);
  if (manifest.missingBlobs.length > 0)
    console.error(`Backup ${manifest.id} lacks ${manifest.missingBlobs.length} blobs: their states cannot be read.`);
  await withPostgres(call.session, (url) => restoreInto(url, call, manifest));
  console.log(
    [
      `Restored backup ${manifest.id}, as of ${manifest.takenAt}.`,
      ...masterKeyLines(call.session, manifest),
      'Then start the servers. Stacks that were updated after that time need `pulumi refresh`.',
    ].join('\n'),
  );
}

/** What is to do so that the restored secrets can be read. */
function masterKeyLines({ config, masterKeys }: AdminSession, manifest: Manifest): string[] {
  const present = new Set(masterKeys === null ? [] : parseMasterKeys(masterKeys).map((key) => key.id));
  const absent = manifest.masterKeys.filter((key) => !present.has(key));
  if (absent.length === 0) return [];
  const file = config.database.url === null ? ` or copy the file to ${masterKeysFile(config.dataDir)}` : '';
  return [`The master keys ${absent.join(', ')} are needed, and not here: set HOLDFAST_MASTER_KEYS${file}.`];
}

async function restoreInto(url: string, { session, target }: BackupCall, manifest: Manifest): Promise<void> {
  const { config, logger, startWait } = session;
  const { connectTimeoutMs: connectMs } = config.database;
  const start = { ...startWait, url, connectMs };
  const progress = new Progress();
  const connection = await new PostgresConnector(url, { connectMs }).connect();
  try {
    const copies = createTableCopyRepository(connection.client);
    if (await copies.isUsed())
      throw new BackupError(
        'The database is not empty. Restore into a new one: the old one may have updates that the backup lacks',
      );
    const blobs = await openOwnBlobs(config, logger);
    try {
      await copyBlobs(target, blobs, manifest, (done, total) => progress.report('blobs', done, total));
    } finally {
      await blobs.close();
    }
    await migrate(start, { count: manifest.migrations.length });
    await loadTables(copies, target, manifest, {
      onTable: (done, total) => progress.report('tables', done, total),
    });
  } finally {
    await connection.end();
  }
  await migrate(start);
  const db = await openDatabase({ ...config.database, url, poolSize: 2 });
  try {
    await afterRestore(db);
  } finally {
    await db.close();
  }
}

/** Runs `work` with HOLDFAST_DATABASE_URL or, without it, with a Postgres on the data directory of a server that does not run. */
async function withPostgres(session: AdminSession, work: (url: string) => Promise<void>): Promise<void> {
  const { config, logger } = session;
  if (config.database.url !== null) return work(config.database.url);
  const claim = await claimDataDir(config.dataDir, logger);
  try {
    const postgres = await startEmbeddedPostgres(path.join(config.dataDir, 'postgres'), logger, {
      takeLock: () => claim.lockFor('postgres'),
    });
    try {
      await work(postgres.url);
    } finally {
      await postgres.stop();
    }
  } finally {
    claim.release();
  }
}
