import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { readBlob } from '../platform/blobs/locations/located-blob-store.ts';
import { migrationNames } from '../platform/db/migrate.ts';
import type { Decrypt } from './backup-encryption.ts';
import { BackupError } from './backup-error.ts';
import type { Manifest, TableCopy } from './manifest.ts';
import { Meter } from './stored-bytes.ts';
import type { TableCopyRepository } from './table-copy-repository.ts';

export function assertKnownMigrations({ id, migrations, release }: Manifest): void {
  const known = migrationNames();
  if (migrations.some((name, at) => known[at] !== name))
    throw new BackupError(`Backup ${id} comes from Holdfast ${release}, whose database this release does not know`);
}

/** Migrations that the backup lacks would not be applied to the loaded rows. */
export async function assertLoadable(copies: TableCopyRepository, { id, migrations }: Manifest): Promise<void> {
  const applied = await copies.listMigrations();
  const other = applied.find((name, at) => migrations[at] !== name);
  if (other !== undefined)
    throw new BackupError(`The database has other migrations than backup ${id} (${other}): take a new database`);
}

/**
 * The database must have exactly the migrations of the backup. Loads in one transaction, in which `beforeCommit` runs, too. Adding the
 * foreign keys proves that no row refers to a missing one. `decrypt` is null if the backup is not encrypted. Throws BackupError, also if
 * the database is already used.
 */
export async function restoreTables(
  copies: TableCopyRepository,
  target: BlobStore,
  manifest: Manifest,
  {
    beforeCommit = async () => {},
    onTable = () => {},
    decrypt,
  }: {
    readonly beforeCommit?: () => Promise<unknown>;
    readonly onTable?: (done: number, total: number) => void;
    readonly decrypt: Decrypt | null;
  },
): Promise<void> {
  await copies.begin();
  try {
    await assertLoadable(copies, manifest);
    await assertUnused(copies);
    const keys = await copies.prepareLoad();
    const copied = new Set(manifest.tables.map(({ name }) => name));
    const absent = (await copies.listTables()).filter(({ name }) => !copied.has(name));
    if (absent.length > 0)
      throw new BackupError(`The backup has no copy of the table ${absent.map(({ name }) => name).join(', ')}`);
    for (const [at, table] of manifest.tables.entries()) {
      await loadTable(copies, target, table, decrypt);
      onTable(at + 1, manifest.tables.length);
    }
    for (const sequence of manifest.sequences) await copies.setSequence(sequence);
    await copies.finishLoad(keys);
    await beforeCommit();
    await copies.end();
  } catch (error) {
    await copies.rollback().catch(() => {});
    throw error;
  }
}

/** Hours may have passed since the database was found to be empty. */
async function assertUnused(copies: TableCopyRepository): Promise<void> {
  await copies.lockUse();
  if (await copies.isUsed())
    throw new BackupError(
      'The database is no longer empty: another restore, or a server, has used it meanwhile. Nothing in it was changed',
    );
}

async function loadTable(
  copies: TableCopyRepository,
  target: BlobStore,
  table: TableCopy,
  decrypt: Decrypt | null,
): Promise<void> {
  const { name, object } = table;
  await copies.addPartitions(table);
  const meter = new Meter();
  let rows: number;
  try {
    const stored = meter.pass(readBlob(target, object.key));
    rows = await copies.write(table, unpack(decrypt ? decrypt(stored) : stored));
  } catch (error) {
    throw new BackupError(`Table ${name} cannot be loaded from ${object.key}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (meter.bytes !== object.bytes || meter.sha256 !== object.sha256)
    throw new BackupError(`${object.key} (table ${name}) is damaged: its bytes do not have the hash in the manifest`);
  if (rows !== table.rows)
    throw new BackupError(`${object.key} (table ${name}) has ${rows} rows; the manifest says ${table.rows}`);
}

async function* unpack(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = Readable.from(body, { objectMode: false });
  const unpacked = createZstdDecompress();
  source.on('error', (error) => unpacked.destroy(error));
  yield* source.pipe(unpacked);
}
