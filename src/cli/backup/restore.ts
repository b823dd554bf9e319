import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CopiedBlobs, copyBlobs } from '../../shared/backup/backup-content.ts';
import { BackupError } from '../../shared/backup/backup-error.ts';
import type { Manifest } from '../../shared/backup/manifest.ts';
import { assertKnownMigrations, assertLoadable, restoreTables } from '../../shared/backup/restore-tables.ts';
import {
  createStackHeadRepository,
  type StackHeadRepository,
  type StackHeadRow,
} from '../../shared/backup/stack-head-repository.ts';
import { createTableCopyRepository, type TableCopyRepository } from '../../shared/backup/table-copy-repository.ts';
import { openOwnBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import { claimDataDir, masterKeysFile } from '../../shared/platform/config/data-dir.ts';
import { openDatabase } from '../../shared/platform/db/database.ts';
import { clusterFolder, startEmbeddedPostgres } from '../../shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../shared/platform/db/migrate.ts';
import { PostgresConnector } from '../../shared/platform/db/postgres-connector.ts';
import { stopOrphan } from '../../shared/platform/db/postgres-processes.ts';
import { parseMasterKeys } from '../../shared/secrets/master-key-list.ts';
import type { AdminSession } from '../admin/admin-session.ts';
import { afterRestore, endedText, revokedText } from '../admin/after-restore-command.ts';
import { endAfter } from '../end-after.ts';
import { Progress } from '../output/progress.ts';
import { type BackupCall, type OpenedBackup, openWhole } from './backup-call.ts';

const lockWaitMs = 5_000;
const lockPollMs = 200;
const stopMs = 60_000;

interface RestoreOptions {
  readonly identity?: string | undefined;
  /** URL of the database that was backed up. */
  readonly compareWith?: string | undefined;
}

/** A stack that differs between the old database and the restored one. */
interface WrittenStack {
  /** organization/project/stack */
  readonly stack: string;
  readonly change: 'updated' | 'created' | 'deleted';
  /** In each database; null: the database does not have the stack. */
  readonly restoredVersion: number | null;
  readonly oldVersion: number | null;
  /** The time in the old database. */
  readonly changedAt: string | null;
}

export interface Restoration {
  readonly backup: string;
  readonly takenAt: string;
  /** The secrets need these master keys. */
  readonly missingMasterKeys: readonly string[];
  readonly missingBlobs: readonly string[];
  /** The store keeps these although the backup may have had other bytes: its copies are damaged. */
  readonly unsureBlobs: readonly string[];
  readonly endedUpdates: number;
  /** After the backup; null: no old database was compared. */
  readonly writtenAfter: readonly WrittenStack[] | null;
}

type Outcome = Pick<Restoration, 'endedUpdates' | 'unsureBlobs' | 'writtenAfter'>;

/**
 * First the blobs that the store lacks or has with other bytes, then the database, in one transaction. Then ends the updates that were
 * running. An interrupted restore can be repeated; if the database was loaded, it continues from there. Throws BackupError for a database
 * that is not empty.
 */
export async function restore(call: BackupCall, id: string | null, options: RestoreOptions): Promise<Restoration> {
  const backup = await openWhole(call.target, id, options.identity);
  const { manifest } = backup;
  assertKnownMigrations(manifest);
  return restorationOf(
    call,
    manifest,
    await withPostgres(call.session, (url) => restoreInto(url, call, backup, options)),
  );
}

/**
 * Only the blobs that the store lacks or has with other bytes, even beside servers of the restored database. Blobs that nothing needs are
 * left to the sweep.
 */
export async function restoreBlobs(
  call: BackupCall,
  id: string | null,
  { identity }: Pick<RestoreOptions, 'identity'>,
): Promise<{ readonly copied: number; readonly restoration: Restoration }> {
  const backup = await openWhole(call.target, id, identity);
  const { copied, unsure: unsureBlobs } = await putBlobs(call, backup, new Progress());
  const nothing = { endedUpdates: 0, writtenAfter: null };
  return { copied, restoration: restorationOf(call, backup.manifest, { ...nothing, unsureBlobs }) };
}

function restorationOf({ session }: BackupCall, manifest: Manifest, outcome: Outcome): Restoration {
  return {
    backup: manifest.id,
    takenAt: manifest.takenAt,
    missingMasterKeys: findMissingKeys(session, manifest),
    missingBlobs: [...manifest.missingBlobs, ...(manifest.wrongBlobs ?? [])],
    ...outcome,
  };
}

async function putBlobs(
  { session, target }: BackupCall,
  { decrypt, manifest }: OpenedBackup,
  progress: Progress,
): Promise<CopiedBlobs> {
  const blobs = await openOwnBlobs(session.config, session.logger);
  try {
    const onProgress = (done: number, total: number) => progress.report('blobs', done, total);
    return await copyBlobs(target, blobs, manifest, { onProgress, decrypt });
  } finally {
    await blobs.close();
  }
}

export function restorationText({ config }: AdminSession, restoration: Restoration): string {
  const { backup, endedUpdates, missingBlobs, missingMasterKeys, takenAt, unsureBlobs, writtenAfter } = restoration;
  const file = masterKeysFile(config.dataDir);
  const place = existsSync(file) ? `add them to ${file}` : `copy their file to ${file}`;
  const orPlace = config.database.url === null ? ` or ${place}` : '';
  return [
    endedText(endedUpdates),
    `Restored backup ${backup}, as of ${takenAt}.`,
    ...(missingBlobs.length > 0 ? [`It lacks ${missingBlobs.length} blobs: their states cannot be read.`] : []),
    ...unsureBlobs.map((key) => `Its copy of ${key} is damaged: the blob store keeps its own.`),
    ...(missingMasterKeys.length > 0
      ? [
          `The master keys ${missingMasterKeys.join(', ')} are missing: before you start the servers, set HOLDFAST_MASTER_KEYS${orPlace}.`,
        ]
      : []),
    ...(writtenAfter === null ? [] : writtenLines(writtenAfter)),
    revokedText,
    'Webhooks, audit events, the bundle and scheduled backups wait, and this database deletes nothing by age or from the blob store, until `holdfast admin take-over`. Servers of the old database may still delete there: stop them.',
    'Then start the servers. Stacks that were updated after that time need `pulumi state repair` and `pulumi refresh`.',
  ].join('\n');
}

function writtenLines(written: readonly WrittenStack[]): string[] {
  if (written.length === 0) return ['The old database has no stack that differs.'];
  const lines = written.map(({ change, changedAt, oldVersion, restoredVersion, stack }) => {
    if (change === 'deleted') return `  ${stack}: deleted after the backup`;
    const at = `last changed ${changedAt}`;
    if (change === 'created') return `  ${stack}: created after the backup, version ${oldVersion}, ${at}`;
    return `  ${stack}: version ${restoredVersion} is restored, ${oldVersion} was the newest, ${at}`;
  });
  return [`Written in the old database after the backup, and not restored (${written.length} stacks):`, ...lines];
}

function findMissingKeys({ masterKeys }: AdminSession, manifest: Manifest): string[] {
  const present = new Set(masterKeys === null ? [] : parseMasterKeys(masterKeys).map((key) => key.id));
  return manifest.masterKeys.filter((key) => !present.has(key));
}

async function restoreInto(
  url: string,
  call: BackupCall,
  backup: OpenedBackup,
  { compareWith }: RestoreOptions,
): Promise<Outcome> {
  const { session, target } = call;
  const { decrypt, manifest } = backup;
  const { config, startWait } = session;
  const { connectTimeoutMs: connectMs } = config.database;
  const start = { ...startWait, url, connectMs };
  const progress = new Progress();
  const connection = await new PostgresConnector(url, { connectMs }).connect();
  try {
    const copies = createTableCopyRepository(connection.client);
    // Behind a pooler, the lock would outlive the restore. The check in the transaction of the load decides.
    if (!connection.isPooled) await lockRestore(copies);
    const unfinished = await findUnfinished(copies);
    if (unfinished !== null && unfinished !== manifest.id)
      throw new BackupError(
        `A restore of backup ${unfinished} was interrupted after it had loaded the database: repeat it with this id, or take a new database`,
      );
    let unsureBlobs: readonly string[] = [];
    if (unfinished === null) {
      // Checked before the blobs are copied, which takes long.
      await assertLoadable(copies, manifest);
      ({ unsure: unsureBlobs } = await putBlobs(call, backup, progress));
      await migrate(start, { only: manifest.migrations });
      await restoreTables(copies, target, manifest, {
        onTable: (done, total) => progress.report('tables', done, total),
        beforeCommit: async () => {
          await copies.markRestore(manifest.id);
          // A server may start before the restore has ended, or after it was interrupted.
          await copies.holdOutgoing();
        },
        decrypt,
      });
    }
    await migrate(start);
    // Repeated, because the loaded database may come from a release without this hold.
    await copies.holdOutgoing();
    const writtenAfter =
      compareWith === undefined
        ? null
        : await compare(createStackHeadRepository(connection.client), compareWith, connectMs);
    const db = await openDatabase({ ...config.database, url, poolSize: 2 });
    try {
      const endedUpdates = await afterRestore(db);
      await copies.markRestore(null);
      return { endedUpdates, unsureBlobs, writtenAfter };
    } finally {
      await db.close();
    }
  } finally {
    await connection.end();
  }
}

/** Waits a little for the session of a killed restore. Throws BackupError if another restore is running. */
async function lockRestore(copies: TableCopyRepository): Promise<void> {
  for (const deadline = performance.now() + lockWaitMs; await copies.lockRestore(); await sleep(lockPollMs))
    if (performance.now() >= deadline)
      throw new BackupError(
        'Another restore into this database runs, maybe without its terminal: wait until it has ended, or end its process',
      );
}

/** The backup whose restore was interrupted; null: the database is empty. Throws BackupError if the database is in use. */
async function findUnfinished(copies: TableCopyRepository): Promise<string | null> {
  if (!(await copies.isUsed())) return null;
  const unfinished = await copies.readRestoreMark();
  if (unfinished !== null) return unfinished;
  throw new BackupError(
    'The database is not empty. Restore into a new one: the old one may have updates that the backup lacks',
  );
}

/** Throws BackupError if the old database cannot be reached. */
async function compare(restored: StackHeadRepository, oldUrl: string, connectMs: number): Promise<WrittenStack[]> {
  const old = await new PostgresConnector(oldUrl, { connectMs }).connect().catch((cause: unknown) => {
    throw new BackupError(
      `The backup is loaded, but the database of --compare-with cannot be reached: ${(cause as Error).message}. Repeat the command, or repeat it without --compare-with.`,
      { cause },
    );
  });
  try {
    return await findWrittenAfter(restored, createStackHeadRepository(old.client));
  } finally {
    await old.end();
  }
}

/** HOLDFAST_DATABASE_URL or, without it, the Postgres of a data directory whose server is not running. */
async function withPostgres<T>(session: AdminSession, work: (url: string) => Promise<T>): Promise<T> {
  const { config, logger } = session;
  if (config.database.url !== null) return work(config.database.url);
  const claim = await claimDataDir(config.dataDir, logger);
  const directory = path.join(config.dataDir, 'postgres');
  // On a signal, Postgres would otherwise go on running.
  const forget = endAfter(() => stopOrphan(path.join(directory, clusterFolder), stopMs, logger));
  try {
    const postgres = await startEmbeddedPostgres(directory, logger, {
      takeLock: () => claim.lockFor('postgres'),
    });
    try {
      return await work(postgres.url);
    } finally {
      await postgres.stop();
    }
  } finally {
    claim.release();
    await forget();
  }
}

/** The stacks that were written in the old database after the backup of the restored one, by name. */
async function findWrittenAfter(restored: StackHeadRepository, old: StackHeadRepository): Promise<WrittenStack[]> {
  const before = new Map<string, StackHeadRow>();
  for await (const row of restored.list()) before.set(row.id, row);
  const written: WrittenStack[] = [];
  for await (const { changedAt: at, head, id, stack, version } of old.list()) {
    const copy = before.get(id);
    before.delete(id);
    if (copy && copy.head === head && copy.version === version) continue;
    const changedAt = at.toISOString();
    const change = copy ? 'updated' : 'created';
    written.push({ stack, change, restoredVersion: copy?.version ?? null, oldVersion: version, changedAt });
  }
  for (const { stack, version } of before.values())
    written.push({ stack, change: 'deleted', restoredVersion: version, oldVersion: null, changedAt: null });
  return written.sort((one, other) => (one.stack < other.stack ? -1 : 1));
}
