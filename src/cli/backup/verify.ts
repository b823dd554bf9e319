import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { verifyAudit } from '../../shared/audit/verify-audit.ts';
import { BackupBlobStore } from '../../shared/backup/backup-blob-store.ts';
import { findDamage } from '../../shared/backup/backup-content.ts';
import { BackupError, DamagedManifestError, isOutageBeside } from '../../shared/backup/backup-error.ts';
import { backupKeys } from '../../shared/backup/manifest.ts';
import { assertKnownMigrations, restoreTables } from '../../shared/backup/restore-tables.ts';
import { createTableCopyRepository } from '../../shared/backup/table-copy-repository.ts';
import { createContext } from '../../shared/context.ts';
import { once } from '../../shared/platform/blobs/blob-streams.ts';
import { startEmbeddedPostgres } from '../../shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../shared/platform/db/migrate.ts';
import { PostgresConnector } from '../../shared/platform/db/postgres-connector.ts';
import { stopOrphan } from '../../shared/platform/db/postgres-processes.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { largeTemporaryFolder } from '../../shared/platform/files/temporary-folder.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import { EncryptedSecrets } from '../../shared/secrets/encrypted-secrets.ts';
import { MasterKeyError } from '../../shared/secrets/key-ring.ts';
import { createMasterKeyRepository } from '../../shared/secrets/master-key-repository.ts';
import { openMasterKeys } from '../../shared/secrets/open-master-keys.ts';
import { checkKeys } from '../admin/rewrap-keys.ts';
import { checkSecrets } from '../admin/rewrap-secrets.ts';
import { endAfter } from '../end-after.ts';
import { readBackDocuments, reportTo } from '../fsck/read-back.ts';
import { Progress } from '../output/progress.ts';
import { type BackupCall, type OpenedBackup, openWhole } from './backup-call.ts';

const homePrefix = 'holdfast-verify-';
const orphanStopMs = 30_000;
const removal = { recursive: true, force: true, maxRetries: 5, retryDelay: 200 };

interface Verification {
  readonly backup: string;
  /** One line for each fault. */
  readonly problems: readonly string[];
  /** Says which parts were checked, and which were not. */
  readonly text: string;
}

/**
 * Reads all objects of a backup, restores it into a Postgres in a temporary folder and reads all states there, with the available master
 * keys. Throws BackupError if the backup does not exist, EmbeddedPostgresError if no embedded Postgres is installed.
 */
export async function verify(call: BackupCall, id: string | null, identity: string | undefined): Promise<Verification> {
  const { target } = call;
  const backup = await openWhole(target, id, identity).catch((error: unknown) => {
    if (error instanceof DamagedManifestError) return error;
    throw error;
  });
  if (backup instanceof DamagedManifestError)
    return { backup: backup.backup, problems: [backup.message], text: 'It was not restored for a test.' };
  const { manifest } = backup;
  assertKnownMigrations(manifest);
  const progress = new Progress();
  const problems = await findDamage(target, manifest, (done, total) => progress.report('objects', done, total));
  if (problems.length > 0)
    return { backup: manifest.id, problems, text: `Backup ${manifest.id} has faults; it was not restored for a test.` };
  const folder = await largeTemporaryFolder();
  await removeLeftovers(folder, call.session.logger);
  const home = await mkdtemp(path.join(folder, `${homePrefix}${process.pid}-`));
  const forget = endAfter(() => removeHome(home, call.session.logger));
  try {
    const verification = await verifyRestored(call, backup, home);
    if (verification.problems.length > 0) return verification;
    const isNoted = await target
      .put(backupKeys.verified(manifest.id), once(Buffer.from(`${new Date().toISOString()}\n`)))
      .then(
        () => true,
        () => false,
      );
    const note = isNoted ? '' : ' This could not be noted in the location of the backups.';
    return { ...verification, text: `${verification.text}${note}` };
  } finally {
    try {
      await rm(home, removal);
    } finally {
      await forget();
    }
  }
}

async function verifyRestored(call: BackupCall, backup: OpenedBackup, home: string): Promise<Verification> {
  const { decrypt, manifest } = backup;
  const { session, target } = call;
  const { config, logger } = session;
  // The database holds nothing that must survive.
  const postgres = await startEmbeddedPostgres(path.join(home, 'postgres'), logger, {
    flags: ['-c', 'fsync=off', '-c', 'full_page_writes=off'],
  });
  try {
    const start = { ...session.startWait, url: postgres.url, connectMs: config.database.connectTimeoutMs };
    await migrate(start, { only: manifest.migrations });
    const connection = await new PostgresConnector(postgres.url, { connectMs: start.connectMs }).connect();
    try {
      await restoreTables(createTableCopyRepository(connection.client), target, manifest, { decrypt });
    } catch (error) {
      const isFault = error instanceof BackupError ? !isOutageBeside(error) : violatedConstraint(error) !== null;
      if (!isFault) throw error;
      return { backup: manifest.id, problems: [reasonOf(error)], text: `Backup ${manifest.id} cannot be restored.` };
    } finally {
      await connection.end();
    }
    await migrate(start);
    return await readRestored(call, backup, postgres.url);
  } finally {
    await postgres.stop();
  }
}

async function readRestored(
  call: BackupCall,
  { decrypt, manifest }: OpenedBackup,
  databaseUrl: string,
): Promise<Verification> {
  const { session, target } = call;
  const { config, logger, masterKeys, startWait } = session;
  const problems: string[] = [];
  const blobs = await BackupBlobStore.open(target, manifest, decrypt);
  // Without the second store, which would stand in for damaged blobs of the backup, and be written to.
  await using context = await createContext(
    { ...config, secondStore: null },
    { databaseUrl, masterKeys },
    { logger, blobs, registersKeys: false },
  ).catch((error: unknown) => {
    if (error instanceof MasterKeyError) throw new BackupError(error.message, { cause: error });
    throw error;
  });
  const progress = new Progress();
  const documents = await readBackDocuments(context, null, { onChecked: reportTo(progress, true) });
  progress.end();
  const outage = documents.unread.find(({ error }) => isOutageBeside(error));
  if (outage) throw outage.error;
  for (const each of documents.unrepaired) problems.push(`Checkpoint ${each} is damaged`);
  for (const each of documents.damagedSegments) problems.push(`Segment of events ${each} is damaged`);
  for (const each of documents.damagedArchives) problems.push(`Archive of a policy pack ${each} is damaged`);
  for (const { error, id } of documents.unread) problems.push(`Document ${id} cannot be read: ${reasonOf(error)}`);
  const audit = await verifyAudit({ blobs, db: context.db }, null, (done, total) =>
    progress.report('batches of the audit log', done, total),
  );
  for (const { text } of audit.problems) problems.push(`Audit log: ${text}`);
  const checked = [`${documents.checked} documents`, `${audit.events} audit events`];
  let notChecked = '';
  if (masterKeys === null) notChecked = ' The data keys were not checked: HOLDFAST_MASTER_KEYS is not set.';
  else {
    const rows = createMasterKeyRepository(context.db);
    const { ring } = await openMasterKeys(masterKeys, { config, rows, wait: startWait, registers: false });
    const { byMasterKey, lost } = await checkKeys(context.encryptionKeys, ring);
    const webhooks = await checkSecrets(context.db, new EncryptedSecrets(ring));
    for (const { owner, reason, version } of lost)
      problems.push(`Data key ${version} of ${owner} cannot be unwrapped: ${reason}`);
    for (const { owner, reason } of webhooks.lost) problems.push(`Secret of ${owner} cannot be decrypted: ${reason}`);
    checked.push(`${[...byMasterKey.values()].reduce((sum, count) => sum + count, 0)} data keys`);
  }
  const text = `Backup ${manifest.id} was restored into a temporary database, and ${checked.join(', ')} were read: ${
    problems.length === 0 ? 'no faults' : `${problems.length} faults`
  }.${notChecked}`;
  return { backup: manifest.id, problems, text };
}

/** Stops the leftovers of this user's killed verifications, whose Postgres is still running. */
async function removeLeftovers(folder: string, logger: Logger): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = Number(new RegExp(`^${homePrefix}(\\d+)-`).exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    const home = path.join(folder, name);
    try {
      const { uid } = await lstat(home);
      if (uid === process.geteuid?.()) await removeHome(home, logger);
    } catch (error) {
      logger.warn({ err: error, folder: home }, 'the folder of an ended verification cannot be removed');
    }
  }
}

async function removeHome(home: string, logger: Logger): Promise<void> {
  await stopOrphan(path.join(home, 'postgres', 'cluster'), orphanStopMs, logger);
  await rm(home, removal);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
