import type { Command } from 'commander';
import { openBlobs } from '../../shared/context.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import { takeStore } from '../../shared/state/documents/store-ownership.ts';
import type { OpenSession } from './admin-session.ts';

/** Adds `holdfast admin take-store`. */
export function addTakeStoreCommand(admin: Command, open: OpenSession): void {
  admin
    .command('take-store')
    .description('let the servers of this database delete from the blob store, and those of its copies no longer')
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .action(async () => {
      const session = open();
      await session.withDatabase((db) => takeStoreOf(db, session.config));
    });
}

async function takeStoreOf(db: Database, config: Config): Promise<void> {
  const blobs = await openBlobs(config, createLogger({ level: 'warn' }, process.stderr));
  try {
    await takeStore({ blobs, db });
  } finally {
    await blobs.close();
  }
  console.log('This database owns the blob store. Servers of other copies of it delete nothing there.');
}
