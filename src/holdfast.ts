import { parseArgs } from 'node:util';
import { checkHealth } from './healthz.ts';
import type { RunningServer } from './main.ts';
import type { AppContext } from './shared/context.ts';
import { type Config, ConfigError, holdfastVersion, loadConfig } from './shared/platform/config/config.ts';
import { AppError, OperatorError } from './shared/platform/errors/errors.ts';
import { closeOnSignal } from './shared/platform/lifecycle/lifecycle.ts';
import { createLogger, type Logger } from './shared/platform/logger/logger.ts';

// A container's health check starts this file every few seconds: what a verb needs is loaded by that verb.

const usage = `Holdfast ${holdfastVersion}: state backend for the Pulumi CLI

Usage: holdfast <command>

  server         API and workers in one process; with its own Postgres unless HOLDFAST_DATABASE_URL is set
  api            an API replica; needs HOLDFAST_REDIS_URL and workers
  worker         a worker process; needs HOLDFAST_REDIS_URL
  create-bucket  create the bucket HOLDFAST_S3_BUCKET unless it exists, then exit
  migrate        migrate the database to this release, then exit
  admin          organizations, users and tokens: see \`holdfast admin help\`
  --healthz      exit with 0 when the server of these settings is healthy, otherwise with 1
  --version      print the version
  help           print this

Settings are environment variables; docs/settings.md lists them.`;

async function main(args: string[]): Promise<number | undefined> {
  const [verb, ...rest] = args;
  if (verb === undefined || verb === 'help' || verb === '--help' || verb === '-h') {
    console.log(usage);
    return verb === undefined ? 2 : 0;
  }
  if (verb === '--version') {
    console.log(holdfastVersion);
    return 0;
  }
  if (verb === '--healthz') return checkHealth(loadConfig());
  if (verb === 'admin') return (await import('./admin.ts')).runAdmin(loadConfig(), rest);
  parseArgs({ args: rest, options: {}, strict: true });
  switch (verb) {
    case 'server':
      return runServer(loadConfig());
    case 'api':
      return runRole(loadConfig(), (await import('./api/main.ts')).startApi);
    case 'worker':
      return runRole(loadConfig(), (await import('./workers/main.ts')).startWorker);
    case 'create-bucket':
      return (await import('./create-bucket.ts')).createBucket(loadConfig());
    case 'migrate':
      return runMigrate(loadConfig());
    default:
      console.error(`holdfast: unknown command ${JSON.stringify(verb)}\n\n${usage}`);
      return 2;
  }
}

async function runServer(config: Config): Promise<undefined> {
  const { startServer } = await import('./main.ts');
  const logger = createLogger({ level: config.logLevel });
  const server = await startServer(config, logger);
  closeOnSignal(server.context.lifecycle, logger);
  const { url, management } = server;
  logger.info({ url, management, version: holdfastVersion }, 'listening');
  if (server.firstLogin) printFirstLogin(config, server.firstLogin);
  return undefined;
}

async function runRole(
  config: Config,
  start: (config: Config, logger: Logger) => Promise<{ context: AppContext; url: string; management?: string | null }>,
): Promise<undefined> {
  const logger = createLogger({ level: config.logLevel });
  const { context, url, management } = await start(config, logger);
  closeOnSignal(context.lifecycle, logger);
  logger.info({ url, management, version: holdfastVersion }, 'listening');
  return undefined;
}

/** The token goes to the terminal only, never through the logger. */
function printFirstLogin(
  config: Config,
  { organization, login, token }: NonNullable<RunningServer['firstLogin']>,
): void {
  console.log(`
Holdfast is ready. Created organization "${organization}" and its admin "${login}". This token is shown only once:

  PULUMI_ACCESS_TOKEN=${token} pulumi login ${config.publicUrl}
`);
}

async function runMigrate(config: Config): Promise<number> {
  if (config.database.url === null)
    throw new ConfigError('Invalid settings:\n  HOLDFAST_DATABASE_URL: needed to migrate');
  const { migrate } = await import('./shared/platform/db/migrate.ts');
  const { url, connectTimeoutMs } = config.database;
  const logger = createLogger({ level: config.logLevel });
  const applied = await migrate({ url, connectMs: connectTimeoutMs, waitMs: config.startWaitMs, logger });
  console.log(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`);
  return 0;
}

try {
  const code = await main(process.argv.slice(2));
  if (code !== undefined) process.exit(code);
} catch (error) {
  // A sentence for what an operator can mend; all there is for a fault of ours.
  const isPlain =
    error instanceof OperatorError ||
    error instanceof AppError ||
    (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  console.error(isPlain ? `holdfast: ${(error as Error).message}` : error);
  process.exit(1);
}
