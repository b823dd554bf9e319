import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { parseConfig } from '../../src/shared/platform/config/config.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly networks?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly privileged?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly stop_grace_period?: string;
}

describe('docker-compose.yml', () => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Readonly<Record<string, Service>>;
    networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  };
  const services = Object.entries(compose.services);
  const named = (name: string): Service => compose.services[name] as Service;

  test('separates the services that are exposed to strangers from the stores', () => {
    expect(compose.networks['data']).toEqual({ internal: true });
    const inNetwork = (network: string): string[] =>
      services.filter(([, { networks }]) => networks?.includes(network)).map(([name]) => name);
    expect(inNetwork('front').sort()).toEqual(['api-1', 'api-2', 'api-3', 'proxy', 'server', 'single-proxy', 'web']);
    expect(inNetwork('console')).toEqual(['s3']);
    expect(services.filter(([, { networks }]) => !networks?.length).map(([name]) => name)).toEqual([]);
    const reaches = (from: string): string[] =>
      services
        .filter(([, { networks }]) => networks?.some((network) => named(from).networks?.includes(network)))
        .map(([name]) => name);
    for (const outside of ['proxy', 'single-proxy', 'web'])
      for (const store of ['postgres', 'redis', 's3', 'worker']) expect(reaches(outside)).not.toContain(store);
    expect(reaches('api-1')).toEqual(expect.arrayContaining(['postgres', 'redis', 's3', 'proxy']));
    expect(reaches('worker')).toEqual(expect.arrayContaining(['postgres', 'redis', 's3']));
  });

  test('gives master keys only to services that decrypt secrets', () => {
    const keyed = services.filter(([, { environment }]) => environment?.['HOLDFAST_MASTER_KEYS']).map(([name]) => name);
    expect(keyed.sort()).toEqual(['api-1', 'api-2', 'api-3', 'server']);
    // Empty rather than missing: all services read .env, which has the keys.
    for (const name of ['worker', 'migrate', 'create-bucket'])
      expect(named(name).environment).toMatchObject({ HOLDFAST_MASTER_KEYS: '' });
  });

  test('gives Redis and its clients the same password, without which Redis does not start (compose.test.ts)', () => {
    const password = `\${REDIS_PASSWORD:-}`;
    expect(named('redis').environment).toEqual({ REDIS_PASSWORD: password });
    for (const name of ['api-1', 'api-2', 'api-3', 'worker'])
      expect(named(name).environment?.['HOLDFAST_REDIS_URL']).toBe(`redis://holdfast:${password}@redis:6379`);
  });

  test('gives no container more rights than it needs', () => {
    for (const [name, service] of services) {
      expect({ name, privileged: service.privileged ?? false }).toEqual({ name, privileged: false });
      expect({ name, image: service.image }).toEqual({
        name,
        image: expect.stringMatching(/:(?!latest)[\w.${}:-]+(@sha256:[0-9a-f]{64})?$/),
      });
      // The Postgres image first changes the owner of its volume to its own user.
      if (name === 'postgres') continue;
      expect({ name, ...service }).toMatchObject({
        name,
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
  });

  test('gives each process of Holdfast the time to stop that it takes at most', () => {
    const serving = services.filter(([, { command }]) => ['server', 'api', 'worker'].includes(command?.[0] ?? ''));
    expect(serving.map(([name]) => name).sort()).toEqual(['api-1', 'api-2', 'api-3', 'server', 'worker']);
    for (const [name, { environment, stop_grace_period: grace }] of serving) {
      const seconds = (setting: string): string => environment?.[setting] ?? '';
      const { drainMs, shutdownMs } = parseConfig({
        HOLDFAST_DRAIN_SECONDS: seconds('HOLDFAST_DRAIN_SECONDS'),
        HOLDFAST_SHUTDOWN_SECONDS: seconds('HOLDFAST_SHUTDOWN_SECONDS'),
      });
      const graceMs = 1000 * Number(/^(\d+)s$/.exec(grace ?? '')?.[1]);
      expect({ name, fits: graceMs >= drainMs + shutdownMs + 5_000 }).toEqual({ name, fits: true });
    }
  });
});
