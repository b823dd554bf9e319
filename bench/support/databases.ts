import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { tuned } from '../../testkit/tuned.ts';

/** Creates and migrates a database beside the one of `postgresUrl`. Returns its URL. */
export async function createDatabase(postgresUrl: string, name: string): Promise<string> {
  const admin = new pg.Client({ connectionString: postgresUrl });
  await admin.connect();
  try {
    await admin.query(`create database ${name}`);
  } finally {
    await admin.end();
  }
  const url = postgresUrl.replace(/\/postgres$/, `/${name}`);
  await migrate({ url, connectMs: 10_000, waitMs: 10_000, logger: createLogger({ level: 'warn' }) });
  return url;
}

/** The contents of the database must not change by themselves while they are measured. */
export function ownDatabaseSettings(url: string): Record<string, string> {
  return {
    HOLDFAST_DATABASE_URL: url,
    HOLDFAST_MASTER_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    HOLDFAST_BACKGROUND_BYTES_PER_SECOND: '0',
    ...tuned({ sweepSeconds: 3600, eventArchiveDelaySeconds: 7200, reconcileSeconds: 0 }),
  };
}
