import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { documentedBlock } from '../../testkit/documented.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');

/** A service as Compose reads it. */
interface Service {
  readonly image: string;
  readonly build?: object;
  readonly restart?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly { readonly host_ip?: string; readonly published: string; readonly target: number }[];
  readonly networks?: Readonly<Record<string, unknown>>;
  readonly healthcheck?: { readonly disable?: boolean; readonly test?: readonly string[] };
  readonly logging?: { readonly options?: Readonly<Record<string, string>> };
  readonly deploy?: { readonly resources?: { readonly limits?: { readonly memory?: string; readonly pids?: number } } };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

interface Project {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-compose-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const environment = (): string => path.join(folder, '.env');
const single = ['create-bucket', 'migrate', 'postgres', 's3', 'server', 'single-proxy'];
const cluster = [
  ...['api-1', 'api-2', 'api-3', 'create-bucket', 'migrate', 'postgres', 'proxy', 'redis', 's3', 'web', 'worker'],
];

const environmentBlock = (): string => documentedBlock('docs/compose.md', 'install -m 600 /dev/null .env');

/** Writes .env as documented. */
function writeEnvironment(profile: 'single' | 'cluster'): void {
  const blocks = [environmentBlock()];
  if (profile === 'cluster')
    blocks.push(documentedBlock('docs/compose.md', 'echo "REDIS_PASSWORD=$(openssl rand -hex 24)" >> .env'));
  for (const block of blocks)
    expect(spawnSync('bash', ['-euc', block], { cwd: folder, encoding: 'utf8' })).toMatchObject({ status: 0 });
}

await describeWithTools('docker-compose.yml, as Compose reads it', ['config-checks'], () => {
  beforeEach(() => {
    for (const name of ['docker-compose.yml', 'deploy', 'Dockerfile'])
      cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  });

  async function loadProject(profile: string): Promise<Project> {
    const { 'config-checks': checks } = await ensureToolchain({ only: ['config-checks'] });
    const { stdout } = await promisify(execFile)(checks, ['compose', folder, environment(), profile], { env: {} });
    return JSON.parse(stdout) as Project;
  }

  async function load(profile: string): Promise<Project['services']> {
    return (await loadProject(profile)).services;
  }

  test.each([
    ['single', single],
    ['cluster', cluster],
  ] as const)('profile %s needs no more than what the documentation says', async (profile, names) => {
    writeEnvironment(profile);
    const services = await load(profile);
    expect(Object.keys(services).toSorted()).toEqual(names);
    for (const [name, service] of Object.entries(services)) {
      expect({ name, logging: service.logging }).toEqual({
        name,
        logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
      });
      const { memory, pids } = service.deploy?.resources?.limits ?? {};
      expect({ name, pids: Number(pids) > 0 }).toEqual({ name, pids: true });
      // Redis has a limit of its own.
      if (name !== 'redis') expect({ name, memory: Number(memory) > 0 }).toEqual({ name, memory: true });
      const isOneShot = service.restart === 'no';
      expect({ name, checked: (service.healthcheck?.test?.length ?? 0) > 0 }).toEqual({ name, checked: !isOneShot });
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {}))
        expect({ name, other, condition }).toEqual({
          name,
          other,
          condition: services[other]?.restart === 'no' ? 'service_completed_successfully' : 'service_healthy',
        });
    }
  });

  test.each(['single', 'cluster'] as const)(
    'profile %s starts each process with settings that it accepts',
    async (profile) => {
      writeEnvironment(profile);
      const ours = Object.entries(await load(profile)).filter(([, { environment: settings }]) =>
        Object.hasOwn(settings ?? {}, 'HOLDFAST_DATABASE_URL'),
      );
      expect(ours.length).toBeGreaterThanOrEqual(3);
      for (const [name, { environment: settings = {} }] of ours) {
        const config = parseConfig(settings);
        expect({ name, url: config.publicUrl }).toEqual({ name, url: 'https://holdfast.example.com' });
        const answersCalls = /^(server|api-\d)$/.test(name);
        expect({ name, proxies: settings['HOLDFAST_TRUSTED_PROXIES'] !== undefined }).toEqual({
          name,
          proxies: answersCalls,
        });
        expect({ name, hasKeys: settings['HOLDFAST_MASTER_KEYS'] !== '' }).toEqual({ name, hasKeys: answersCalls });
      }
    },
  );

  test.each(['single', 'cluster'])(
    'profile %s lets our processes call out, and clients reach no others',
    async (profile) => {
      writeEnvironment('cluster');
      const { networks, services } = await loadProject(profile);
      const reachable = Object.keys(services).filter((name) => 'front' in (services[name]?.networks ?? {}));
      const callsOut = (name: string): boolean =>
        Object.keys(services[name]?.networks ?? {}).some((network) => networks[network]?.internal !== true);
      // They send webhooks, audit events, backups and bundles, and ask identity providers.
      const running = Object.keys(services).filter((name) => /^(server|api-\d|worker)$/.test(name));
      expect(running.filter((name) => !callsOut(name))).toEqual([]);
      expect(reachable.filter((name) => !/^(server|api-\d|web|proxy|single-proxy)$/.test(name))).toEqual([]);
      expect(['postgres', 'redis'].filter((name) => name in services && callsOut(name))).toEqual([]);
    },
  );

  test.each(['single', 'cluster'])(
    'profile %s publishes TLS to all over IPv4, and everything else to this machine',
    async (profile) => {
      writeEnvironment('cluster');
      const services = Object.values(await load(profile));
      const published = services.flatMap(({ ports = [] }) =>
        ports.map(({ host_ip = 'all', published: port }) => `${host_ip} ${port}`),
      );
      // Over IPv6, which the networks lack, the proxy would see all clients as one, with an address that is trusted.
      const open = ['0.0.0.0 443', '0.0.0.0 80'];
      expect(published.toSorted()).toEqual([...open, '127.0.0.1 9000', '127.0.0.1 9001', '127.0.0.1 9090']);
    },
  );

  test('an .env copied from .env.example needs only its first values', async () => {
    const example = readFileSync(path.join(root, '.env.example'), 'utf8');
    const values = new Map([
      ['HOLDFAST_PUBLIC_URL', 'http://localhost:9090'],
      ['HOLDFAST_MASTER_KEYS', 'k1:0'],
    ]);
    const [required = ''] = example.split('# ---- Optional');
    const filled = required.replace(/^(\w+)=$/gm, (_, name: string) =>
      name === 'REDIS_PASSWORD' ? `${name}=` : `${name}=${values.get(name) ?? 'x'}`,
    );
    writeFileSync(environment(), example.replace(required, filled));
    expect(Object.keys(await load('single')).toSorted()).toEqual(single);
  });

  test.each(['HOLDFAST_PUBLIC_URL', 'POSTGRES_PASSWORD', 'S3_ACCESS_KEY', 'S3_SECRET_KEY', 'HOLDFAST_MASTER_KEYS'])(
    'says that %s is missing',
    async (name) => {
      writeEnvironment('single');
      const text = readFileSync(environment(), 'utf8');
      writeFileSync(environment(), text.replace(new RegExp(`^${name}=.*\n`, 'm'), ''));
      await expect(load('single')).rejects.toMatchObject({
        stderr: expect.stringMatching(new RegExp(`required variable ${name} is missing.*set it in \\.env`)),
      });
    },
  );

  test('of a release names all images by digest and builds none', async () => {
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    const source = path.join(folder, 'checkout');
    mkdirSync(source);
    for (const name of ['scripts', 'docker-compose.yml', 'deploy', '.env.example', 'package.json'])
      cpSync(path.join(root, name), path.join(source, name), { recursive: true });
    const run = (): { status: number | null; stderr: string } =>
      spawnSync(
        process.execPath,
        [
          ...['scripts/release-files.ts', path.join(folder, 'out'), '--docs', 'https://git.example/holdfast/blob/v1'],
          ...['holdfast', 'holdfast-web', 'holdfast-s3'].map((name) => `${name}=registry.example/${name}@${digest}`),
        ],
        { cwd: source, encoding: 'utf8' },
      );
    const compose = path.join(source, 'docker-compose.yml');
    const checkedIn = readFileSync(compose, 'utf8');
    const untagged = checkedIn.replaceAll(/@sha256:[0-9a-f]{64}/g, '');
    writeFileSync(compose, untagged);
    expect(run()).toMatchObject({ status: 1, stderr: expect.stringMatching(/no digest: .*postgres:18/) });
    writeFileSync(compose, untagged.replaceAll(/^( +image: (?:postgres|redis|caddy):\S+)$/gm, `$1@${digest}`));
    expect(run()).toMatchObject({ status: 0 });
    for (const name of ['docker-compose.yml', 'deploy']) rmSync(path.join(folder, name), { recursive: true });
    cpSync(path.join(folder, 'out/compose'), folder, { recursive: true });
    writeEnvironment('cluster');
    for (const profile of ['single', 'cluster'])
      for (const [name, { build, image }] of Object.entries(await load(profile)))
        expect({ name, build, image }).toEqual({ name, build: undefined, image: expect.stringMatching(/@sha256:/) });
    const alerts = readFileSync(path.join(folder, 'out/alerts.yml'), 'utf8');
    expect(alerts).toContain('runbook_url: https://git.example/holdfast/blob/v1/docs/runbook.md#holdfastdown\n');
  });
});

test('Redis does not start without a password, and says so', () => {
  const start = path.join(root, 'deploy/redis/start.sh');
  for (const env of [{}, { REDIS_PASSWORD: '' }]) {
    const { status, stderr } = spawnSync('sh', [start], {
      env: { PATH: process.env['PATH'], ...env },
      encoding: 'utf8',
    });
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/REDIS_PASSWORD: is not set/);
  }
});

test('Redis runs with the settings that the documentation asks for', () => {
  const [, asked = ''] =
    /^## Redis\n\n- Set (.*?)\./ms.exec(readFileSync(path.join(root, 'docs/deploy.md'), 'utf8')) ?? [];
  const settings = [...asked.matchAll(/`([a-z][a-z-]+ \S+)`/g)].map(([, setting]) => `--${setting}`);
  expect(settings).toContain('--maxmemory-policy noeviction');
  const start = readFileSync(path.join(root, 'deploy/redis/start.sh'), 'utf8');
  expect(settings.filter((setting) => !start.includes(setting))).toEqual([]);
});

test('only their user can read the secrets of .env, and the shell gives later files its usual mode', () => {
  const block = `umask 022\n${environmentBlock()}\numask`;
  const { status, stdout } = spawnSync('bash', ['-euc', block], { cwd: folder, encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '0022\n' });
  expect(statSync(environment()).mode & 0o777).toBe(0o600);
});
