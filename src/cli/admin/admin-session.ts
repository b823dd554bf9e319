import path from 'node:path';
import { type AppContext, type ContextOverrides, createContext, recordReplaced } from '../../shared/context.ts';
import { NotificationSender } from '../../shared/events/live/notification-sender.ts';
import { type Config, ConfigError } from '../../shared/platform/config/config.ts';
import { readMasterKeys } from '../../shared/platform/config/data-dir.ts';
import { acceptingAny } from '../../shared/platform/db/accepting-any.ts';
import { type Database, openDatabase } from '../../shared/platform/db/database.ts';
import { readRunningUrl } from '../../shared/platform/db/embedded-postgres.ts';
import { assertMigrated } from '../../shared/platform/db/migrate.ts';
import { mapDatabaseError } from '../../shared/platform/db/sqlstate.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import type { StartWait } from '../../shared/platform/lifecycle/start-wait.ts';
import { createLogger, type Logger } from '../../shared/platform/logger/logger.ts';
import { ReadOnlyMode } from '../../shared/platform/read-only/read-only-mode.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import { checkSite, noticeOtherSite } from '../../shared/platform/site/site-watch.ts';
import { sendQueueNotifications } from '../../shared/updates/queue-notifications.ts';
import type { CommandRun } from '../command-run.ts';
import { withSiteStores } from './site-status.ts';

/** For the database. Shorter than a server's, because a person is waiting. */
const maxWaitMs = 10_000;

export class CommandRefusedError extends OperatorError {
  override readonly name = 'CommandRefusedError';
}

function refusedOnFencedSite(): CommandRefusedError {
  return new CommandRefusedError(
    'Another site has taken over: what this command writes here would be lost, or would change what the other site uses. Run it there; if ' +
      'this site is the right one, run `holdfast admin site promote`. If this database was restored to a point before a take-over, and no server of ' +
      'the other one is to run, run `holdfast admin take-over` while its own servers are stopped, then this command again',
  );
}

export class AdminSession {
  readonly config: Config;
  /** Writes to stderr: stdout is for the output of the command. */
  readonly logger: Logger;
  readonly #isForFencedSite: boolean;
  #isOwn = false;

  constructor(config: Config, run: Pick<CommandRun, 'isForFencedSite'> = {}) {
    this.config = config;
    this.#isForFencedSite = run.isForFencedSite === true;
    this.logger = createLogger({ level: config.logLevel }, process.stderr);
  }

  get masterKeys(): string | null {
    return this.config.secrets.masterKeys ?? readMasterKeys(this.config.dataDir);
  }

  get startWait(): StartWait {
    return { waitMs: Math.min(this.config.startWaitMs, maxWaitMs), logger: this.logger };
  }

  /** Throws ConfigError, PendingMigrationsError, PartUnavailableError and CommandRefusedError. */
  async withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const db = await openDatabase({ ...this.config.database, url: await this.#reachDatabase(), poolSize: 2 });
    const notifications = new NotificationSender({ db, logger: this.logger });
    sendQueueNotifications(db, notifications.channel, this.logger);
    try {
      await this.#askSite(db);
      return await work(db);
    } catch (error) {
      throw mapDatabaseError(error);
    } finally {
      await notifications.close();
      await db.close();
    }
  }

  /**
   * For a command that opens something else before the database. Every command that writes first checks whether another site has taken
   * over, and opens its stores and keys afterwards. Throws the errors of `withDatabase`.
   */
  async assertMayRun(): Promise<void> {
    if (!this.#isForFencedSite && !this.#isOwn) await this.withDatabase(async () => {});
  }

  /** Whether there is a database to check: a host may have only the backups. */
  async hasDatabase(): Promise<boolean> {
    return (await this.#findUrl()) !== null;
  }

  #findUrl(): Promise<string | null> {
    const { dataDir, database } = this.config;
    return database.url === null ? readRunningUrl(path.join(dataDir, 'postgres')) : Promise.resolve(database.url);
  }

  /** Checks the stores, too: the servers of this site may not have run since the other site took over. */
  async #askSite(db: Database): Promise<void> {
    const { config, logger } = this;
    if (this.#isForFencedSite || this.#isOwn) return;
    if ((await createSiteRepository(db).read()).fencedSince) throw refusedOnFencedSite();
    const parts = { db, logger, recordReplaced, readOnly: new ReadOnlyMode() };
    this.#isOwn = await withSiteStores(db, config, (siteStores) => checkSite({ ...parts, siteStores }));
    if (!this.#isOwn) throw refusedOnFencedSite();
  }

  /** The database may be a standby, or lack migrations. Throws ConfigError. */
  async withAnyDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const { database } = this.config;
    const url = database.url === null ? await this.#reachDatabase() : acceptingAny(database.url);
    const db = await openDatabase({ ...database, url, poolSize: 2 });
    try {
      return await work(db);
    } catch (error) {
      throw mapDatabaseError(error);
    } finally {
      await db.close();
    }
  }

  /** The context of a server: database, blob store and, if there are any, master keys. Registers the keys only with `registersKeys`. */
  async withContext<T>(work: (context: AppContext) => Promise<T>, overrides: ContextOverrides = {}): Promise<T> {
    const { config, logger, masterKeys } = this;
    await this.assertMayRun();
    await using context = await createContext(
      config,
      { databaseUrl: await this.#reachDatabase(), masterKeys },
      { logger, registersKeys: false, ...overrides },
    );
    try {
      // Damage that it reads is not marked at this site.
      if (this.#isForFencedSite) await noticeOtherSite(context);
      return await work(context);
    } catch (error) {
      throw mapDatabaseError(error);
    }
  }

  /**
   * Waits until the database accepts writes. Without HOLDFAST_DATABASE_URL, it is the database of the server that runs on the data
   * directory.
   */
  async #reachDatabase(): Promise<string> {
    const { dataDir, database } = this.config;
    const url = await this.#findUrl();
    if (!url) throw new ConfigError(`There is neither HOLDFAST_DATABASE_URL nor a server running on ${dataDir}`);
    await assertMigrated({ ...this.startWait, url, connectMs: database.connectTimeoutMs });
    return url;
  }
}

/** Called only when the command runs, so that its help does not need the settings. */
export type OpenSession = () => AdminSession;
