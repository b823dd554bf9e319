import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCluster } from '../../../testkit/cluster.ts';
import { startOwnHoldfast } from '../../../testkit/holdfast-server.ts';

/** A user and the user's own organization. */
export interface Tenant {
  readonly organization: string;
  readonly auth: string;
}

/** The server under attack. */
export interface Target extends AsyncDisposable {
  readonly shape: 'embedded' | 'cluster';
  readonly url: string;
  /** Its processes, by name. */
  readonly processes: ReadonlyMap<string, () => number>;
  readonly noisy: Tenant;
  readonly quiet: Tenant;
  log(): string;
}

interface People {
  readonly file: string;
  readonly noisy: Tenant;
  readonly quiet: Tenant;
  readonly remove: () => Promise<void>;
}

/** A server as `npm start` runs it. */
export async function startEmbeddedTarget(settings: Record<string, string> = {}): Promise<Target> {
  const { file, noisy, quiet, remove } = await writePeople();
  const server = await startOwnHoldfast(
    { HOLDFAST_BOOTSTRAP: file, HOLDFAST_LOG_LEVEL: 'warn', ...settings },
    { prepared: true },
  );
  return {
    shape: 'embedded',
    url: server.url,
    processes: new Map([['server', server.pid]]),
    noisy,
    quiet,
    log: () => server.log(),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await remove();
    },
  };
}

/** Three API replicas and two workers behind the proxy. */
export async function startClusterTarget(settings: Record<string, string> = {}): Promise<Target> {
  const { file, noisy, quiet, remove } = await writePeople();
  const cluster = await startCluster({
    prepared: true,
    settings: { HOLDFAST_BOOTSTRAP: file, HOLDFAST_LOG_LEVEL: 'warn', ...settings },
  });
  const parts = [...cluster.apis, ...cluster.workers];
  return {
    shape: 'cluster',
    url: cluster.url,
    processes: new Map(parts.map((part) => [part.name, () => part.pid])),
    noisy,
    quiet,
    log: () => parts.map((part) => part.log).join('\n'),
    [Symbol.asyncDispose]: async () => {
      await cluster.stop();
      await remove();
    },
  };
}

async function writePeople(): Promise<People> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-abuse-'));
  const file = join(folder, 'bootstrap.json');
  const tokens = { noisy: randomBytes(20).toString('hex'), quiet: randomBytes(20).toString('hex') };
  const organizations = (['noisy', 'quiet'] as const).map((name) => ({
    name,
    members: [{ login: `${name}-user`, role: 'admin', token: tokens[name] }],
  }));
  await writeFile(file, JSON.stringify({ organizations }), { mode: 0o600 });
  const tenant = (organization: 'noisy' | 'quiet'): Tenant => ({
    organization,
    auth: `token ${tokens[organization]}`,
  });
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  return { file, noisy: tenant('noisy'), quiet: tenant('quiet'), remove };
}
