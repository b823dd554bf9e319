import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { createApiContext } from './api/api-context.ts';
import { buildApi } from './api/app.ts';
import { listen } from './api/listen.ts';
import { type AppContext, type ContextOverrides, createContext } from './shared/context.ts';
import { applyBootstrap, readBootstrapFile } from './shared/identity/bootstrap.ts';
import { createIdentityRepository } from './shared/identity/identity-repository.ts';
import { type Config, ConfigError } from './shared/platform/config/config.ts';
import { claimDataDir, makeMasterKeys, readMasterKeys } from './shared/platform/config/data-dir.ts';
import { mintToken } from './shared/platform/crypto/secret-token.ts';
import { startEmbeddedPostgres } from './shared/platform/db/embedded-postgres.ts';
import { assertMigrated, migrate } from './shared/platform/db/migrate.ts';
import type { Logger } from './shared/platform/logger/logger.ts';
import type { JobDispatcher } from './shared/platform/queue/dispatcher.ts';
import { KeyRing } from './shared/secrets/key-ring.ts';
import { startInProcessJobs } from './workers/in-process-jobs.ts';
import { startSweeper } from './workers/maintenance/sweeper.ts';

/** A running server: both roles in one process. */
export interface RunningServer extends AsyncDisposable {
  readonly context: AppContext;
  readonly url: string;
  /** Made on the first start of the embedded shape, and never shown again. */
  readonly firstLogin: { organization: string; login: string; token: string } | null;
}

const firstOrganization = 'holdfast';
const firstUser = 'admin';

/**
 * Starts API and workers in this process. Without `config.database.url` it runs its own Postgres, migrates it and makes
 * the first user; with one, the database must have been migrated.
 */
export async function startServer(
  config: Config,
  logger: Logger,
  overrides: ContextOverrides = {},
): Promise<RunningServer> {
  const embedded = config.database.url === null ? await startEmbedded(config, logger) : null;
  try {
    const databaseUrl = embedded?.databaseUrl ?? (config.database.url as string);
    const masterKeys = config.secrets.masterKeys ?? embedded?.masterKeys;
    if (!masterKeys)
      throw new ConfigError('These settings are wrong:\n  HOLDFAST_MASTER_KEYS: needed with HOLDFAST_DATABASE_URL');
    if (config.redisUrl !== null) {
      const { createClusterContext, createClusterDispatcher } = await import('./shared/cluster-context.ts');
      const { startClusterJobs } = await import('./workers/main.ts');
      const cluster = await createClusterContext(
        { ...config, database: { ...config.database, url: databaseUrl }, secrets: { masterKeys } },
        logger,
        overrides,
      );
      if (embedded) cluster.lifecycle.onClose('processes', 'postgres', embedded.stop);
      startClusterJobs(cluster);
      return await serve(cluster, createClusterDispatcher(cluster), embedded !== null);
    }
    await assertMigrated(databaseUrl, logger);
    const context = await createContext(config, { databaseUrl, masterKeys }, { logger, ...overrides });
    if (embedded) context.lifecycle.onClose('processes', 'postgres', embedded.stop);
    return await serve(context, startInProcessJobs(context), embedded !== null);
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

async function serve(context: AppContext, dispatcher: JobDispatcher, isEmbedded: boolean): Promise<RunningServer> {
  const { config, db, lifecycle } = context;
  try {
    if (config.bootstrapFile) await applyBootstrap(db, readBootstrapFile(config.bootstrapFile));
    const firstLogin = isEmbedded && !config.bootstrapFile ? await createFirstLogin(context) : null;
    startSweeper(context);
    const app = await buildApi(createApiContext(context, dispatcher));
    lifecycle.onClose('intake', 'http', () => app.close());
    const url = await listen(app, config.listen);
    return { context, url, firstLogin, [Symbol.asyncDispose]: () => lifecycle.close() };
  } catch (error) {
    await lifecycle.close();
    throw error;
  }
}

async function startEmbedded(
  config: Config,
  logger: Logger,
): Promise<{ databaseUrl: string; masterKeys: string; stop: () => Promise<void> }> {
  mkdirSync(config.dataDir, { recursive: true });
  const release = claimDataDir(config.dataDir);
  try {
    const masterKeys =
      config.secrets.masterKeys ?? readMasterKeys(config.dataDir) ?? makeMasterKeys(config.dataDir, KeyRing.generate());
    const postgres = await startEmbeddedPostgres(path.join(config.dataDir, 'postgres'), logger);
    const stop = async (): Promise<void> => {
      await postgres.stop();
      release();
    };
    try {
      await migrate(postgres.url, logger);
    } catch (error) {
      await stop();
      throw error;
    }
    return { databaseUrl: postgres.url, masterKeys, stop };
  } catch (error) {
    release();
    throw error;
  }
}

async function createFirstLogin({ db }: AppContext): Promise<RunningServer['firstLogin']> {
  const { token, hash } = mintToken('hf-');
  return db.inTransaction(async (tx) => {
    const identity = createIdentityRepository(tx);
    if ((await identity.countUsers()) > 0) return null;
    const organization = await identity.ensureOrganization(firstOrganization);
    const user = await identity.ensureUser(firstUser);
    await identity.setSiteAdmin(user.id, true);
    await identity.setMembership(organization.id, user.id, 'admin');
    await identity.insertToken({ userId: user.id, hash, description: 'first start', expiresAt: null });
    return { organization: firstOrganization, login: firstUser, token };
  });
}
