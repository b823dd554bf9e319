import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';
import type { Logger } from '../logger/logger.ts';
import { EmbeddedPostgresError, findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts';

/** A Postgres process of our own. */
export interface EmbeddedPostgres {
  readonly url: string;
  /** Fast shutdown; resolves when the process is gone. */
  stop(): Promise<void>;
}

/** How to run a Postgres program: it refuses to run as root, so root runs it as another user. */
interface Account {
  readonly uid: number;
  readonly gid: number;
  /** Words before the program when that user could not reach it by itself. */
  readonly prefix: readonly string[];
}

const readyLine = 'database system is ready to accept connections';
const recoveryLine = 'database system was not properly shut down';
const stopLimitMs = 60_000;

/**
 * Starts Postgres with its files under `directory`, making them on first use. A process that an earlier, killed server
 * left behind is shut down first. Recovery after a crash may take its time: Postgres is given up only when it has said
 * nothing for `silenceMs`. `flags` are passed to postgres (`-c name=value`).
 */
export async function startEmbeddedPostgres(
  directory: string,
  logger: Logger,
  { flags = [], silenceMs = 30_000 }: { readonly flags?: readonly string[]; readonly silenceMs?: number } = {},
): Promise<EmbeddedPostgres> {
  const binaries = await findPostgresBinaries();
  const dataDir = path.join(directory, 'cluster');
  const passwordFile = path.join(directory, 'password');
  makeFolderDurably(directory);
  const account = chooseAccount(directory, binaries);
  if (!existsSync(path.join(dataDir, 'PG_VERSION'))) await initialise(dataDir, passwordFile, binaries, account);
  // Also when they were there: the process that made them may have been killed before they were synced.
  syncPath(passwordFile);
  syncPath(directory);
  await stopLeftBehind(dataDir, logger);
  const password = readFileSync(passwordFile, 'utf8').trim();
  const port = await freePort();
  const child = launch(account, binaries.postgres, [
    '-D',
    dataDir,
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    `port=${port}`,
    '-c',
    'unix_socket_directories=',
    '-c',
    'wal_compression=on',
    ...flags,
  ]);
  await untilReady(child, logger, silenceMs);
  return {
    url: databaseUrl(password, port),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      child.kill('SIGINT');
      await Promise.race([gone, sleep(stopLimitMs, undefined, { ref: false })]);
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGQUIT');
    },
  };
}

function chooseAccount(directory: string, binaries: PostgresBinaries): Account | null {
  if (userInfo().uid !== 0) return null;
  const ids = findUser('postgres') ?? findUser('nobody');
  if (!ids)
    throw new EmbeddedPostgresError(
      'Postgres does not run as root and there is no user `postgres` or `nobody`; start Holdfast as another user',
    );
  chownSync(directory, ids.uid, ids.gid);
  const reachable = [directory, binaries.postgres].every((place) => spawnSync('test', ['-r', place], ids).status === 0);
  if (reachable) return { ...ids, prefix: [] };
  // A checkout below /root is closed to other users; reading and searching folders is all that must be lent.
  const prefix = [
    'setpriv',
    `--reuid=${ids.uid}`,
    `--regid=${ids.gid}`,
    '--clear-groups',
    '--inh-caps=+dac_read_search',
    '--ambient-caps=+dac_read_search',
    '--',
  ];
  if (spawnSync(prefix[0] as string, [...prefix.slice(1), 'test', '-r', binaries.postgres]).status === 0)
    return { ...ids, prefix };
  throw new EmbeddedPostgresError(
    `Postgres does not run as root, and user ${ids.uid} cannot read ${directory} and ${binaries.postgres}; start Holdfast as another user or from a directory that everyone can read`,
  );
}

function findUser(name: string): { uid: number; gid: number } | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const fields = line?.split(':');
  return fields ? { uid: Number(fields[2]), gid: Number(fields[3]) } : null;
}

function launch(account: Account | null, program: string, args: readonly string[]): ChildProcess {
  // Its own process group: Ctrl-C must reach the server first, which stops Postgres last.
  const base = { stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'], detached: true };
  if (!account) return spawn(program, args, base);
  if (account.prefix.length === 0) return spawn(program, args, { ...base, uid: account.uid, gid: account.gid });
  return spawn(account.prefix[0] as string, [...account.prefix.slice(1), program, ...args], base);
}

async function initialise(
  dataDir: string,
  passwordFile: string,
  binaries: PostgresBinaries,
  account: Account | null,
): Promise<void> {
  // The rename below puts a whole cluster there or none, so this is a damaged one, or something else.
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw new Error(`${dataDir} is not a database cluster (PG_VERSION is missing); move it away`);
  rmSync(passwordFile, { force: true });
  createFileDurably(passwordFile, `${randomBytes(24).toString('hex')}\n`, {
    mode: 0o600,
    prepare: (file) => account && chownSync(file, account.uid, account.gid),
  });
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
  // initdb has synced all that it made.
  renameSync(scratch, dataDir);
}

async function stopLeftBehind(dataDir: string, logger: Logger): Promise<void> {
  const pidFile = path.join(dataDir, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  if (!runsPostgres(pid, dataDir)) return;
  logger.warn({ pid }, 'a killed server left its Postgres running; stopping it');
  process.kill(pid, 'SIGINT');
  const deadline = Date.now() + stopLimitMs;
  while (runsPostgres(pid, dataDir)) {
    if (Date.now() > deadline)
      throw new EmbeddedPostgresError(`Postgres process ${pid}, left by an earlier server, does not stop`);
    await sleep(50);
  }
}

function runsPostgres(pid: number, dataDir: string): boolean {
  const listing = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  if (listing.status === 0) return listing.stdout.includes(dataDir);
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir);
  } catch {
    return false;
  }
}

async function untilReady(child: ChildProcess, logger: Logger, silenceMs: number): Promise<void> {
  let tail = '';
  let isRecovering = false;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (what: string): void =>
    reject(new EmbeddedPostgresError(`The embedded Postgres ${what}: ${tail.trim()}`));
  const timer = setTimeout(() => fail(`is not ready and has logged nothing for ${silenceMs / 1000} s`), silenceMs);
  child.stderr?.on('data', (chunk: Buffer) => {
    timer.refresh();
    tail = (tail + chunk.toString()).slice(-4000);
    logger.debug({ postgres: chunk.toString().trim() }, 'postgres');
    if (!isRecovering && tail.includes(recoveryLine)) {
      isRecovering = true;
      logger.warn('waiting for the embedded Postgres: it is recovering, because it was not shut down properly');
    }
    if (tail.includes(readyLine)) resolve();
  });
  child.stdout?.resume();
  child.once('error', reject);
  child.once('exit', (code) => fail(`ended with code ${code}`));
  try {
    await promise;
    if (isRecovering) logger.info('the embedded Postgres has recovered');
  } catch (error) {
    child.kill('SIGQUIT');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** A port on loopback that was free a moment ago. */
export function freePort(): Promise<number> {
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

/** A fresh folder under the system's temporary one; for throw-away clusters. */
export function temporaryClusterDir(): string {
  return path.join(tmpdir(), `holdfast-postgres-${process.pid}-${randomBytes(4).toString('hex')}`);
}

/** URL of the embedded Postgres that a server is running in `directory`; null when none is. */
export async function readRunningUrl(directory: string): Promise<string | null> {
  try {
    const lines = readFileSync(path.join(directory, 'cluster', 'postmaster.pid'), 'utf8').split('\n');
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
