import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FileLock } from '../claim/file-lock.ts';
import { childEnvironment } from '../config/child-environment.ts';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';
import type { Logger } from '../logger/logger.ts';
import { findSystemUser } from '../processes/system-user.ts';
import { EmbeddedPostgresError, findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';
import { assertNoneBeside, assertSameMajor } from './postgres-major.ts';
import { killWithChildren, stopOrphan } from './postgres-processes.ts';

export interface EmbeddedPostgres {
  readonly url: string;
  /** Requests a fast shutdown, and resolves when the process has exited. */
  stop(): Promise<void>;
  /** Also kills the child processes, so that nothing more is written. */
  kill(): void;
}

interface EmbeddedPostgresOptions {
  readonly flags?: readonly string[];
  readonly silenceMs?: number;
  readonly choosePort?: () => Promise<number>;
  /** Set for programs that are not of this release. */
  readonly binaries?: PostgresBinaries;
  readonly cluster?: string;
  /** Called if the process ends after it was ready, unless it was stopped or killed here. */
  readonly onEnd?: (reason: string) => void;
  /** Postgres and its child processes hold the lock while any of them runs. */
  readonly takeLock?: () => Promise<FileLock | null | 'held'>;
}

/** Postgres refuses to run as root, so this user runs it. */
interface Account {
  readonly uid: number;
  readonly gid: number;
  /** The command to prepend if the user cannot read the program otherwise. */
  readonly prefix: readonly string[];
}

export const clusterFolder = 'cluster';
export const upgradedFolder = 'cluster.upgraded';

const readyLine = 'database system is ready to accept connections';
const recoveryLine = 'database system was not properly shut down';
const portTakenLine = 'could not create any TCP/IP sockets';
/** Another process may take a port before Postgres listens on it. */
const maxPorts = 5;
const stopTimeoutMs = 60_000;

/**
 * Creates the files on first use. First shuts down a process left behind by a killed server. Recovery after a crash can take long, so the
 * start fails only after Postgres has logged nothing for `silenceMs`. `flags` are passed to postgres (`-c name=value`).
 */
export async function startEmbeddedPostgres(
  directory: string,
  logger: Logger,
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  const {
    choosePort = freePort,
    cluster = clusterFolder,
    flags = [],
    onEnd,
    silenceMs = 30_000,
    takeLock = async () => null,
  } = options;
  const binaries = options.binaries ?? (await findPostgresBinaries());
  const dataDir = path.join(directory, cluster);
  const passwordFile = path.join(directory, 'password');
  makeFolderDurably(directory);
  if (cluster === clusterFolder) endUpgrade(directory);
  assertSameMajor(dataDir, binaries);
  const account = chooseAccount(directory, binaries);
  if (!existsSync(path.join(dataDir, 'PG_VERSION'))) await initialize(dataDir, passwordFile, binaries, account);
  // The process that created the file may have been killed before it synced it.
  syncPath(passwordFile);
  syncPath(directory);
  await stopOrphan(dataDir, stopTimeoutMs, logger);
  const lock = await takeLock();
  if (lock === 'held')
    throw new EmbeddedPostgresError(
      `The Postgres of an earlier server still runs on ${dataDir}, where this process cannot see it; stop the container in which that server ran`,
    );
  const password = readFileSync(passwordFile, 'utf8').trim();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'wal_compression=on'];
  const launchOn = (port: number): ChildProcess => {
    const chosen = [`port=${port}`, ...settings].flatMap((setting) => ['-c', setting]);
    return launch(account, binaries.postgres, ['-D', dataDir, ...chosen, ...flags], lock);
  };
  let port = await choosePort();
  let child = launchOn(port);
  for (let tried = 1; !(await untilReady(child, logger, silenceMs, tried < maxPorts)); tried++) {
    logger.debug({ port }, 'the port chosen for the embedded Postgres was taken meanwhile');
    port = await choosePort();
    child = launchOn(port);
  }
  let isStopping = false;
  child.once('exit', (code, signal) => {
    if (!isStopping) onEnd?.(signal === null ? `exit code ${code}` : signal);
  });
  return {
    url: databaseUrl(password, port),
    stop: async () => {
      isStopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      child.kill('SIGINT');
      await Promise.race([gone, sleep(stopTimeoutMs, undefined, { ref: false })]);
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGQUIT');
    },
    kill: () => {
      isStopping = true;
      killWithChildren(child);
    },
  };
}

/** Moves the cluster of an upgrade to the place of the old one, which has been moved away. */
export function endUpgrade(directory: string): void {
  const dataDir = path.join(directory, clusterFolder);
  const upgraded = path.join(directory, upgradedFolder);
  if (existsSync(dataDir) || !existsSync(upgraded)) return;
  renameSync(upgraded, dataDir);
  syncPath(directory);
}

function chooseAccount(directory: string, binaries: PostgresBinaries): Account | null {
  if (userInfo().uid !== 0) return null;
  const ids = findSystemUser('postgres') ?? findSystemUser('nobody');
  if (!ids)
    throw new EmbeddedPostgresError(
      'Postgres does not run as root and there is no user `postgres` or `nobody`; start Holdfast as another user',
    );
  chownSync(directory, ids.uid, ids.gid);
  const isReadable = [directory, binaries.postgres].every((file) => spawnSync('test', ['-r', file], ids).status === 0);
  if (isReadable) return { ...ids, prefix: [] };
  // Other users cannot read a checkout below /root. They need only the capability to read and search directories. Postgres checks its
  // programs with access(2), which respects the capabilities of a non-root user only with this securebit.
  const prefix = [
    'setpriv',
    `--reuid=${ids.uid}`,
    `--regid=${ids.gid}`,
    '--clear-groups',
    '--inh-caps=+dac_read_search',
    '--ambient-caps=+dac_read_search',
    '--securebits=+no_setuid_fixup',
    '--',
  ];
  if (spawnSync(prefix[0] as string, [...prefix.slice(1), 'test', '-r', binaries.postgres]).status === 0)
    return { ...ids, prefix };
  throw new EmbeddedPostgresError(
    `Postgres does not run as root, and user ${ids.uid} cannot read ${directory} and ${binaries.postgres}; start Holdfast as another user or from a directory that everyone can read`,
  );
}

function launch(
  account: Account | null,
  program: string,
  args: readonly string[],
  lock: FileLock | null = null,
): ChildProcess {
  // Ctrl-C reaches only the server, which stops Postgres last.
  const base: SpawnOptions = {
    env: childEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe', ...(lock ? [lock.descriptor] : [])],
    detached: true,
  };
  const { prefix = [], ...ids } = account ?? {};
  const [first = program, ...rest] = [...prefix, program, ...args];
  const child = spawn(first, rest, prefix.length > 0 ? base : { ...base, ...ids });
  // Postgres ends with this process, however this process exits.
  const end = (): void => void child.kill('SIGINT');
  process.once('exit', end);
  child.once('close', () => process.off('exit', end));
  return child;
}

async function initialize(
  dataDir: string,
  passwordFile: string,
  binaries: PostgresBinaries,
  account: Account | null,
): Promise<void> {
  // The rename below creates a complete cluster or none, so this one is damaged, or it is not a cluster.
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw new Error(`${dataDir} is not a database cluster (PG_VERSION is missing); move it away`);
  // A cluster beside another one has the same password.
  if (path.basename(dataDir) === clusterFolder) {
    assertNoneBeside(dataDir);
    rmSync(passwordFile, { force: true });
    createFileDurably(passwordFile, `${randomBytes(24).toString('hex')}\n`, {
      mode: 0o600,
      prepare: (file) => account && chownSync(file, account.uid, account.gid),
    });
  }
  const scratch = `${dataDir}.new`;
  rmSync(scratch, { recursive: true, force: true });
  const child = launch(account, binaries.initdb, [
    `--pgdata=${scratch}`,
    '--username=holdfast',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
  ]);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new EmbeddedPostgresError(`initdb failed: ${output.trim()}`);
  // initdb has already synced its files.
  renameSync(scratch, dataDir);
}

/** Resolves with false if the port is taken and `tolerated` permits this. */
async function untilReady(
  child: ChildProcess,
  logger: Logger,
  silenceMs: number,
  tolerated: boolean,
): Promise<boolean> {
  let tail = '';
  let isRecovering = false;
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const fail = (what: string): void =>
    reject(new EmbeddedPostgresError(`The embedded Postgres ${what}: ${tail.trim()}`));
  const timer = setTimeout(() => fail(`is not ready and has logged nothing for ${silenceMs / 1000} s`), silenceMs);
  child.stderr?.on('data', (chunk: Buffer) => {
    timer.refresh();
    tail = (tail + chunk.toString()).slice(-4000);
    logger.debug({ postgres: chunk.toString().trim() }, 'output of the embedded Postgres');
    if (!isRecovering && tail.includes(recoveryLine)) {
      isRecovering = true;
      logger.warn('waiting for the embedded Postgres: it is recovering, because it was not shut down properly');
    }
    if (tail.includes(readyLine)) resolve(true);
  });
  child.stdout?.resume();
  child.once('error', reject);
  // Not `exit`: the last output may still be unread then.
  child.once('close', (code) => {
    if (tolerated && tail.includes(portTakenLine)) resolve(false);
    else fail(`exited with code ${code}`);
  });
  try {
    const isReady = await promise;
    if (isRecovering && isReady) logger.info('the embedded Postgres has recovered');
    return isReady;
  } catch (error) {
    child.kill('SIGQUIT');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}

/** Returns null if no server runs in `directory`. */
export async function readRunningUrl(directory: string): Promise<string | null> {
  try {
    const lines = readFileSync(path.join(directory, clusterFolder, 'postmaster.pid'), 'utf8').split('\n');
    const port = Number(lines[3]);
    const password = readFileSync(path.join(directory, 'password'), 'utf8').trim();
    return port > 0 ? databaseUrl(password, port) : null;
  } catch {
    return null;
  }
}

function databaseUrl(password: string, port: number): string {
  return `postgres://holdfast:${password}@127.0.0.1:${port}/postgres`;
}
