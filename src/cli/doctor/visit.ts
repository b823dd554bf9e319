import path from 'node:path';
import type { Config } from '../../shared/platform/config/config.ts';
import { readMasterKeys } from '../../shared/platform/config/data-dir.ts';
import { acceptingAny } from '../../shared/platform/db/accepting-any.ts';
import { type Database, openDatabase } from '../../shared/platform/db/database.ts';
import { readRunningUrl } from '../../shared/platform/db/embedded-postgres.ts';
import { migrationNames } from '../../shared/platform/db/migrate.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';
import { createDatabaseFactsRepository } from './database-facts-repository.ts';

const closeMs = 500;
/** The share of the time limit after which a hanging database is given up, so that dependent checks can still be skipped in time. */
const databaseShare = 0.6;

/** Checks of one run share these. Each is opened once, by the first check that needs it. */
export class Visit implements AsyncDisposable {
  readonly config: Config;
  /** Limits of the doctor's own connections to Postgres, in ms. */
  readonly limits: { readonly connectTimeoutMs: number; readonly statementTimeoutMs: number };
  readonly masterKeys: string | null;
  readonly #closers: (() => Promise<void>)[] = [];
  #isOver = false;
  #opening: Promise<Database | null> | null = null;
  #reaching: Promise<Database | null> | null = null;
  #migrating: Promise<Database | null> | null = null;

  constructor(config: Config, limitMs: number) {
    this.config = config;
    const storeMs = limitMs * databaseShare;
    this.limits = { connectTimeoutMs: storeMs, statementTimeoutMs: storeMs };
    this.masterKeys = config.secrets.masterKeys ?? readMasterKeysIfAllowed(config.dataDir);
  }

  /** The database, which may not answer. Null: it is embedded and not running. */
  opened(): Promise<Database | null> {
    this.#opening ??= openAnyDatabase(this).then((db) => {
      if (db) this.closing(() => db.close());
      return db;
    });
    return this.#opening;
  }

  /** The database, if it answers. */
  database(): Promise<Database | null> {
    this.#reaching ??= this.opened()
      .then(async (db) => {
        if (db) await createDatabaseFactsRepository(db).readClock();
        return db;
      })
      .catch(() => null);
    return this.#reaching;
  }

  /** The database, if it answers and has all migrations. */
  migrated(): Promise<Database | null> {
    this.#migrating ??= this.database()
      .then(async (db) => {
        const applied = db === null ? [] : await createDatabaseFactsRepository(db).listMigrations();
        return migrationNames().every((name) => applied.includes(name)) ? db : null;
      })
      // The user may not read the migrations.
      .catch(() => null);
    return this.#migrating;
  }

  /** Closes something at the end. */
  readonly closing = (close: () => Promise<void>): void => {
    // A late check has opened it after the end.
    if (this.#isOver) void close().catch(() => {});
    else this.#closers.push(close);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    // A resource that hangs does not close, either.
    await Promise.all(
      this.#closers.map((close) => withTimeout(close(), closeMs, () => new Error('late')).catch(() => {})),
    );
  }
}

function readMasterKeysIfAllowed(directory: string): string | null {
  try {
    return readMasterKeys(directory);
  } catch {
    return null;
  }
}

/** Opens any database, even a standby, or one without migrations. Null: it is embedded and not running. */
async function openAnyDatabase({ config: { database, dataDir }, limits }: Visit): Promise<Database | null> {
  const url = database.url ?? (await readRunningUrl(path.join(dataDir, 'postgres')));
  return url === null ? null : openDatabase({ ...database, ...limits, url: acceptingAny(url), poolSize: 4 });
}
