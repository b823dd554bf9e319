import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { migrationNames } from '../platform/db/migrate.ts';
import { BackupError, type Manifest, type TableCopy } from './manifest.ts';
import { Meter } from './stored-bytes.ts';
import type { TableCopyRepository } from './table-copy-repository.ts';

/** Throws BackupError if the backup comes from a release with migrations that this one does not have. */
export function assertKnownMigrations({ id, migrations, release }: Manifest): void {
  const known = migrationNames();
  if (migrations.some((name, at) => known[at] !== name))
    throw new BackupError(`Backup ${id} comes from Holdfast ${release}, whose database this release does not know`);
}

/**
 * Loads all tables into a database that has just the migrations of the backup, in one transaction: all or nothing. Adding the foreign
 * keys proves that no row refers to a missing one. `beforeCommit` runs in the transaction. Throws BackupError.
 */
export async function loadTables(
  copies: TableCopyRepository,
  target: BlobStore,
  manifest: Manifest,
  {
    beforeCommit = async () => {},
    onTable = () => {},
  }: { readonly beforeCommit?: () => Promise<unknown>; readonly onTable?: (done: number, total: number) => void } = {},
): Promise<void> {
  await copies.begin();
  try {
    const keys = await copies.prepareLoad();
    for (const [at, table] of manifest.tables.entries()) {
      await loadTable(copies, target, table);
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

async function loadTable(copies: TableCopyRepository, target: BlobStore, table: TableCopy): Promise<void> {
  const { name, object } = table;
  await copies.addPartitions(table);
  const meter = new Meter();
  let rows: number;
  try {
    rows = await copies.write(table, unpack(meter.pass(await target.open(object.key))));
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
