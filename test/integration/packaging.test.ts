import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly restart?: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck?: {
    readonly test?: readonly string[];
    readonly interval?: string;
    readonly timeout?: string;
    readonly retries?: number;
  };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
  };
  const single = Object.fromEntries(
    Object.entries(compose.services).filter(([, { profiles }]) => profiles?.includes('single')),
  );
  const service = (name: string): Service => {
    const found = single[name];
    if (!found) throw new Error(`no service ${name} in profile single`);
    return found;
  };

  test('puts every service into a profile', () => {
    expect(Object.keys(compose.services).filter((name) => !compose.services[name]?.profiles?.length)).toEqual([]);
  });

  test("checks the server's health as often as promised", () => {
    expect(service('server').healthcheck).toEqual({
      test: ['CMD', 'node', 'dist/main.js', '--healthz'],
      interval: '5s',
      timeout: '3s',
      retries: 10,
    });
  });

  test('starts the server only after migrations and bucket creation are done', () => {
    expect(service('server').depends_on).toMatchObject({
      migrate: { condition: 'service_completed_successfully' },
      'create-bucket': { condition: 'service_completed_successfully' },
    });
    for (const name of ['migrate', 'create-bucket'])
      expect(service(name)).toMatchObject({ restart: 'no', command: [name] });
    expect(service('migrate').depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  });

  test('keeps database and blobs in named volumes', () => {
    expect(Object.keys(compose.volumes)).toEqual(['database', 'blobs', 'certificates']);
    expect(service('postgres').volumes).toEqual(['database:/var/lib/postgresql']);
    expect(service('s3').volumes).toEqual(['blobs:/data']);
  });

  test('runs a Postgres and an S3 server that sync before they answer', () => {
    for (const setting of ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on'])
      expect(service('postgres').command).toContain(setting);
    // versitygw's own image never syncs: deploy/s3.
    expect(service('s3')).toMatchObject({ image: expect.stringMatching(/^holdfast-s3:/), build: 'deploy/s3' });
    expect(existsSync(path.join(root, 'deploy/s3/Dockerfile'))).toBe(true);
  });

  test('is reached through the proxy only', () => {
    expect(service('server').ports).toBeUndefined();
    expect(service('single-proxy').ports).toEqual(['0.0.0.0:80:80', '0.0.0.0:443:443', '127.0.0.1:9090:9090']);
    expect(service('s3').ports).toEqual(['127.0.0.1:9000:9000', '127.0.0.1:9001:9001']);
  });

  test('uses the bucket that its one-shot step creates', () => {
    for (const name of ['server', 'create-bucket']) {
      expect(service(name).environment['HOLDFAST_S3_BUCKET']).toBe('holdfast-checkpoints');
    }
  });

  test('has no secrets of its own: all of them must be provided', () => {
    const references = [...read('docker-compose.yml').matchAll(/\$\{(\w+)([^}]*)\}/g)];
    const optional = references.filter(([, , rest]) => !rest?.startsWith(':?')).map(([, name]) => name);
    const harmless = new Set(['IMAGE_TAG', 'WORKER_REPLICAS', 'REDIS_MEMORY']);
    // Without REDIS_PASSWORD, Redis does not start: the profile with one server has none.
    expect(new Set(optional)).toEqual(new Set([...harmless, 'REDIS_PASSWORD']));
    const example = read('.env.example');
    for (const [, name] of references)
      expect(example).toMatch(new RegExp(harmless.has(name as string) ? `^#${name}=.` : `^${name}=$`, 'm'));
  });

  test('gives no service a setting that .env.example lists as one of .env', () => {
    const [, optional = ''] = read('.env.example').split('# ---- Settings of Holdfast');
    const listed = [...optional.matchAll(/^#(HOLDFAST_\w+)=/gm)].map(([, name]) => name as string);
    expect(listed.length).toBeGreaterThan(30);
    const given = Object.values(compose.services).flatMap(({ environment = {} }) => Object.keys(environment));
    expect(listed.filter((name) => given.includes(name))).toEqual([]);
  });

  test('has each service that docs/compose.md names in a command, in its profile', () => {
    const commands = [
      ...read('docs/compose.md').matchAll(
        /docker compose (?:--profile (\w+) )?(?:run|exec|stop|cp)((?: --?[\w-]+)*) ([\w-]+)/g,
      ),
    ];
    expect(commands.length).toBeGreaterThan(3);
    for (const [command, profile = 'single', , name = ''] of commands)
      expect({ command, profiles: compose.services[name]?.profiles }).toEqual({
        command,
        profiles: expect.arrayContaining([profile]),
      });
  });

  test('has a writable folder for the sockets of holdfast debug', () => {
    for (const name of ['server', 'api-1', 'worker'])
      expect(compose.services[name]?.tmpfs).toContain('/data/run:uid=1000,gid=1000,mode=700');
  });

  describe('profile cluster', () => {
    const cluster = Object.fromEntries(
      Object.entries(compose.services).filter(([, { profiles }]) => profiles?.includes('cluster')),
    );
    const apis = Object.entries(cluster).filter(([, { command }]) => command?.[0] === 'api');

    test('runs three API replicas, workers, Redis, proxy and web, but no single server', () => {
      expect(apis).toHaveLength(3);
      expect(Object.keys(cluster)).toEqual(
        expect.arrayContaining(['worker', 'redis', 'proxy', 'web', 'postgres', 's3']),
      );
      expect(cluster['server']).toBeUndefined();
      expect(cluster['worker']).toMatchObject({ deploy: { replicas: expect.stringContaining('WORKER_REPLICAS:-2') } });
    });

    test('starts api and workers only after migrations and bucket creation are done', () => {
      for (const [, service] of [...apis, ['worker', cluster['worker'] as Service] as const]) {
        expect(service.depends_on).toMatchObject({
          migrate: { condition: 'service_completed_successfully' },
          'create-bucket': { condition: 'service_completed_successfully' },
          redis: { condition: 'service_healthy' },
        });
        expect(service.environment).toMatchObject({
          HOLDFAST_REDIS_URL: expect.stringContaining('@redis:6379'),
          HOLDFAST_S3_BUCKET: 'holdfast-checkpoints',
        });
      }
    });

    test('does not let Redis evict anything', () => {
      expect(cluster['redis']?.volumes).toEqual(['./deploy/redis/start.sh:/etc/holdfast/start.sh:ro']);
      expect(read('deploy/redis/start.sh')).toContain('--maxmemory-policy noeviction');
    });

    test('is reached through the proxy only, with the checked-in configuration', () => {
      const published = Object.entries(cluster).filter(([, { ports }]) => ports?.includes('0.0.0.0:443:443'));
      expect(published.map(([name]) => name)).toEqual(['proxy']);
      expect(cluster['proxy']?.environment['PROXY_API_UPSTREAMS']?.split(' ')).toEqual(
        apis.map(([name]) => `${name}:9090`),
      );
      for (const name of ['proxy', 'web']) {
        for (const volume of (cluster[name]?.volumes ?? []).filter((each) => each.startsWith('./'))) {
          expect(existsSync(path.join(root, volume.split(':')[0] as string))).toBe(true);
        }
      }
    });
  });
});

describe('Dockerfile', () => {
  const lines = read('Dockerfile').replaceAll('\\\n', ' ').split('\n');
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));

  test('runs as an ordinary user, checks its health and stops on SIGTERM', () => {
    expect(last).toContain('USER node');
    expect(last).toContain('STOPSIGNAL SIGTERM');
    expect(last).toContain(
      'HEALTHCHECK --interval=5s --timeout=3s --retries=10 CMD ["node", "dist/main.js", "--healthz"]',
    );
    expect(last).toContain('CMD ["server"]');
  });

  test('starts Node with the same flags as the other ways to start', () => {
    const flags = ['--max-semi-space-size=2', '--heap-growing-percent=50'];
    const quoted = flags.map((flag) => JSON.stringify(flag)).join(', ');
    expect(last).toContain(`ENTRYPOINT ["node", "--enable-source-maps", ${quoted}, "dist/main.js"]`);
    expect(read('bin/holdfast.js').split('\n')[0]).toBe(`#!/usr/bin/env -S node ${flags.join(' ')}`);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(scripts['start']).toBe(`exec bin/node ${flags.join(' ')} bin/holdfast.js server`);
  });

  test('copies only files that exist and are not ignored', () => {
    const allowed = new Set(
      read('.dockerignore')
        .split('\n')
        .filter((line) => line.startsWith('!'))
        .map((line) => line.slice(1)),
    );
    const sources = lines
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
      .flatMap((line) => line.split(/\s+/).slice(1, -1));
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources) {
      expect({ source, allowed: allowed.has(source), there: existsSync(path.join(root, source)) }).toEqual({
        source,
        allowed: true,
        there: true,
      });
    }
  });
});
