import { parseArgs } from 'node:util';
import { openBlobs } from '../shared/context.ts';
import { createBlobRepository } from '../shared/documents/blob-repository.ts';
import { beginReconcile, reconcile } from '../shared/documents/reconcile-blobs.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { type Database, openDatabase } from '../shared/platform/db/database.ts';
import { mapDatabaseError } from '../shared/platform/db/sqlstate.ts';
import { createLogger } from '../shared/platform/logger/logger.ts';
import { createRunRepository } from '../shared/platform/maintenance/run-repository.ts';
import { reachDatabase } from './admin-database.ts';

/** `holdfast admin reconcile [--adopt-all]`. Returns the exit code: 1 when objects are missing or unknown. */
export async function runReconcile(config: Config, args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { 'adopt-all': { type: 'boolean', default: false } } });
  const url = await reachDatabase(config, createLogger({ level: config.logLevel }, process.stderr));
  const db = await openDatabase({ ...config.database, url, poolSize: 2 });
  try {
    const problem = await reconcileOnce(db, config, { adoptAll: values['adopt-all'] });
    if (problem === null) return 0;
    console.error(`holdfast: ${problem}`);
    return 1;
  } catch (error) {
    throw mapDatabaseError(error);
  } finally {
    await db.close();
  }
}

/**
 * Compares blob store and database once from one end to the other, beside running servers, and prints what it found. Returns
 * what is wrong, or null. Throws BlobStoreUnavailableError.
 */
export async function reconcileOnce(
  db: Database,
  config: Config,
  options: { adoptAll: boolean; print?: (line: string) => void; log?: { write(line: string): void } },
): Promise<string | null> {
  const print = options.print ?? console.log;
  // Its lines name the keys; on stderr, so that the counts can be read by a program.
  const logger = createLogger({ level: 'warn' }, options.log ?? process.stderr);
  const blobs = await openBlobs(config, logger);
  try {
    const parts = { blobs, blobRows: createBlobRepository(db), logger };
    const { counts } = await reconcile(parts, await beginReconcile(parts, options), {
      objectsPerSecond: config.reconcile.objectsPerSecond,
    });
    await createRunRepository(db).saveResult('reconcile', JSON.stringify(counts));
    print(`Objects: ${counts.objects}, rows: ${counts.rows}.`);
    print(`Objects without a row: ${counts.adopted} left to the sweep, ${counts.held} left alone.`);
    print(`Rows that the sweep would have missed: ${counts.marked}.`);
    print(`Blobs that a state needs and the store does not have: ${counts.missing}.`);
    if (counts.missing > 0) return `${counts.missing} blobs are missing; their keys are in the lines above`;
    if (counts.held > 0) return `${counts.held} objects are unknown; see "Restoring" in docs/operations.md`;
    return null;
  } finally {
    await blobs.close();
  }
}
