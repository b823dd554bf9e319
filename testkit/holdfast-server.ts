import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { holdfastProgram } from './holdfast-program.ts';
import { copyPreparedPostgres } from './postgres-template.ts';
import { sendSignal } from './process-session.ts';
import { PulumiWorkspace, type WorkspaceOptions } from './pulumi-cli.ts';
import { type RequestCounts, readRequestCounts } from './request-counts.ts';
import { findFreePort } from './server-process.ts';
import { until } from './until.ts';

/** A Holdfast server for tests. */
export interface HoldfastServer extends AsyncDisposable {
  readonly url: string;
  /** URL of its metrics. */
  readonly managementUrl: string;
  readonly token: string;
  /** Of another admin, who can approve requests of the first one. */
  readonly reviewerToken?: string | undefined;
  readonly organization: string;
  /** Logged in to this server. */
  workspace(options?: Omit<WorkspaceOptions, 'backendUrl' | 'accessToken'>): Promise<PulumiWorkspace>;
  /** Log lines with level error or fatal; none if the log is not available. */
  faults(): string[];
  /** So far, from the server's metrics. */
  requestCounts(): Promise<RequestCounts>;
}

export interface OwnHoldfastServer extends HoldfastServer {
  readonly dataDir: string;
  /** Id of the running process. */
  readonly pid: () => number;
  /** Stops it gracefully and keeps its data. */
  stop(): Promise<void>;
  /** Kills only the server with SIGKILL and keeps its data. Its Postgres keeps running, as in reality. */
  kill(): Promise<void>;
  /** Starts it again with the same data directory and address. */
  restart(): Promise<void>;
  /** Its output so far. */
  log(): string;
}

const organization = 'dev-org';
const readyTimeoutMs = 400_000;
const stopGraceMs = 120_000;
/** The same flags as in `npm start`. */
const usualNodeFlags = ['--max-semi-space-size=2', '--heap-growing-percent=50'];

const running = new Set<ChildProcess>();
// SIGTERM lets the server stop its Postgres.
process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});

/** Whether the tests use an external server (HOLDFAST_TEST_URL). */
export function hasExternalServer(): boolean {
  return (process.env['HOLDFAST_TEST_URL'] ?? '') !== '';
}

/** The server of HOLDFAST_TEST_URL, or one with default settings. */
export async function startHoldfast(): Promise<HoldfastServer> {
  if (!hasExternalServer()) return startOwnHoldfast({}, { prepared: true, reviewer: true });
  const url = process.env['HOLDFAST_TEST_URL'] as string;
  const token = process.env['HOLDFAST_TEST_TOKEN'] ?? '';
  if (token === '') throw new Error('HOLDFAST_TEST_URL needs HOLDFAST_TEST_TOKEN, a token of an admin of dev-org');
  const managementUrl = process.env['HOLDFAST_TEST_MANAGEMENT_URL'] ?? url;
  const reviewerToken = process.env['HOLDFAST_TEST_REVIEWER_TOKEN'];
  const external = { url, managementUrl, token, reviewerToken, organization };
  return withHelpers({ ...external, faults: () => [], [Symbol.asyncDispose]: async () => undefined });
}

/**
 * Starts a server as in the README, with an empty data directory, and waits until it is healthy. `prepared`: its database already exists,
 * which saves most of a first start. `nodeFlags` replaces the options that `npm start` passes to Node. `port`: the port of the service, by
 * default a free one. `program`: the program that Node runs. `viewers`: the logins of members with the role viewer. `reviewer` adds a
 * second admin, rita.
 */
export async function startOwnHoldfast(
  settings: Record<string, string> = {},
  {
    nodeFlags = usualNodeFlags,
    port: wanted,
    prepared = false,
    program = holdfastProgram,
    reviewer = false,
    viewers = [],
  }: {
    nodeFlags?: readonly string[];
    port?: number;
    prepared?: boolean;
    program?: string;
    reviewer?: boolean;
    viewers?: readonly string[];
  } = {},
): Promise<OwnHoldfastServer> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-server-'));
  const token = `e2e-${randomBytes(20).toString('hex')}`;
  const reviewerToken = reviewer ? `e2e-${randomBytes(20).toString('hex')}` : undefined;
  const dataDir = join(home, 'data');
  const bootstrap = join(home, 'bootstrap.json');
  const members = [
    { login: 'ada', role: 'admin', token },
    ...(reviewer ? [{ login: 'rita', role: 'admin', token: reviewerToken }] : []),
    ...viewers.map((login) => ({ login, role: 'viewer', token: `e2e-${randomBytes(20).toString('hex')}` })),
  ];
  await mkdir(dataDir);
  if (prepared) await copyPreparedPostgres(dataDir);
  await writeFile(bootstrap, JSON.stringify({ organizations: [{ name: organization, members }] }));
  const [port, managementPort] = [wanted ?? (await findFreePort()), await findFreePort()];
  const url = `http://127.0.0.1:${port}`;
  const env = {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: home,
    TMPDIR: tmpdir(),
    HOLDFAST_LISTEN: `127.0.0.1:${port}`,
    HOLDFAST_MANAGEMENT_LISTEN: `127.0.0.1:${managementPort}`,
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_BOOTSTRAP: bootstrap,
    ...settings,
  };
  let output = '';
  let child: ChildProcess;

  const restart = async (): Promise<void> => {
    const started = spawn(process.execPath, [...nodeFlags, program, 'server'], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    running.add(started);
    started.once('exit', () => running.delete(started));
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    await once(started, 'spawn');
    const isHealthy = async (): Promise<boolean> => {
      if (hasEnded(started)) throw new Error(`the server ended with ${started.exitCode}:\n${output.slice(-10_000)}`);
      return fetch(`${url}/healthz`, { signal: AbortSignal.timeout(10_000) }).then(
        ({ ok }) => ok,
        () => false,
      );
    };
    await until(isHealthy, 'the server is healthy', { timeoutMs: readyTimeoutMs, everyMs: 50 });
  };
  const stop = async (): Promise<void> => {
    if (hasEnded(child)) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const grace = new AbortController();
    const late = sleep(stopGraceMs, 'late' as const, { signal: grace.signal }).catch(() => 'in time' as const);
    if ((await Promise.race([ended, late])) === 'late') {
      child.kill('SIGKILL');
      await ended;
      throw new Error(`the server did not stop within ${stopGraceMs} ms:\n${output.slice(-10_000)}`);
    }
    grace.abort();
  };
  const dispose = async (): Promise<void> => {
    try {
      await stop();
    } finally {
      await stopPostgresLeftBehind(dataDir);
      await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
  };
  const kill = async (): Promise<void> => {
    if (hasEnded(child)) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };

  try {
    await restart();
  } catch (error) {
    await dispose();
    throw error;
  }
  const log = (): string => output;
  const faults = (): string[] => output.split('\n').filter((line) => /^\{"level":"(error|fatal)"/.test(line));
  const managementUrl = `http://127.0.0.1:${managementPort}`;
  const own = { url, managementUrl, token, reviewerToken, organization, faults };
  const server = withHelpers({ ...own, [Symbol.asyncDispose]: dispose });
  const pid = (): number => child.pid as number;
  return { ...server, dataDir, pid, stop, kill, restart, log };
}

export function withHelpers(server: Omit<HoldfastServer, 'workspace' | 'requestCounts'>): HoldfastServer {
  return {
    ...server,
    workspace: (options = {}) =>
      PulumiWorkspace.create({ ...options, backendUrl: server.url, accessToken: server.token }),
    requestCounts: () => readRequestCounts(server.managementUrl),
  };
}

/** Stops the Postgres of a server that was killed and not restarted. */
async function stopPostgresLeftBehind(dataDir: string): Promise<void> {
  const pidFile = join(dataDir, 'postgres', 'cluster', 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number((await readFile(pidFile, 'utf8')).split('\n')[0]);
  if (!(pid > 1) || !sendSignal(pid, 'SIGQUIT')) return;
  await until(() => !existsSync(`/proc/${pid}`) || !sendSignal(pid, 'SIGCONT'), 'Postgres ends', {
    timeoutMs: 120_000,
  });
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
