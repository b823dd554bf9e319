import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { startStopwatch } from '../support/running-time.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel, complete, expire, saveState } from '../support/update-calls.ts';

let database: TestDatabase;
let proxy: TcpProxy;
let app: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openTcpProxy(database.url);
  app = await createTestApp({
    database: { ...database, url: proxy.url },
    settings: { HOLDFAST_DATABASE_POOL_SIZE: '4', statementTimeoutMs: 3000, databaseConnectMs: 1000 },
  });
});
afterAll(async () => {
  proxy.resume();
  proxy.accept();
  await app[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const probe = (path: string) => app.call('GET', path, { accept: null });
const healthy = async () => (await probe('/healthz')).status === 200;

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const elapsedMs = startStopwatch();
  const result = await work();
  return { result, ms: elapsedMs() };
}

test('probes ask the blob store each time while it fails, and once in a while when it answers', async () => {
  const check = jest.spyOn(app.context.blobs, 'check').mockRejectedValue(new Error('away'));
  for (let time = 1; time <= 2; time++)
    expect((await probe('/readyz')).json).toMatchObject({ status: 'degraded', blobs: 'unreachable' });
  expect(check).toHaveBeenCalledTimes(2);
  check.mockRestore();
  const asked = jest.spyOn(app.context.blobs, 'check');
  for (let time = 1; time <= 5; time++) expect((await probe('/readyz')).json.blobs).toBe('ok');
  expect(asked).toHaveBeenCalledTimes(1);
  asked.mockRestore();
});

test('a healthy server returns 200 and is ready', async () => {
  expect(await probe('/healthz')).toMatchObject({ status: 200, json: { status: 'healthy' } });
  expect(await probe('/readyz')).toMatchObject({ status: 200, json: { status: 'ready', database: 'ok', blobs: 'ok' } });
});

describe('when Postgres hangs', () => {
  test('healthz and readyz return 503 within 3 s each, however often they are called, and recover', async () => {
    await healthy();
    proxy.hang();
    // More probes than the pool has connections: hanging probes must not use up the pool.
    for (let time = 1; time <= 3; time++) {
      const answers = await Promise.all(['/healthz', '/readyz', '/healthz'].map((path) => timed(() => probe(path))));
      for (const { result, ms } of answers) {
        expect(result.status).toBe(503);
        expect(ms).toBeLessThan(2_900);
        expect(result.json.database).toBe('unreachable');
      }
    }
    proxy.resume();
    await until(healthy, 'healthy again');
    expect((await probe('/readyz')).status).toBe(200);
  });

  test('and its connections never return: the server becomes healthy over new ones', async () => {
    proxy.hang();
    expect((await probe('/healthz')).status).toBe(503);
    proxy.cut();
    proxy.resume();
    await until(healthy, 'healthy again');
  });
});

test('while all connections are in use, the server is ready as long as Postgres responds', async () => {
  const { db } = app.context;
  await until(healthy, 'healthy');
  const queue = (count: number) =>
    Array.from({ length: count }, () => db.query(sql.nothing`select pg_sleep(0.6)`).then(String, String));
  const calls = queue(40);
  const { result, ms } = await timed(() => probe('/readyz'));
  expect([result.status, result.json.database]).toEqual([200, 'ok']);
  expect(ms).toBeLessThan(2_900);
  expect(db.poolState().waiting).toBeGreaterThan(0);
  proxy.hang();
  calls.push(...queue(8));
  await until(async () => (await probe('/readyz')).status === 503, 'not ready without Postgres');
  proxy.resume();
  await Promise.all(calls);
  await until(healthy, 'healthy again');
}, 240_000);

test('refused connections return 503 at once, and stop doing so when they are accepted again', async () => {
  proxy.refuse();
  const { result, ms } = await timed(() => probe('/healthz'));
  expect(result.status).toBe(503);
  expect(ms).toBeLessThan(2_900);
  proxy.accept();
  await until(healthy, 'healthy again');
});

test('callers learn nothing about the host or the fault', async () => {
  proxy.refuse();
  const answers = [await probe('/healthz'), await probe('/readyz')];
  proxy.accept();
  for (const { text } of answers) expect(text).not.toMatch(/127\.0\.0\.1|postgres|ECONN|stack/i);
  await until(healthy, 'healthy again');
});

describe('metrics', () => {
  const figure = async (line: string): Promise<number> => {
    const { text, headers } = await probe('/metrics');
    expect(headers['content-type']).toMatch(/^text\/plain/);
    const found = text.split('\n').find((one) => one.startsWith(`${line} `));
    return found === undefined ? 0 : Number(found.slice(line.length + 1));
  };

  test('count requests by route, never by name', async () => {
    const stack = await createStack(app);
    const line =
      'holdfast_http_request_seconds_count{method="GET",route="/api/stacks/:organization/:project/:stack",status="200"}';
    const before = await figure(line);
    await ok(app.call('GET', stack.path, { auth: stack.auth }));
    expect(await figure(line)).toBe(before + 1);
    await app.call('GET', `/api/${stack.organization}`);
    expect((await probe('/metrics')).text).not.toContain(stack.organization);
  });

  test('count updates by kind and outcome, and writes by result', async () => {
    const started = 'holdfast_updates_started_total{kind="refresh"}';
    const ended = (status: string) => `holdfast_updates_ended_total{kind="refresh",status="${status}"}`;
    const names = [started, ended('succeeded'), ended('cancelled'), 'holdfast_leases_expired_total'];
    const bytes = 'holdfast_commit_body_bytes_total{kind="full"}';
    const before = await Promise.all(names.map(figure));
    const bytesBefore = await figure(bytes);
    for (const end of ['complete', 'cancel', 'expire', 'make way']) {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack, { kind: 'refresh' });
      await ok(saveState(app, update, 1));
      if (end === 'complete') for (let time = 1; time <= 2; time++) await ok(complete(app, update));
      if (end === 'cancel') for (let time = 1; time <= 2; time++) await ok(cancel(app, stack, update));
      if (end === 'expire') {
        await expire(app, update.id);
        await expireLeases(app.context);
      }
      if (end === 'make way') {
        await expire(app, update.id);
        await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
      }
    }
    const after = await Promise.all(names.map(figure));
    expect(after.map((value, index) => value - (before[index] as number))).toEqual([4, 1, 3, 2]);
    expect((await figure(bytes)) - bytesBefore).toBe(4 * JSON.stringify(deployment(1)).length);
  });

  test('tell of the pool, the jobs and the payload store', async () => {
    for (const name of ['holdfast_jobs_waiting', 'holdfast_jobs_active', 'holdfast_payload_store_bytes'])
      expect(await figure(name)).toBe(0);
    expect(await figure('holdfast_database_connections_acquired')).toBe(0);
    expect(await figure('holdfast_database_connections_idle')).toBeGreaterThanOrEqual(1);
    expect(await figure('process_cpu_user_seconds_total')).toBeGreaterThan(0);
  });
});
