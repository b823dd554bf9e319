import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import type { Logger } from '../logger/logger.ts';

const migrationsTable = 'holdfast_migrations';
const migrationsDir = path.join(import.meta.dirname, '../../../../migrations');

/** The database lacks migrations that this release needs. */
export class PendingMigrationsError extends Error {
  override readonly name = 'PendingMigrationsError';
}

/**
 * Applies all pending migrations of `migrations/`, each in its own transaction. Two runs at once wait for each other
 * (advisory lock). Returns the names applied.
 */
export async function migrate(databaseUrl: string, logger: Logger): Promise<string[]> {
  const applied = await runner({
    databaseUrl,
    dir: migrationsDir,
    migrationsTable,
    direction: 'up',
    singleTransaction: false,
    advisoryLockMode: 'wait',
    logger: {
      debug: (text) => logger.debug(text),
      info: (text) => logger.debug(text),
      warn: (text) => logger.warn(text),
      error: (text) => logger.error(text),
    },
  });
  return applied.map((migration) => migration.name);
}

/**
 * Throws PendingMigrationsError naming the migrations that the database lacks. Those that this release does not know are a
 * newer one's, and only add to the schema.
 */
export async function assertMigrated(databaseUrl: string, logger: Logger): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    const table = await client.query<{ found: boolean }>(`select to_regclass($1) is not null as found`, [
      migrationsTable,
    ]);
    const rows = table.rows[0]?.found
      ? (await client.query<{ name: string }>(`select name from ${migrationsTable}`)).rows
      : [];
    const applied = new Set(rows.map((row) => row.name));
    const known = migrationNames();
    const unknown = [...applied].filter((name) => !known.includes(name)).sort();
    if (unknown.length > 0) logger.warn({ migrations: unknown }, 'the database has migrations of a newer release');
    const pending = known.filter((name) => !applied.has(name));
    if (pending.length > 0) {
      throw new PendingMigrationsError(
        `The database lacks ${pending.length} migration(s): ${pending.join(', ')}. Run \`holdfast migrate\` first.`,
      );
    }
  } finally {
    await client.end();
  }
}

function migrationNames(): string[] {
  if (!existsSync(migrationsDir)) throw new Error(`No migrations at ${migrationsDir}`);
  return readdirSync(migrationsDir)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.replace(/\.sql$/, ''))
    .sort();
}
