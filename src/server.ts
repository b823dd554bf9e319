import path from 'node:path';
import { buildApi } from './api/app.ts';
import { createApiContext } from './api/create-api-context.ts';
import { type Listening, listen } from './api/platform/http/listen.ts';
import { serverSource } from './shared/audit/audit-event.ts';
import { createAuditRepository } from './shared/audit/audit-repository.ts';
import { type AppContext, type ContextOverrides, createContext } from './shared/context.ts';
import { bootstrapAtStart } from './shared/identity/bootstrap-start.ts';
import { createIdentityRepository } from './shared/identity/identity-repository.ts';
import { signInLink } from './shared/identity/sign-in-link.ts';
import { createSignInLinkRepository } from './shared/identity/sign-in-link-repository.ts';
import type { JobDispatcher } from './shared/jobs/dispatcher.ts';
import type { DataOwnership } from './shared/platform/claim/data-dir-claim.ts';
import { type Config, ConfigError } from './shared/platform/config/config.ts';
import { claimDataDir, ensureMasterKeys, readMasterKeys, storeFirstToken } from './shared/platform/config/data-dir.ts';
import { mintToken } from './shared/platform/crypto/secret-token.ts';
import { openDatabase } from './shared/platform/db/database.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './shared/platform/db/embedded-postgres.ts';
import { assertMigrated, migrate, migrateIfPending } from './shared/platform/db/migrate.ts';
import { type PostgresStart, repeatAtStart } from './shared/platform/db/postgres-start.ts';
import { Lifecycle } from './shared/platform/lifecycle/lifecycle.ts';
import type { Logger } from './shared/platform/logger/logger.ts';
import { startHeartbeat } from './shared/platform/processes/heartbeat.ts';
import { KeyRing } from './shared/secrets/key-ring.ts';
import { createMasterKeyRepository } from './shared/secrets/master-key-repository.ts';
import { startWatches } from './shared/start-watches.ts';
import { startBackgroundWork } from './workers/background-work.ts';
import { startInProcessJobs } from './workers/in-process-jobs.ts';

/** A running server with both roles in one process. */
export interface RunningServer extends Listening, AsyncDisposable {
  readonly context: AppContext;
  /** Created on the first start in embedded mode. `file`: where the token is. */
  readonly firstLogin: { organization: string; login: string; token: string; file: string; link: string } | null;
}

const firstOrganization = 'holdfast';
const firstUser = 'admin';
const firstLinkSeconds = 3600;
/**
 * Minimum time that the embedded Postgres may be silent. It reports the progress of a recovery more often than this.
 */
const minSilenceMs = 30_000;

/**
 * Starts API and workers in this process. Without `config.database.url` it runs its own Postgres, migrates it and
 * creates the first user; otherwise the database must already be migrated, or is with `migrates`.
 */
export async function startServer(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
  { migrates = false }: { readonly migrates?: boolean } = {},
): Promise<RunningServer> {
  const { lifecycle = new Lifecycle(logger, config) } = overrides;
  try {
    const embedded = config.database.url === null ? await startEmbedded(config, logger, lifecycle) : null;
    const parts = { dataOwnership: embedded?.dataOwnership, ...overrides, lifecycle };
    const databaseUrl = embedded?.databaseUrl ?? (config.database.url as string);
    const masterKeys = config.secrets.masterKeys ?? embedded?.masterKeys ?? readMasterKeys(config.dataDir);
    if (!masterKeys)
      throw new ConfigError('Invalid settings:\n  HOLDFAST_MASTER_KEYS: needed with HOLDFAST_DATABASE_URL');
    if (migrates && !embedded) await migrateIfPending(postgresStart(config, databaseUrl, logger));
    if (config.redisUrl !== null) {
      const { createClusterContext, createClusterDispatcher } = await import('./shared/cluster-context.ts');
      const { startClusterJobs } = await import('./workers/main.ts');
      const cluster = await createClusterContext(
        { ...config, database: { ...config.database, url: databaseUrl }, secrets: { ...config.secrets, masterKeys } },
        logger,
        parts,
      );
      const startJobs = (): JobDispatcher => {
        startClusterJobs(cluster);
        return createClusterDispatcher(cluster);
      };
      return await serve(cluster, startJobs, embedded !== null);
    }
    await assertMigrated(postgresStart(config, databaseUrl, logger));
    const context = await createContext(config, { databaseUrl, masterKeys }, { logger, ...parts });
    return await serve(context, () => startInProcessJobs(context), embedded !== null);
  } catch (error) {
    await lifecycle.close();
    throw error;
  }
}

async function serve(context: AppContext, startJobs: () => JobDispatcher, isEmbedded: boolean): Promise<RunningServer> {
  const { config, lifecycle } = context;
  const wait = { waitMs: config.startWaitMs, logger: context.logger };
  await bootstrapAtStart(context);
  const isFirst = isEmbedded && !config.bootstrapFile;
  const firstLogin = isFirst ? await repeatAtStart(() => createFirstLogin(context), wait) : null;
  await startWatches(context);
  // The first callers would log in. The server serves without it, too.
  context.db.openConnections().catch((err: unknown) => context.logger.debug({ err }, 'connections not opened'));
  startHeartbeat(context, 'server');
  // Only now, because jobs that wait in Redis start at once: they would write to a database that was set back, or at a site that was replaced.
  const dispatcher = startJobs();
  startBackgroundWork(context, 'all');
  const apiContext = await createApiContext(context, dispatcher);
  const listening = await listen(await buildApi(apiContext), apiContext);
  return { context, ...listening, firstLogin, [Symbol.asyncDispose]: () => lifecycle.close() };
}

interface Embedded {
  readonly databaseUrl: string;
  readonly masterKeys: string;
  readonly dataOwnership: DataOwnership;
}

/** Starts a Postgres that stops with `lifecycle`, which closes once the Postgres has ended. */
async function startEmbedded(config: Config, logger: Logger, lifecycle: Lifecycle): Promise<Embedded> {
  const claim = await claimDataDir(config.dataDir, logger);
  let postgres: EmbeddedPostgres | undefined;
  let isStarting = false;
  lifecycle.onClose('processes', 'postgres', async () => {
    await postgres?.stop();
    // Another server must not come while one that still starts uses the directory.
    if (!isStarting) claim.release();
  });
  claim.onLost((reason) => {
    // At once: what is still written would damage the data of the other server.
    postgres?.kill();
    logger.fatal({ directory: config.dataDir, reason }, 'ending: the data directory was taken over by another server');
    process.exit(1);
  });
  isStarting = true;
  const starting = startEmbeddedPostgres(path.join(config.dataDir, 'postgres'), logger, {
    silenceMs: Math.max(config.startWaitMs, minSilenceMs),
    // A supervisor then starts the server again.
    onEnd: (reason) => {
      logger.fatal({ reason }, 'ending: the embedded Postgres has ended');
      void lifecycle.close().finally(() => process.exit(1));
    },
    takeLock: () => claim.lockFor('postgres'),
  });
  postgres = await starting.finally(() => {
    isStarting = false;
  });
  await migrate(postgresStart(config, postgres.url, logger));
  const masterKeys = config.secrets.masterKeys ?? (await takeMasterKeys(config, postgres.url));
  return { databaseUrl: postgres.url, masterKeys, dataOwnership: claim };
}

/** The master keys of the data directory, made if there is no secret yet. Throws ConfigError: new ones would read none of the secrets. */
async function takeMasterKeys({ dataDir, database }: Config, url: string): Promise<string> {
  if (readMasterKeys(dataDir) === null) {
    const db = await openDatabase({ ...database, url, poolSize: 2 });
    const used = await createMasterKeyRepository(db)
      .listUsedIds()
      .finally(() => db.close());
    if (used.length > 0)
      throw new ConfigError(
        `Invalid settings:\n  HOLDFAST_MASTER_KEYS: new keys cannot read the database's secrets of master key ${used.join(', ')}: ` +
          `set its present keys, or put the file master-keys back into ${dataDir}`,
      );
  }
  return ensureMasterKeys(dataDir, () => KeyRing.generate());
}

function postgresStart({ database, startWaitMs }: Config, url: string, logger: Logger): PostgresStart {
  return { url, connectMs: database.connectTimeoutMs, waitMs: startWaitMs, logger };
}

async function createFirstLogin({ config, db }: AppContext): Promise<RunningServer['firstLogin']> {
  const { token, hash } = mintToken('hf-');
  return db.inTransaction(async (tx) => {
    const identity = createIdentityRepository(tx);
    if ((await identity.countUsers()) > 0) return null;
    const organization = await identity.ensureOrganization(firstOrganization);
    const user = await identity.ensureUser(firstUser);
    await identity.setSiteAdmin(user.id, true);
    await identity.setMembership(organization.id, user.id, 'admin');
    await identity.insertToken({ userId: user.id, hash, description: 'first start', expiresAt: null });
    const audit = {
      action: 'organization.create',
      organization: firstOrganization,
      object: firstOrganization,
    } as const;
    await createAuditRepository(tx).insert(serverSource, { ...audit, details: { admin: firstUser } });
    const file = storeFirstToken(config.dataDir, token);
    const { secret } = await createSignInLinkRepository(tx).insert(user.id, firstLinkSeconds);
    return {
      organization: firstOrganization,
      login: firstUser,
      token,
      file,
      link: signInLink(config.publicUrl, secret),
    };
  });
}
