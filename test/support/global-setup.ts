import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { temporaryClusterDir } from './cluster-dir.ts';
import { shared, throwawayFlags } from './shared-postgres.ts';

export const templateDatabase = 'holdfast_template';

/**
 * Starts one Postgres for the whole run and migrates a template database that each test file clones. Jest calls this once
 * per project; the first call does the work. HOLDFAST_TEST_DATABASE_URL uses a server of your own instead.
 */
export default async function globalSetup(): Promise<void> {
  shared.users += 1;
  shared.starting ??= start();
  await shared.starting;
}

async function start(): Promise<void> {
  const logger = createLogger({ level: 'warn' });
  const own = process.env['HOLDFAST_TEST_DATABASE_URL'];
  if (own === undefined) {
    shared.directory = temporaryClusterDir();
    shared.postgres = await startEmbeddedPostgres(shared.directory, logger, { flags: throwawayFlags });
    process.env['HOLDFAST_TEST_DATABASE_URL'] = shared.postgres.url;
  }
  const url = process.env['HOLDFAST_TEST_DATABASE_URL'] as string;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`drop database if exists ${templateDatabase} with (force)`);
  await client.query(`create database ${templateDatabase}`);
  await client.end();
  await migrate({ url: withDatabase(url, templateDatabase), connectMs: 30_000, waitMs: 0, logger });
}

/** The same server, another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.toString();
}
