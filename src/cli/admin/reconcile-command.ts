import type { Command } from 'commander';
import { createBackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { openBothBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import {
  beginReconcile,
  findOtherInstallations,
  markerKey,
  type ReconcileParts,
  reconcile,
} from '../../shared/state/blobs/reconcile-blobs.ts';
import { assertConfiguredStore } from '../../shared/state/blobs/store-ownership.ts';
import { createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';
import { jsonOption, jsonText } from '../output/outputs.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { recordCommand } from './record-command.ts';

export function addReconcileCommand(admin: Command, open: OpenSession): void {
  admin
    .command('reconcile')
    .description('compare the blob store with the database now, as the servers do periodically')
    .option('--adopt-all', 'let the sweep delete all objects without a row, including unknown ones')
    .option(...jsonOption)
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .action(async ({ adoptAll = false, json }: { readonly adoptAll?: boolean; readonly json?: true }) => {
      const session = open();
      const problem = await session.withDatabase(async (db) => {
        if (adoptAll) await recordCommand(db, 'admin reconcile --adopt-all');
        return reconcileOnce(db, session.config, { adoptAll, json: json === true });
      });
      if (problem !== null) throw new CommandRefusedError(problem);
    });
}

/** Accepts a store without an owner, because a restored database has no store of its own yet. Throws CommandRefusedError. */
async function assertNotForeign({ blobs, blobRows }: Pick<ReconcileParts, 'blobs' | 'blobRows'>): Promise<void> {
  const [other] = await findOtherInstallations({ blobs, blobRows });
  if (other !== undefined && !(await blobs.stat(markerKey(await blobRows.installationId()))))
    throw new CommandRefusedError(
      `The blob store is that of another installation: it has the object ${other}. Correct the settings; nothing was compared`,
    );
}

/** Even while servers are running. Returns the problem, or null if there is none. Throws BlobStoreUnavailableError. */
export async function reconcileOnce(
  db: Database,
  config: Config,
  options: { adoptAll: boolean; json?: boolean; print?: (line: string) => void; log?: { write(line: string): void } },
): Promise<string | null> {
  const print = options.print ?? console.log;
  // Log lines, which contain the keys, go to stderr so that programs can parse the counts.
  const logger = createLogger({ level: 'warn' }, options.log ?? process.stderr);
  const { both: blobs, main } = await openBothBlobs({ config, db, logger });
  try {
    await assertConfiguredStore(config, { blobs: main, db });
    const parts = { blobs, blobRows: createBlobRepository(db), logger };
    await assertNotForeign(parts);
    const { counts } = await reconcile(parts, await beginReconcile(parts, options), {
      objectsPerSecond: config.reconcile.objectsPerSecond,
    });
    await createBackgroundTaskRepository(db).saveResult('reconcile', JSON.stringify(counts));
    const lines = [
      `Objects: ${counts.objects}, rows: ${counts.rows}.`,
      `Objects without a row: ${counts.adopted} left to the sweep, ${counts.held} kept.`,
      `Rows that the sweep would have missed: ${counts.marked}.`,
      `Blobs that a state needs but that are missing from the store: ${counts.missing}.`,
    ];
    for (const line of options.json ? [jsonText('admin reconcile', counts)] : lines) print(line);
    if (counts.missing > 0) return `${counts.missing} blobs are missing; their keys are in the lines above`;
    if (counts.held > 0) return `${counts.held} objects are unknown; see "Restore" in docs/backup.md`;
    return null;
  } finally {
    await blobs.close();
  }
}
