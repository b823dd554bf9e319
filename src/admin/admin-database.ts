import path from 'node:path';
import { type Config, ConfigError } from '../shared/platform/config/config.ts';
import { readRunningUrl } from '../shared/platform/db/embedded-postgres.ts';
import { assertMigrated } from '../shared/platform/db/migrate.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';

/** Somebody sits before it: shorter than a server waits, in ms. */
const longestWaitMs = 10_000;

/**
 * The URL of the database that an admin command works on, once it takes writes: HOLDFAST_DATABASE_URL, or that of the server
 * which runs on the data folder. Throws ConfigError, PendingMigrationsError and PartUnavailableError.
 */
export async function reachDatabase(config: Config, logger: Logger): Promise<string> {
  const url = config.database.url ?? (await readRunningUrl(path.join(config.dataDir, 'postgres')));
  if (!url) throw new ConfigError(`HOLDFAST_DATABASE_URL is not set, and no server is running on ${config.dataDir}`);
  const waitMs = Math.min(config.startWaitMs, longestWaitMs);
  await assertMigrated({ url, connectMs: config.database.connectTimeoutMs, waitMs, logger });
  return url;
}
