import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { until } from '../../testkit/until.ts';
import type { DemoOrganization } from './plan.ts';

export interface DemoServer {
  readonly url: string;
  readonly dataDir: string;
  /** The password of all users. */
  readonly password: string;
  setPassword(login: string): Promise<void>;
  stop(): Promise<void>;
}

const root = path.join(import.meta.dirname, '../..');
const password = 'kelp holds to rock';
const operator = 'ada';

/** Starts an embedded server with its data in `home`, and stops it when this process ends. */
export async function startDemoServer({
  home,
  organizations,
  port,
  receiver,
  tokens,
}: {
  readonly home: string;
  readonly organizations: readonly DemoOrganization[];
  readonly port: number;
  readonly tokens: Readonly<Record<string, string>>;
  /** The address to which webhooks may be sent. */
  readonly receiver: string;
}): Promise<DemoServer> {
  const dataDir = path.join(home, 'data');
  const bootstrap = path.join(home, 'bootstrap.json');
  const members = organizations.map(({ name, people }) => ({
    name,
    // A token belongs to a user, not to an organization, so only the first organization names it.
    members: people.map(({ login, role }) => ({
      login,
      role,
      // This user sees the pages of the installation, too.
      ...(login === operator ? { siteAdmin: true } : {}),
      ...(name === organizations[0]?.name ? { token: tokens[login] } : {}),
    })),
  }));
  await mkdir(dataDir, { recursive: true });
  await writeFile(bootstrap, JSON.stringify({ organizations: members }), { mode: 0o600 });
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    HOLDFAST_LISTEN: `127.0.0.1:${port}`,
    // A free port, because two demos may run on one machine.
    HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_BOOTSTRAP: bootstrap,
    HOLDFAST_LOG_LEVEL: 'warn',
    HOLDFAST_OUTGOING_ALLOW: receiver,
  };
  const flags = ['--max-semi-space-size=2', '--heap-growing-percent=50'];
  const server = spawn(process.execPath, [...flags, path.join(root, 'bin/holdfast.js'), 'server'], {
    env,
    stdio: 'inherit',
  });
  const end = (): void => {
    server.kill('SIGTERM');
  };
  process.once('exit', end);
  let isEnding = false;
  // The demo ends with its server.
  server.once('exit', (code) => process.exit(isEnding ? 0 : (code ?? 1)));
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      isEnding = true;
      if (server.exitCode !== null || server.signalCode !== null) process.exit(0);
      end();
    });
  const isHealthy = async (): Promise<boolean> => {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    return fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  await until(isHealthy, 'the server is healthy', { timeoutMs: 120_000, everyMs: 100 });
  return {
    url,
    dataDir,
    password,
    setPassword: async (login) => {
      const admin = spawn(
        process.execPath,
        [path.join(root, 'bin/holdfast.js'), 'admin', 'user', 'set-password', login],
        {
          env,
          stdio: ['pipe', 'ignore', 'inherit'],
        },
      );
      admin.stdin.end(`${password}\n`);
      const [code] = (await once(admin, 'exit')) as [number | null];
      if (code !== 0) throw new Error('the password could not be set');
    },
    stop: async () => {
      isEnding = true;
      const ended = once(server, 'exit');
      end();
      await ended;
    },
  };
}
