import { rmSync } from 'node:fs';
import type { RunningServer } from '../server.ts';
import type { AppContext } from '../shared/context.ts';
import { type Config, holdfastVersion } from '../shared/platform/config/config.ts';
import { readTracingConfig } from '../shared/platform/config/open-telemetry.ts';
import { startDebugSocket } from '../shared/platform/debug/debug-socket.ts';
import { closeOnSignal } from '../shared/platform/lifecycle/lifecycle.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { startTracing } from '../shared/platform/tracing/start-tracing.ts';
import type { CommandRun } from './command-run.ts';
import { createProcessLogger } from './process-logger.ts';

type Role = 'server' | 'api' | 'worker';

interface ServeOptions {
  /** Migrates the database first. Only for the role `server`. */
  readonly migrate?: true;
}

interface Started {
  readonly context: AppContext;
  readonly url: string;
  readonly management?: string | null;
  readonly firstLogin?: RunningServer['firstLogin'];
}

/** Starts a process with the role, which runs until it receives a signal to stop. */
export async function serve(run: CommandRun, role: Role, options: ServeOptions = {}): Promise<void> {
  const config = run.loadConfig();
  const logger = createProcessLogger(config);
  const tracing = await startTracing(role, readTracingConfig(), logger);
  const { context, firstLogin, management, url } = await start(role, config, logger, options);
  if (tracing) context.lifecycle.onClose('processes', 'tracing', tracing.close);
  const { dataDir, database } = config;
  const makesFolder = role === 'server' && database.url === null;
  await startDebugSocket({ dataDir, role, makesFolder, logger, lifecycle: context.lifecycle });
  closeOnSignal(context.lifecycle, logger);
  logger.info({ url, management, version: holdfastVersion }, 'listening');
  if (firstLogin) printFirstLogin(config, firstLogin);
  run.exitCode = undefined;
}

/** Loads only the code of the role. */
async function start(role: Role, config: Config, logger: Logger, { migrate }: ServeOptions): Promise<Started> {
  switch (role) {
    case 'server':
      return (await import('../server.ts')).startServer(config, logger, {}, { migrates: migrate === true });
    case 'api':
      return (await import('../api/main.ts')).startApi(config, logger);
    case 'worker':
      return (await import('../workers/main.ts')).startWorker(config, logger);
  }
}

/**
 * Prints how to log in. Token and link are shown only at a terminal, and the token's file is then removed: any other reader of standard output
 * would keep them, as container logs do.
 */
function printFirstLogin(
  config: Config,
  { file, link, organization, login, token }: NonNullable<RunningServer['firstLogin']>,
): void {
  const ready = `Holdfast is ready. Created organization "${organization}" and its admin "${login}".`;
  if (process.stdout.isTTY) {
    console.log(`
${ready} Both are shown only once.

  Web UI, within an hour:  ${link}
  CLI:                     PULUMI_ACCESS_TOKEN=${token} pulumi login ${config.publicUrl}
`);
    rmSync(file, { force: true });
    return;
  }
  console.log(`
${ready} The admin's token is in ${file}, which only this system user can read. Log in with it, then delete the file:

  PULUMI_ACCESS_TOKEN=$(cat ${file}) pulumi login ${config.publicUrl}

For the web UI, \`holdfast admin user sign-in-link ${login}\` prints a link.
`);
}
