import { rmSync } from 'node:fs';
import { startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { temporaryClusterDir } from './cluster-dir.ts';
import { appRole, asApp, createAppRole } from './global-setup.ts';
import { throwawayFlags } from './shared-postgres.ts';
import type { TestDatabase } from './test-app.ts';

/**
 * Migrates the database. For tests of what Postgres may clean up: a transaction anywhere on a server keeps rows that were deleted after it
 * began, in the other databases too.
 */
export async function createDatabaseOnOwnServer(): Promise<TestDatabase> {
  const logger = createLogger({ level: 'warn' });
  const directory = temporaryClusterDir();
  const removeDirectory = (): void => rmSync(directory, { recursive: true, force: true });
  const postgres = await startEmbeddedPostgres(directory, logger, { flags: throwawayFlags }).catch((error: unknown) => {
    removeDirectory();
    throw error;
  });
  const dispose = async (): Promise<void> => {
    await postgres.stop();
    removeDirectory();
  };
  try {
    await createAppRole(postgres.url);
    await migrate({ url: postgres.url, connectMs: 30_000, waitMs: 0, logger }, { appRole });
  } catch (error) {
    await dispose();
    throw error;
  }
  return { url: asApp(postgres.url), ownerUrl: postgres.url, [Symbol.asyncDispose]: dispose };
}
