import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { temporaryClusterDir } from './cluster-dir.ts';
import { shared, throwawayFlags } from './shared-postgres.ts';

export const templateDatabase = 'holdfast_template';
/** The user of all apps in tests: it owns nothing, as with two database users. Tests that change the schema use the owner's connection. */
export const appRole = 'holdfast_app';
const appPassword = 'only-for-tests';

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
  await createAppRole(url);
  await migrate({ url: withDatabase(url, templateDatabase), connectMs: 30_000, waitMs: 0, logger }, { appRole });
}

/** Creates the role `appRole` on a server. */
export async function createAppRole(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query('select 1 from pg_roles where rolname = $1', [appRole]);
  await client.query(`${rowCount === 0 ? 'create' : 'alter'} role ${appRole} login password '${appPassword}'`);
  await client.end();
}

/** The same database for the user `appRole`. */
export function asApp(url: string): string {
  const changed = new URL(url);
  changed.username = appRole;
  changed.password = appPassword;
  return changed.toString();
}

/** The same server, another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.toString();
}
