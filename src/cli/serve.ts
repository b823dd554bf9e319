import { rmSync } from 'node:fs';
import type { RunningServer } from '../server.ts';
import { type Config, holdfastVersion } from '../shared/platform/config/config.ts';
import { readTracingConfig } from '../shared/platform/config/open-telemetry.ts';
import { startDebugSocket } from '../shared/platform/debug/debug-socket.ts';
import { closeOnSignal, Lifecycle } from '../shared/platform/lifecycle/lifecycle.ts';
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
  readonly url: string;
  readonly management?: string | null;
  readonly firstLogin?: RunningServer['firstLogin'];
}

/** Starts a process with the role, which runs until it receives a signal to stop. */
export async function serve(run: CommandRun, role: Role, options: ServeOptions = {}): Promise<void> {
  const config = run.loadConfig();
  const logger = createProcessLogger(config);
  const lifecycle = new Lifecycle(logger, config);
  // Registered before the start, which may wait for its parts: without a handler, the first process of a container ignores signals.
  const isStopping = closeOnSignal(lifecycle, logger);
  const tracing = await startTracing(role, readTracingConfig(), logger);
  if (tracing) lifecycle.onClose('processes', 'tracing', tracing.close);
  const started = await start(role, { config, lifecycle, logger }, options).catch((error: unknown) => {
    // The start fails because its parts are closed.
    if (isStopping()) return null;
    throw error;
  });
  if (started === null || isStopping()) return lifecycle.close();
  const { firstLogin, management, url } = started;
  await startDebugSocket({ dataDir: config.dataDir, role, logger, lifecycle });
  logger.info({ url, management, version: holdfastVersion }, 'listening');
  if (firstLogin) printFirstLogin(config, firstLogin);
  run.exitCode = undefined;
}

/** Loads only the code of the role. */
async function start(
  role: Role,
  { config, lifecycle, logger }: { readonly config: Config; readonly lifecycle: Lifecycle; readonly logger: Logger },
  { migrate }: ServeOptions,
): Promise<Started> {
  switch (role) {
    case 'server':
      return (await import('../server.ts')).startServer(config, logger, { lifecycle }, { migrates: migrate === true });
    case 'api':
      return (await import('../api/main.ts')).startApi(config, logger, { lifecycle });
    case 'worker':
      return (await import('../workers/main.ts')).startWorker(config, logger, { lifecycle });
  }
}

/**
 * Prints how to log in. The token and the link are shown only at a terminal, and the token's file is then removed. Other readers of
 * standard output, for example container logs, would keep them.
 */
function printFirstLogin(
  config: Config,
  { file, link, organization, login, token }: NonNullable<RunningServer['firstLogin']>,
): void {
  const ready = `Holdfast is ready. Created organization "${organization}" and admin "${login}".`;
  if (process.stdout.isTTY) {
    console.log(`
${ready} The link and token are shown only once.

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
