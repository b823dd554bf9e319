import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';
import { actAsOwner, assertGranted, grantToApp } from './app-role.ts';
import { findHolders, type LockPatience, LockWaits, lockPatience, relogMs } from './lock-waits.ts';
import { loadMigrationFiles, migrationsDir } from './migration-files.ts';
import { isPooled } from './postgres-connector.ts';
import { type PostgresStart, withPostgresAtStart } from './postgres-start.ts';
import { allowLongStatements } from './session-limits.ts';
import { assertOneOwner } from './table-owners.ts';

const migrationsTable = 'holdfast_migrations';

class PendingMigrationsError extends OperatorError {
  override readonly name = 'PendingMigrationsError';
}

const lockPollMs = 200;
/** A longer wait for another run is logged. */
const silentMs = 2_000;

/**
 * Concurrent runs wait for each other (advisory lock). A run that loses Postgres resumes when it is available again; a run that finds a
 * table in use retries a migration for about ten minutes. Returns the applied names. Then permits `appRole` to run server and workers; see
 * `grantToApp`.
 */
export async function migrate(
  start: PostgresStart,
  options: {
    readonly appRole?: string | null;
    /** For tests. */
    readonly directory?: string;
    readonly patience?: LockPatience;
    /** Applies only these first migrations of this release, and none if the database has others. */
    readonly only?: readonly string[];
  } = {},
): Promise<string[]> {
  const { appRole = null, only, directory = migrationsDir, patience = lockPatience } = options;
  const names: string[] = [];
  await withPostgresAtStart(start, async (client, observer) => {
    const second = await observer();
    await assertOwnSession(client, second);
    // Also applies behind a session pooler.
    await allowLongStatements(client);
    await actAsOwner(client);
    const waits = await LockWaits.start(client, second, { logger: start.logger, patience });
    try {
      names.push(...(await applyPending(waits, directory, start.logger, only)));
      if (appRole !== null)
        await waits.repeat(
          () => grantToApp(client, appRole),
          () => waits.rollback(),
        );
    } finally {
      await waits.close();
    }
  });
  return names;
}

/** A pooler gives the session to other clients between statements. */
class SharedSessionError extends OperatorError {
  override readonly name = 'SharedSessionError';
}

const sessionLooks = 10;

/** The lock of a migration would stay behind in a shared session and block the next one. */
async function assertOwnSession(client: pg.Client, observer: pg.Client): Promise<void> {
  for (let look = 0; look < sessionLooks; look++) {
    const pids: number[] = [];
    for (const each of [client, observer]) {
      const { rows } = await each.query<{ pid: number }>('select pg_backend_pid() as pid');
      pids.push(rows[0]?.pid as number);
    }
    if (!isPooled(client, pids[0])) return;
    if (pids[0] === pids[1])
      throw new SharedSessionError(
        'HOLDFAST_DATABASE_URL points to a transaction pooler, through which migrations cannot run. Give this command the URL of Postgres itself.',
      );
  }
}

async function applyPending(
  waits: LockWaits,
  dir: string,
  logger: Logger,
  only?: readonly string[],
): Promise<string[]> {
  // API processes and workers only compare names.
  const { PG_MIGRATE_LOCK_ID, runner } = await import('node-pg-migrate');
  const dbClient = waits.client;
  await lockMigrations(dbClient, PG_MIGRATE_LOCK_ID, logger);
  const applied = await readApplied(dbClient);
  assertInOrder(applied, migrationNames(dir));
  const before = new Set(applied);
  const apply = async (): Promise<unknown> => {
    const count = only === undefined ? undefined : countLacking(only, await readApplied(dbClient));
    return runner({
      dbClient,
      dir,
      migrationsTable,
      direction: 'up',
      ...(count === undefined ? {} : { count }),
      singleTransaction: false,
      noLock: true,
      // Without an order check: the order is by time, which differs after the clock was set back, or in another time zone.
      checkOrder: false,
      migrationLoaderStrategies: [{ extensions: ['.sql'], loader: loadMigrationFiles }],
      logger: {
        debug: (text) => logger.debug(text),
        info: (text) => logger.debug(text),
        // Its only warning in this mode: a migration runs without a transaction, as its file requests.
        warn: (text) => logger.debug(text),
        // An attempt that gets no locks is repeated.
        error: (text) => logger.debug(text),
      },
    });
  };
  await waits.repeat(
    apply,
    () => waits.rollback(),
    async () => (await readApplied(dbClient)).length,
  );
  return (await readApplied(dbClient)).filter((name) => !before.has(name));
}

class MigrationOrderError extends OperatorError {
  override readonly name = 'MigrationOrderError';
}

function assertInOrder(applied: readonly string[], known: readonly string[]): void {
  const at = applied.findIndex((name, index) => index < known.length && name !== known[index]);
  if (at >= 0)
    throw new MigrationOrderError(
      `Not run migration ${known[at]} is preceding already run migration ${applied[at]}: the database has migrations of another build`,
    );
}

/** Counts the pending ones of `only`; 0 if others are applied. */
function countLacking(only: readonly string[], applied: readonly string[]): number {
  return applied.every((name, at) => name === only[at]) ? only.length - applied.length : 0;
}

/**
 * Lets one process migrate at a time, until the end of the session. Polls: an index that another run builds concurrently would wait for our
 * statement, and our statement for that run's lock.
 */
async function lockMigrations(client: pg.Client, lockId: number, logger: Logger): Promise<void> {
  for (let logAt = performance.now() + silentMs; ; ) {
    const { rows } = await client.query<{ held: boolean }>(`select pg_try_advisory_lock(${lockId}) as held`);
    if (rows[0]?.held) return;
    if (performance.now() >= logAt) {
      const sessions = await findHolders(client, lockId);
      logger.warn(
        { sessions },
        'the migration waits for another run; if none is under way, end the session with pg_terminate_backend(pid)',
      );
      logAt = performance.now() + relogMs;
    }
    await sleep(lockPollMs);
  }
}

/** Unknown migrations belong to a newer release and only add to the schema. */
export async function assertMigrated(start: PostgresStart): Promise<void> {
  const applied = new Set(await withPostgresAtStart(start, appliedNames));
  const known = migrationNames();
  const unknown = [...applied].filter((name) => !known.includes(name)).sort();
  if (unknown.length > 0) start.logger.warn({ migrations: unknown }, 'the database has migrations of a newer release');
  assertNone(
    known.filter((name) => !applied.has(name)),
    'Run `holdfast migrate` first.',
  );
}

/** Without a pending migration, the connection may be unable to migrate. */
export async function migrateIfPending(start: PostgresStart): Promise<void> {
  const { applied, user } = await withPostgresAtStart(start, async (client) => {
    const { rows } = await client.query<{ user: string; owns: boolean | null }>(
      `select current_user as user, (select pg_has_role(relowner, 'usage') from pg_class where oid = to_regclass($1)) as owns`,
      [migrationsTable],
    );
    return { applied: await readApplied(client), user: rows[0]?.owns === false ? rows[0].user : null };
  });
  const pending = migrationNames().filter((name) => !applied.includes(name));
  if (pending.length === 0) return;
  if (user !== null)
    assertNone(
      pending,
      `The database user ${JSON.stringify(user)} does not own the tables: as their owner, run \`holdfast migrate --app-role ${user}\`.`,
    );
  await migrate(start);
}

function assertNone(pending: readonly string[], fix: string): void {
  if (pending.length > 0)
    throw new PendingMigrationsError(
      `The database lacks ${pending.length} migration(s): ${pending.join(', ')}. ${fix}`,
    );
}

async function appliedNames(client: pg.Client): Promise<string[]> {
  const names = await readApplied(client);
  if (names.length > 0) {
    await assertOneOwner(client);
    await assertGranted(client);
  }
  return names;
}

/** In the order of their application. */
async function readApplied(client: pg.Client): Promise<string[]> {
  const table = await client.query<{ found: boolean }>('select to_regclass($1) is not null as found', [
    migrationsTable,
  ]);
  if (!table.rows[0]?.found) return [];
  const { rows } = await client.query<{ name: string }>(`select name from ${migrationsTable} order by id`);
  return rows.map(({ name }) => name);
}

export function migrationNames(directory = migrationsDir): string[] {
  if (!existsSync(directory)) throw new Error(`No migrations at ${directory}`);
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.replace(/\.sql$/, ''))
    .sort();
}
