import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { securityHeaders } from '../../src/shared/platform/http/security-headers.ts';
import { type Dashboard, namesIn, queriesOf } from '../support/dashboards.ts';
import { type ServerChild, startServerChild } from '../support/server-child.ts';
import { createTestApp, createTestDatabase, masterKeys, type TestDatabase } from '../support/test-app.ts';

const bin = path.join(import.meta.dirname, '../../bin/holdfast.js');

let database: TestDatabase;
let server: ServerChild;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await startServerChild(database);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const get = async (base: string, target: string): Promise<{ status: number; text: string }> => {
  const answer = await fetch(`${base}${target}`);
  expect(Object.fromEntries(answer.headers)).toMatchObject(securityHeaders);
  return { status: answer.status, text: await answer.text() };
};

test('the service port exposes only what a proxy needs', async () => {
  const service = `http://127.0.0.1:${server.port}`;
  expect(await get(service, '/healthz')).toEqual({ status: 200, text: '{"status":"healthy"}' });
  expect(await get(service, '/readyz')).toEqual({ status: 200, text: '{"status":"ready"}' });
  expect((await get(service, '/metrics')).status).toBe(404);
  expect((await get(service, '/api/openapi.json')).text).not.toContain('/metrics');
});

test('the management port has the metrics and nothing of the service', async () => {
  expect((await get(server.management, '/metrics')).text).toMatch(/^holdfast_connections \d+$/m);
  const { status, text } = await get(server.management, '/readyz');
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    status: 'ready',
    database: 'ok',
    blobs: 'ok',
    queue: 'ok',
    jobs: { waiting: 0, active: 0 },
    payloadStoreBytes: 0,
  });
  expect(await get(server.management, '/healthz')).toEqual({ status: 200, text: '{"status":"healthy"}' });
  for (const target of ['/', '/api/capabilities', '/admin/queues'])
    expect((await get(server.management, target)).status).toBe(404);
});

test('both share one port when configured', async () => {
  await using app = await createTestApp({ settings: { HOLDFAST_MANAGEMENT_LISTEN: 'same' } });
  expect((await app.call('GET', '/metrics')).status).toBe(200);
  await using apart = await createTestApp({ settings: { HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0' } });
  expect((await apart.call('GET', '/metrics')).status).toBe(404);
});

describe('at startup', () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-management-'));
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  // Not synchronously: `fetch` would miss that the server closed a connection meanwhile.
  const run = async (
    verb: string,
    settings: Readonly<Record<string, string>>,
  ): Promise<{ status: number; stderr: string }> => {
    const child = spawn(process.execPath, [bin, verb], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOLDFAST_DATA_DIR: dataDir,
        HOLDFAST_DATABASE_URL: database.url,
        HOLDFAST_MASTER_KEYS: masterKeys,
        HOLDFAST_LISTEN: '127.0.0.1:0',
        HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
        ...settings,
      },
    });
    const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    return { status, stderr };
  };

  test.each(['HOLDFAST_MANAGEMENT_LISTEN', 'HOLDFAST_LISTEN'])(
    '%s that is in use fails with a sentence',
    async (name) => {
      const taken = createServer().listen(0, '127.0.0.1');
      await once(taken, 'listening');
      const { port } = taken.address() as { port: number };
      const { status, stderr } = await run('server', { [name]: `127.0.0.1:${port}` });
      taken.close();
      expect(stderr).toBe(`holdfast: ${name}: 127.0.0.1:${port} is in use by another process\n`);
      expect(status).toBe(1);
    },
  );

  test('an address of another machine fails too', async () => {
    const { status, stderr } = await run('server', { HOLDFAST_MANAGEMENT_LISTEN: '192.0.2.1:9092' });
    expect(stderr).toBe('holdfast: HOLDFAST_MANAGEMENT_LISTEN: 192.0.2.1:9092 is not an address of this machine\n');
    expect(status).toBe(1);
  });

  test('--healthz asks the management port and reports which part did not answer', async () => {
    const management = new URL(server.management).host;
    expect(
      (await run('--healthz', { HOLDFAST_MANAGEMENT_LISTEN: management, HOLDFAST_LISTEN: '127.0.0.1:1' })).status,
    ).toBe(0);
    const here = { HOLDFAST_MANAGEMENT_LISTEN: 'same', HOLDFAST_LISTEN: `127.0.0.1:${server.port}` };
    expect((await run('--healthz', here)).status).toBe(0);
    const { status, stderr } = await run('--healthz', { HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:1' });
    expect(stderr).toMatch(/^unhealthy: no response from http:\/\/127\.0\.0\.1:1\/healthz: .*ECONNREFUSED/);
    expect(status).toBe(1);
  });
});

describe('alert rules and dashboards', () => {
  const monitoring = path.join(import.meta.dirname, '../../deploy/monitoring');
  const rules = parse(readFileSync(path.join(monitoring, 'alerts.yml'), 'utf8')) as {
    groups: { rules: { expr: string }[] }[];
  };
  const queries = [
    ...rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr)),
    ...readdirSync(path.join(monitoring, 'dashboards')).flatMap((name) =>
      queriesOf(JSON.parse(readFileSync(path.join(monitoring, 'dashboards', name), 'utf8')) as Dashboard),
    ),
  ].map((query) => ({ query, ...namesIn(query) }));

  /** Labels that come from Prometheus, from recording rules, and with each histogram. */
  const alwaysThere = ['instance', 'call', 'le'];

  test('ask only for metrics that a server has, by labels of theirs', async () => {
    const metrics = (await get(server.management, '/metrics')).text;
    const optional =
      /^holdfast_(backup|bundle|second_store|replica|redis|tls|jobs_(waiting|oldest)|versions_to_encode|update_queue_(calls|oldest))/;
    const isThere = (name: string): boolean =>
      optional.test(name) ||
      new RegExp(`^# TYPE ${name.replace(/_(bucket|count|sum)$/, '(_(bucket|count|sum))?')} `, 'm').test(metrics);
    const missing = queries.flatMap(({ metrics }) => metrics.filter((name) => !isThere(name)));
    expect(missing).toEqual([]);

    await using app = await createTestApp();
    const labelsOf = new Map(
      app.context.metrics.registry
        .getMetricsAsArray()
        .map((metric) => [metric.name, (metric as unknown as { labelNames: string[] }).labelNames]),
    );
    // Prometheus adds labels of these names itself.
    expect([...labelsOf].filter(([, labels]) => labels.includes('job') || labels.includes('instance'))).toEqual([]);
    const unknown = queries.flatMap(({ labels, metrics, query }) => {
      const known = metrics.map((name) => labelsOf.get(name.replace(/_(bucket|count|sum)$/, '')) ?? labelsOf.get(name));
      if (known.includes(undefined)) return [];
      return labels
        .filter((label) => ![...alwaysThere, ...known.flat()].includes(label))
        .map((label) => `${label} in ${query}`);
    });
    expect(unknown).toEqual([]);

    // The dashboard of an organization shows everything that is measured of one.
    const file = readFileSync(path.join(monitoring, 'dashboards/organization.json'), 'utf8');
    const shown = new Set(queriesOf(JSON.parse(file) as Dashboard).flatMap((query) => namesIn(query).metrics));
    const measured = [...labelsOf].filter(([, labels]) => labels.includes('organization')).map(([name]) => name);
    expect(measured.filter((name) => !shown.has(name))).toEqual([]);
    expect(measured.length).toBeGreaterThan(3);
  });
});
