import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { openBlobs, openBothBlobs } from '../../shared/platform/blobs/open-blobs.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import { createHeldOutgoingRepository } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { claimSite } from '../../shared/platform/site/site-mark.ts';
import { createRestorableStackRepository } from '../../shared/stacks/restorable-stack-repository.ts';
import { countMissingBlobs } from '../../shared/state/blobs/reconcile-blobs.ts';
import { takeStore } from '../../shared/state/blobs/store-ownership.ts';
import { createBlobRepository } from '../../shared/state/checkpoints/blob-repository.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';
import { operator } from './operator-name.ts';
import { withSiteStores } from './site-status.ts';

export function addTakeOverCommand(admin: Command, open: OpenSession): void {
  admin
    .command('take-over')
    .description(
      'let servers of this database send webhooks and delete from the blob store, after a restore or failover',
    )
    .addHelpText(
      'after',
      `
Servers of its copies delete nothing there, and refuse writes. It also needs the settings of the blob store. If the original stays in use,
give this database another HOLDFAST_BACKUP_TO first: otherwise its servers delete the backups of the original.`,
    )
    .action(async () => {
      const session = open();
      const { lacking } = await session.withDatabase((db) => takeOver(db, session.config));
      console.log('This database owns the blob store, and its servers send webhooks and audit events.');
      for (const name of lacking)
        console.log(`The ${name} store cannot be reached: it gets the mark of this database later.`);
      // Servers of the old database delete nothing from now on, but they may have deleted blobs that a restore has copied or found.
      const missing = await session.withDatabase((db) => countMissing(db, session.config));
      if (missing > 0)
        throw new CommandRefusedError(
          `${missing} blobs that states need are missing from the blob store; their keys are in the lines above. If a backup was restored, \`holdfast backup restore --blobs-only\` copies them`,
        );
    });
}

async function countMissing(db: Database, config: Config): Promise<number> {
  const logger = createLogger({ level: 'warn' }, process.stderr);
  const { both: blobs } = await openBothBlobs({ config, db, logger });
  try {
    return await countMissingBlobs({ blobs, blobRows: createBlobRepository(db), logger });
  } finally {
    await blobs.close();
  }
}

/** The database then writes and owns the blob stores. Returns the stores that lack its mark. */
export async function takeOver(
  db: Database,
  config: Config,
): Promise<{ readonly term: number; readonly lacking: readonly string[] }> {
  const claimed = await withSiteStores(db, config, (stores) => claimSite(db, stores), { isPrepared: false });
  const blobs = await openBlobs({ config, db, logger: createLogger({ level: 'warn' }, process.stderr) });
  try {
    await takeStore({ blobs, db });
  } finally {
    await blobs.close();
  }
  await db.inTransaction(async (tx) => {
    // From now on, the time for restoring deleted stacks runs again.
    await createRestorableStackRepository(tx).prolong();
    await createHeldOutgoingRepository(tx).release();
    const event = {
      action: 'installation.take-over',
      organization: null,
      object: 'installation',
      details: {},
    } as const;
    await createAuditRepository(tx).insert(operatorSource(operator()), event);
  });
  return claimed;
}
