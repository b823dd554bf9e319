import { AppRoleError, assertGranted } from '../../shared/platform/db/app-role.ts';
import { type Database, openDatabase } from '../../shared/platform/db/database.ts';
import { migrationNames } from '../../shared/platform/db/migrate.ts';
import { unsafeDefaultCode } from '../../shared/platform/db/postgres-connector.ts';
import {
  readPrimaryPosition,
  readReplicaPosition,
  unfitness,
} from '../../shared/platform/db/replica/replica-position.ts';
import { refusedParameter } from '../../shared/platform/db/sqlstate.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import { tlsFaultOf } from '../../shared/platform/tls/certificates.ts';
import { createMasterKeyRepository } from '../../shared/secrets/master-key-repository.ts';
import { tryMasterKeys } from '../../shared/secrets/try-master-keys.ts';
import { minPostgres } from '../setup/setup-checks.ts';
import { type Check, fail, type Outcome, ok, sentenceOf, warn } from './check.ts';
import { createDatabaseFactsRepository } from './database-facts-repository.ts';
import type { Visit } from './visit.ts';

/** Connections that each process opens besides its pool. */
const extraConnections = 2;
const okClockMs = 5_000;
const maxClockMs = 60_000;

/** If Postgres cannot be reached, only the first check reports it. */
export function databaseChecks(visit: Visit): Check[] {
  const { config } = visit;
  const within = (work: (db: Database) => Promise<Outcome>) => async (): Promise<Outcome> => {
    const db = await visit.database();
    return db && work(db);
  };
  const migrated = (work: (db: Database) => Promise<Outcome>) => async (): Promise<Outcome> => {
    const db = await visit.migrated();
    return db && work(db);
  };
  return [
    { name: 'database', run: () => reach(visit) },
    { name: 'database-migrations', run: within(checkMigrations) },
    { name: 'database-privileges', run: within(checkPrivileges) },
    { name: 'database-connections', run: within((db) => checkConnections(db, config.database.poolSize)) },
    { name: 'database-durability', run: within(checkDurability) },
    { name: 'database-replica', run: within((db) => checkReplica(db, visit)) },
    { name: 'clock', run: within(checkClock) },
    { name: 'master-keys', run: migrated((db) => checkKeys(db, visit)) },
    { name: 'read-only', run: migrated(checkReadOnly) },
    { name: 'site', run: migrated(checkSite) },
  ];
}

async function reach(visit: Visit): Promise<Outcome> {
  const { config } = visit;
  try {
    const db = await visit.opened();
    if (db === null)
      return warn('The embedded database does not run.', 'Start it with `holdfast server`, then run the doctor again.');
    const { version, versionNumber } = await createDatabaseFactsRepository(db).read();
    const { isStandby } = await createSiteRepository(db).postgres();
    if (versionNumber < minPostgres)
      return fail(`Postgres ${version} is too old.`, `Use Postgres ${minPostgres / 10_000} or later.`);
    if (isStandby)
      return fail(
        'Postgres is a standby, which accepts no writes.',
        'Name the primary in HOLDFAST_DATABASE_URL, too, or promote the standby.',
      );
    return ok(`Postgres ${version} answers${config.database.url === null ? ' (embedded)' : ''}.`);
  } catch (error) {
    return fail(sentenceOf(error), fixOf(error));
  }
}

const fixes: Readonly<Record<string, string>> = {
  '28P01': 'Correct the user and password in HOLDFAST_DATABASE_URL.',
  '28000': 'Let this user in by pg_hba.conf, with or without TLS as in HOLDFAST_DATABASE_URL.',
  '3D000': 'Create the database, then run `holdfast migrate`.',
  '53300': 'Raise max_connections of Postgres, or lower HOLDFAST_DATABASE_POOL_SIZE.',
  [unsafeDefaultCode]: 'Change that default for the role of HOLDFAST_DATABASE_URL.',
  ECONNREFUSED: 'Start Postgres, or correct the host and port in HOLDFAST_DATABASE_URL.',
  ENOTFOUND: 'Correct the host in HOLDFAST_DATABASE_URL, or its DNS.',
};

function fixOf(error: unknown): string {
  if (tlsFaultOf(error) !== null)
    return "Name the CA of Postgres's certificate in HOLDFAST_CA_FILE, or in sslrootcert in the URL.";
  const parameter = refusedParameter(error);
  if (parameter !== null) return `Add ${parameter} to ignore_startup_parameters of PgBouncer: see docs/deploy.md.`;
  let current = error as { code?: unknown; cause?: unknown } | undefined;
  for (let depth = 0; depth < 8 && typeof current === 'object' && current !== null; depth++) {
    const fix = fixes[String(current.code)];
    if (fix !== undefined) return fix;
    current = current.cause as typeof current;
  }
  return 'Make Postgres reachable from here at the host and port in HOLDFAST_DATABASE_URL.';
}

async function checkMigrations(db: Database): Promise<Outcome> {
  const applied = await createDatabaseFactsRepository(db).listMigrations();
  const known = migrationNames();
  const pending = known.filter((name) => !applied.includes(name));
  const newer = applied.filter((name) => !known.includes(name));
  if (pending.length > 0)
    return fail(
      `The database lacks ${pending.length} of ${known.length} migrations, from ${pending[0]} on.`,
      'Run `holdfast migrate`.',
    );
  return newer.length > 0
    ? warn(`The database has ${newer.length} migrations of a newer release.`, 'Run that release in all processes.')
    : ok(`All ${known.length} migrations are applied.`);
}

async function checkPrivileges(db: Database): Promise<Outcome> {
  const session = await db.openSession();
  try {
    await assertGranted(session.client);
    return ok('The database user has all privileges that it needs.');
  } catch (error) {
    if (!(error instanceof AppRoleError)) throw error;
    const [seen = '', fix = ''] = error.message.split(/(?<=\)\.) /);
    return fail(seen, fix);
  } finally {
    await session.end();
  }
}

async function checkConnections(db: Database, poolSize: number): Promise<Outcome> {
  const { sessions, slots } = await createDatabaseFactsRepository(db).read();
  const seen = `${sessions} of ${slots} connections are in use; each process opens up to ${poolSize + extraConnections}.`;
  return slots - sessions < poolSize + extraConnections
    ? warn(seen, 'Raise max_connections of Postgres, or lower HOLDFAST_DATABASE_POOL_SIZE.')
    : ok(seen);
}

async function checkDurability(db: Database): Promise<Outcome> {
  const { fsync, fullPageWrites, synchronousCommit } = await createDatabaseFactsRepository(db).read();
  const seen = `fsync=${fsync}, full_page_writes=${fullPageWrites}, synchronous_commit=${synchronousCommit}.`;
  if (fsync === 'off' || fullPageWrites === 'off')
    return fail(seen, 'Turn all three on: otherwise, a power failure loses acknowledged states.');
  return synchronousCommit === 'off'
    ? fail(seen, 'Turn it on for the server, database and role: sessions of Holdfast do, except behind PgBouncer.')
    : ok(seen);
}

async function checkReplica(db: Database, { closing, config, limits }: Visit): Promise<Outcome> {
  const { replicaUrl, ...others } = config.database;
  if (replicaUrl === null) return null;
  try {
    const replica = await openDatabase({
      ...{ ...others, ...limits, url: replicaUrl, poolSize: 1 },
      setting: 'HOLDFAST_DATABASE_REPLICA_URL',
    });
    closing(() => replica.close());
    const [least, position] = [await readPrimaryPosition(db), await readReplicaPosition(replica)];
    const why = unfitness(position, least);
    if (why !== null)
      return fail(
        `The replica cannot serve reads: it is ${why}.`,
        'Name a streaming standby of the primary in HOLDFAST_DATABASE_REPLICA_URL.',
      );
    return ok(`The replica follows, ${Math.max(0, least.flushed - position.replayed)} bytes behind.`);
  } catch (error) {
    return warn(
      `The replica cannot be used: ${sentenceOf(error)}`,
      'Name a replica in HOLDFAST_DATABASE_REPLICA_URL; until then, the primary serves all reads.',
    );
  }
}

async function checkClock(db: Database): Promise<Outcome> {
  const sent = Date.now();
  const there = await createDatabaseFactsRepository(db).readClock();
  const answered = Date.now();
  // The clock was read at some time between these two.
  const offMs = Math.max(0, sent - there, there - answered);
  const seen = `This machine and Postgres differ by ${(offMs / 1000).toFixed(1)} s.`;
  if (offMs <= okClockMs) return ok(seen);
  const fix = "Synchronize all machines' clocks with NTP.";
  return offMs > maxClockMs ? fail(seen, fix) : warn(seen, fix);
}

async function checkKeys(db: Database, { config, masterKeys }: Visit): Promise<Outcome> {
  if (masterKeys === null)
    return warn(
      'There are no master keys here.',
      'Set HOLDFAST_MASTER_KEYS for `holdfast api`, and for `server` with HOLDFAST_DATABASE_URL.',
    );
  const { faults, ids, opened } = await tryMasterKeys(masterKeys, { config, rows: createMasterKeyRepository(db) });
  if (faults.length > 0)
    return fail(
      faults.slice(0, 3).join('; '),
      'Add the keys that encrypted the secrets to HOLDFAST_MASTER_KEYS; `holdfast admin check-keys` lists the stacks.',
    );
  return ok(`The keys ${ids.join(', ')} open the newest ${opened} data keys and secrets.`);
}

async function checkReadOnly(db: Database): Promise<Outcome> {
  const { mode } = await createReadOnlyRepository(db).find();
  return mode === null
    ? ok('The installation accepts writes.')
    : warn(
        `The installation has been read-only since ${mode.since.toISOString()}: ${mode.reason}`,
        'To end that, run `holdfast admin read-only off`.',
      );
}

async function checkSite(db: Database): Promise<Outcome> {
  const { fencedSince, term } = await createSiteRepository(db).read();
  return fencedSince === null
    ? ok(`This site accepts writes (term ${term}).`)
    : fail(
        `Another site replaced this one at ${fencedSince.toISOString()}: the servers refuse writes.`,
        'Send clients to the other site; if this is the right one, run `holdfast admin site promote --yes`.',
      );
}
