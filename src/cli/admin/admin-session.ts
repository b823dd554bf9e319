import path from 'node:path';
import { type AppContext, createContext } from '../../shared/context.ts';
import { type Config, ConfigError } from '../../shared/platform/config/config.ts';
import { readMasterKeys } from '../../shared/platform/config/data-dir.ts';
import { type Database, openDatabase } from '../../shared/platform/db/database.ts';
import { readRunningUrl } from '../../shared/platform/db/embedded-postgres.ts';
import { assertMigrated } from '../../shared/platform/db/migrate.ts';
import { mapDatabaseError } from '../../shared/platform/db/sqlstate.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { createLogger, type Logger } from '../../shared/platform/logger/logger.ts';

/** Somebody sits before it: shorter than a server waits, in ms. */
const longestWaitMs = 10_000;

/** What was asked for is not done, for the reason that the message gives. */
export class CommandRefusedError extends OperatorError {
  override readonly name = 'CommandRefusedError';
}

/** What one admin command works with. Nothing is opened before it is asked for. */
export class AdminSession {
  readonly config: Config;
  /** Writes to stderr: stdout is for what was asked. */
  readonly logger: Logger;

  constructor(config: Config) {
    this.config = config;
    this.logger = createLogger({ level: config.logLevel }, process.stderr);
  }

  /** null: there are none. */
  get masterKeys(): string | null {
    return this.config.secrets.masterKeys ?? readMasterKeys(this.config.dataDir);
  }

  /** Does `work` on the database. Throws ConfigError, PendingMigrationsError and PartUnavailableError. */
  async withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const db = await openDatabase({ ...this.config.database, url: await this.#reachDatabase(), poolSize: 2 });
    try {
      return await work(db);
    } catch (error) {
      throw mapDatabaseError(error);
    } finally {
      await db.close();
    }
  }

  /** Does `work` with all that servers have: the database, the blob store, and the keys as far as there are any. */
  async withContext<T>(work: (context: AppContext) => Promise<T>): Promise<T> {
    const { config, logger, masterKeys } = this;
    await using context = await createContext(
      config,
      { databaseUrl: await this.#reachDatabase(), masterKeys },
      { logger },
    );
    return await work(context);
  }

  /** The URL of the database once it takes writes: HOLDFAST_DATABASE_URL, or that of the server on the data folder. */
  async #reachDatabase(): Promise<string> {
    const { dataDir, database, startWaitMs } = this.config;
    const url = database.url ?? (await readRunningUrl(path.join(dataDir, 'postgres')));
    if (!url) throw new ConfigError(`There is neither HOLDFAST_DATABASE_URL nor a server running on ${dataDir}`);
    const waitMs = Math.min(startWaitMs, longestWaitMs);
    await assertMigrated({ url, connectMs: database.connectTimeoutMs, waitMs, logger: this.logger });
    return url;
  }
}

/** How a command comes by its session, which reads the settings: its help needs none. */
export type OpenSession = () => AdminSession;
