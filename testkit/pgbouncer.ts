import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { type ServerHandle, startOnFreePort, startServer } from './server-process.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

/** A running PgBouncer in front of one database. */
export interface PgBouncer extends ServerHandle {
  /** As the user of the URL that it was started with. */
  url: string;
}

/** Starts a PgBouncer on loopback in front of the database of `target`. It opens only a few connections, so that clients share them. */
export async function startPgBouncer(
  target: string,
  options: { poolMode: 'transaction' | 'session'; poolSize: number; settings?: Readonly<Record<string, string>> },
): Promise<PgBouncer> {
  const file = (await ensureToolchain({ only: ['pgbouncer'] })).pgbouncer;
  const { hostname, port: targetPort, pathname, username, password } = new URL(target);
  const database = pathname.slice(1);
  return startOnFreePort(async (port) => {
    const url = `postgres://${username}@127.0.0.1:${port}/${database}`;
    const settings = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'any',
      pool_mode: options.poolMode,
      default_pool_size: options.poolSize,
      max_client_conn: 200,
      ...options.settings,
    };
    const config = [
      '[databases]',
      `${database} = host=${hostname} port=${targetPort} dbname=${database} user=${username} password=${decodeURIComponent(password)}`,
      '[pgbouncer]',
      ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
    ];
    const server = await startServer({
      name: 'pgbouncer',
      file,
      args: (dataDir) => {
        const configFile = path.join(dataDir, 'pgbouncer.ini');
        writeFileSync(configFile, `${config.join('\n')}\n`);
        // PgBouncer refuses to run as root, so another user reads its configuration.
        chmodSync(dataDir, 0o755);
        return [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), configFile];
      },
      isReady: () => answers(url),
    });
    return { url, ...server };
  });
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return true;
  } finally {
    await client.end();
  }
}
