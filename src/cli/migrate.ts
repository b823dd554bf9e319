import { type Config, ConfigError } from '../shared/platform/config/config.ts';
import { migrate } from '../shared/platform/db/migrate.ts';
import { createProcessLogger } from './process-logger.ts';

/**
 * Migrates the database of HOLDFAST_DATABASE_URL to this release, and optionally grants another database user the privileges that the other
 * commands and servers need.
 */
export async function migrateDatabase(config: Config, { appRole = null }: { appRole?: string | null }): Promise<void> {
  if (config.database.url === null)
    throw new ConfigError('Invalid settings:\n  HOLDFAST_DATABASE_URL: needed to migrate');
  const { url, connectTimeoutMs } = config.database;
  const logger = createProcessLogger(config);
  const applied = await migrate({ url, connectMs: connectTimeoutMs, waitMs: config.startWaitMs, logger }, { appRole });
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`);
  if (appRole !== null) console.log(`${appRole} may run the server and workers.`);
}
