import { existsSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { DataDirClaim } from '../platform/claim/data-dir-claim.ts';
import { acceptingAny } from '../platform/db/accepting-any.ts';
import {
  clusterFolder,
  type EmbeddedPostgres,
  endUpgrade,
  startEmbeddedPostgres,
  upgradedFolder,
} from '../platform/db/embedded-postgres.ts';
import { migrate, migrationNames } from '../platform/db/migrate.ts';
import { findPostgresBinaries } from '../platform/db/postgres-binaries.ts';
import { PostgresConnector } from '../platform/db/postgres-connector.ts';
import { findOldBinaries, majorOfBinaries, majorOfCluster } from '../platform/db/postgres-major.ts';
import { stopOrphan } from '../platform/db/postgres-processes.ts';
import { OperatorError } from '../platform/errors/errors.ts';
import { syncPath } from '../platform/files/durable-files.ts';
import type { Logger } from '../platform/logger/logger.ts';
import { createTableCopyRepository, type TableCopyRepository } from './table-copy-repository.ts';

/** The database was not upgraded, and is unchanged. */
export class UpgradeError extends OperatorError {
  override readonly name = 'UpgradeError';
}

const scratchFolder = 'cluster.upgrade';
const connectMs = 30_000;
const stopMs = 60_000;

export interface DatabaseUpgrade {
  readonly from: number;
  readonly to: number;
  readonly rows: number;
  readonly kept: string;
}

/**
 * Copies the embedded database, whose files have an earlier major version, into a new cluster, and puts it in the place of the old one,
 * whose files stay beside it. An interruption at any moment leaves either the old cluster or the complete new one. Returns null if no
 * upgrade is needed.
 */
export async function upgradeCluster(
  directory: string,
  {
    claim,
    logger,
    oldPostgres,
    onStep,
  }: {
    readonly claim: DataDirClaim;
    readonly logger: Logger;
    /** The programs of the old version; null to search the folders of packages. */
    readonly oldPostgres: string | null;
    readonly onStep: (text: string) => void;
  },
): Promise<DatabaseUpgrade | null> {
  const current = path.join(directory, clusterFolder);
  const upgraded = path.join(directory, upgradedFolder);
  const scratch = path.join(directory, scratchFolder);
  endUpgrade(directory);
  const from = majorOfCluster(current);
  if (from === null) throw new UpgradeError(`There is no database in ${current}`);
  const to = majorOfBinaries(await findPostgresBinaries());
  if (from === to) return null;
  if (from > to)
    throw new UpgradeError(`${current} needs Postgres ${from}, but this release has Postgres ${to}: it cannot go back`);
  const kept = `${current}-${from}`;
  if (existsSync(kept)) throw new UpgradeError(`${kept} exists: move it away`);
  const binaries = findOldBinaries(from, oldPostgres);
  await stopOrphan(scratch, stopMs, logger);
  // The old cluster may have been used since an interrupted upgrade.
  removeCopy(directory);
  rmSync(upgraded, { recursive: true, force: true });
  let rows: number;
  await using old = await open(directory, logger, {
    ...{ binaries, takeLock: () => claim.lockFor('postgres') },
    // Writes of admin commands would not be in the copy.
    flags: ['-c', 'default_transaction_read_only=on'],
  });
  try {
    onStep(`Postgres ${from} runs; creating a cluster of Postgres ${to}`);
    await using fresh = await open(directory, logger, {
      cluster: scratchFolder,
      takeLock: () => claim.lockFor('postgres-upgrade'),
    });
    rows = await copyDatabase(old.url, fresh.url, logger, onStep);
    onStep(`Copied and counted ${rows} rows`);
  } catch (error) {
    // A full disk would also keep the old cluster from starting.
    removeCopy(directory);
    throw error;
  }
  await old.stop();
  renameSync(scratch, upgraded);
  syncPath(directory);
  onStep('The new cluster is complete; putting it in place');
  renameSync(current, kept);
  syncPath(directory);
  endUpgrade(directory);
  return { from, to, rows, kept };
}

/** Also stops the processes of the upgrade. */
export async function abandonUpgrade(directory: string, logger: Logger): Promise<void> {
  for (const cluster of [scratchFolder, clusterFolder]) await stopOrphan(path.join(directory, cluster), stopMs, logger);
  removeCopy(directory);
}

function removeCopy(directory: string): void {
  const scratch = path.join(directory, scratchFolder);
  for (const folder of [scratch, `${scratch}.new`])
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

async function open(
  directory: string,
  logger: Logger,
  options: Parameters<typeof startEmbeddedPostgres>[2],
): Promise<EmbeddedPostgres & AsyncDisposable> {
  const postgres = await startEmbeddedPostgres(directory, logger, options);
  return { ...postgres, [Symbol.asyncDispose]: () => postgres.stop() };
}

async function copyDatabase(from: string, to: string, logger: Logger, onStep: (text: string) => void): Promise<number> {
  const source = await new PostgresConnector(acceptingAny(from), { connectMs }).connect();
  try {
    const old = createTableCopyRepository(source.client);
    await old.beginSnapshot();
    const migrations = await old.listMigrations();
    const known = migrationNames();
    if (migrations.some((name, at) => known[at] !== name))
      throw new UpgradeError('The database comes from a release whose migrations this one does not know');
    await migrate({ url: to, connectMs, waitMs: 0, logger }, { only: migrations });
    const target = await new PostgresConnector(to, { connectMs }).connect();
    try {
      const fresh = createTableCopyRepository(target.client);
      const rows = await copyTables(old, fresh, onStep);
      await fresh.analyze();
      return rows;
    } finally {
      await target.end();
    }
  } finally {
    await source.end();
  }
}

/** Works in one transaction. Compares the numbers of rows, and returns their total. */
async function copyTables(
  old: TableCopyRepository,
  fresh: TableCopyRepository,
  onStep: (text: string) => void,
): Promise<number> {
  let rows = 0;
  await fresh.begin();
  const keys = await fresh.prepareLoad();
  const tables = await old.listTables({ withLocations: true });
  for (const table of tables) {
    onStep(`Copying table ${table.name}`);
    await fresh.addPartitions(table);
    await fresh.write(table, old.read(table).text);
    const [before, after] = [await old.countRows(table), await fresh.countRows(table)];
    if (before !== after) throw new UpgradeError(`Table ${table.name} has ${before} rows, and its copy ${after}`);
    rows += after;
  }
  for (const sequence of await old.listSequences()) await fresh.setSequence(sequence);
  await fresh.finishLoad(keys);
  await fresh.end();
  return rows;
}
