import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../src/shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { holdInserts } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import {
  createTestApp,
  createTestDatabase,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

const poolSize = 3;

/** `app` reaches Postgres through the proxy, `beside` directly. */
let database: TestDatabase;
let proxy: TcpProxy;
let app: TestApp;
let beside: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openTcpProxy(database.url);
  app = await createTestApp({
    database: { ...database, url: proxy.url },
    settings: {
      HOLDFAST_DATABASE_POOL_SIZE: String(poolSize),
      statementTimeoutMs: 1000,
      databaseConnectMs: 1500,
      databaseAcquireMs: 1500,
    },
  });
  beside = await createTestApp({ database, dataDir: app.dataDir });
});
afterEach(() => proxy.resume());
afterAll(async () => {
  await beside[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const isOurs = (socket: Socket): boolean => socket.remotePort === Number(new URL(proxy.url).port);
const getStack = ({ path, auth }: TestStack) => app.call('GET', path, { auth });
const isWell = async (stack: TestStack): Promise<boolean> => (await getStack(stack)).status === 200;

function expectUnavailable(response: TestResponse): void {
  expect(response.status).toBe(503);
  expect(response.json).toEqual({ code: 503, message: expect.stringContaining('please retry') });
  expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
}

test('a new process opens all of its connections, and fails soon if it cannot', async () => {
  const settings = { HOLDFAST_DATABASE_POOL_SIZE: String(poolSize), databaseConnectMs: 1500 };
  await using fresh = await createTestApp({
    database: { ...database, url: proxy.url },
    dataDir: app.dataDir,
    settings,
  });
  const { db } = fresh.context;
  await db.openConnections();
  expect(db.poolState()).toEqual({ acquired: 0, idle: poolSize, waiting: 0 });
  proxy.hang();
  proxy.cut();
  const fails = () =>
    db.openConnections().then(
      () => false,
      (error: unknown) => mapDatabaseError(error) instanceof UnavailableError,
    );
  await until(fails, 'logins fail');
  proxy.resume();
  await until(async () => {
    await db.openConnections().catch(() => {});
    return db.poolState().idle === poolSize;
  }, 'all connections are open again');
});

describe('Postgres stops answering, and no connection breaks', () => {
  test('during a statement: 503; the retry succeeds and counts once', async () => {
    const stack = await createStack(beside);
    const update = await startUpdate(beside, stack, { journal: true });
    const call = () => append(app, update, creation(1, 'a', stack));
    {
      await using gate = await holdInserts(beside, 'journal_entries');
      const answer = call();
      // On a busy machine its time may be over before it is seen.
      await Promise.race([gate.reached(1), answer]);
      proxy.hang();
      expectUnavailable(await answer);
      await gate.release();
    }
    proxy.resume();
    await until(() => isWell(stack), 'the pool is well again');
    await ok(call());
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['a']);
  });

  test('between two statements of a transaction: it fails as unavailable and writes nothing', async () => {
    const stack = await createStack(beside);
    await until(() => isWell(stack), 'the pool is well');
    const rename = (slug: string) =>
      sql.nothing`update organizations set name = ${slug} where name = ${stack.organization}`;
    const work = app.context.db.inTransaction(async (tx) => {
      await tx.query(rename('renamed'));
      proxy.hang();
      await tx.query(rename('renamed again'));
    });
    const error: unknown = await work.catch((thrown: unknown) => thrown);
    expect(mapDatabaseError(error)).toBeInstanceOf(UnavailableError);
    proxy.resume();
    await until(() => isWell(stack), 'the stack is where it was');
  });

  test('at the commit: it fails as unavailable, not as an internal error', async () => {
    const stack = await createStack(beside);
    await until(() => isWell(stack), 'the pool is well');
    const work = app.context.db.inTransaction(async (tx) => {
      await tx.query(sql.nothing`select 1`);
      proxy.hang();
    });
    const error: unknown = await work.catch((thrown: unknown) => thrown);
    expect(mapDatabaseError(error)).toBeInstanceOf(UnavailableError);
    proxy.resume();
    await until(() => isWell(stack), 'the pool is well again');
  });

  test('more calls than the pool has connections: healthz reports it within its 2 s, long before they end', async () => {
    // In minutes.
    const settings = { HOLDFAST_DATABASE_POOL_SIZE: String(poolSize), databaseConnectMs: 120_000 };
    await using patient = await createTestApp({
      database: { ...database, url: proxy.url },
      dataDir: app.dataDir,
      settings: { ...settings, databaseAcquireMs: 120_000 },
    });
    const { path, auth } = await createStack(beside);
    await ok(patient.call('GET', path, { auth }));
    proxy.hang();
    const calls = Array.from({ length: poolSize * 2 }, () => patient.call('GET', path, { auth }));
    const probe = () => patient.call('GET', '/healthz', { accept: null });
    const probes = Promise.all(Array.from({ length: 3 }, probe));
    expect(await Promise.race([probes.then(() => 'probes'), ...calls.map((call) => call.then(() => 'a call'))])).toBe(
      'probes',
    );
    expect((await probes).map(({ status }) => status)).toEqual([503, 503, 503]);
    proxy.cut();
    proxy.resume();
    await Promise.all(calls);
    await until(async () => (await probe()).status === 200, 'healthy again');
  });

  test('more calls than the pool has connections: each is 503', async () => {
    const stack = await createStack(beside);
    await until(() => isWell(stack), 'the pool is well');
    proxy.hang();
    for (const call of Array.from({ length: poolSize * 4 }, () => getStack(stack))) expectUnavailable(await call);
  });

  test('before a connection is made: 503', async () => {
    const stack = await createStack(beside);
    proxy.hang();
    proxy.cut();
    expectUnavailable(await getStack(stack));
    proxy.resume();
    await until(() => isWell(stack), 'the pool is well again');
  });

  test('and returns without the old connections: nothing notifies the pool, and it recovers', async () => {
    const stack = await createStack(beside);
    await until(() => isWell(stack), 'the pool is well');
    proxy.vanish();
    const answer = getStack(stack);
    proxy.reappear();
    expectUnavailable(await answer);
    await until(() => isWell(stack), 'the pool is well again');
  });

  test('for a long series of calls: connections stay within the pool, and it recovers as soon as Postgres does', async () => {
    const stack = await createStack(beside);
    const sockets = new Set<Socket>();
    const note = (message: unknown): void => void sockets.add((message as { socket: Socket }).socket);
    const open = (): number => [...sockets].filter((socket) => !socket.destroyed && isOurs(socket)).length;
    subscribe('net.client.socket', note);
    try {
      proxy.hang();
      proxy.cut();
      let most = 0;
      for (let round = 0; round < 3; round++) {
        const calls = Array.from({ length: poolSize * 2 }, () => getStack(stack));
        const ended = Promise.all(calls).then(() => true);
        await until(() => {
          most = Math.max(most, open());
          return Promise.race([ended, Promise.resolve(false)]);
        }, 'the calls end');
        for (const answer of await Promise.all(calls)) expectUnavailable(answer);
      }
      expect(most).toBe(poolSize);
      await until(() => open() === 0, 'abandoned ones are closed');
    } finally {
      unsubscribe('net.client.socket', note);
    }
    proxy.resume();
    await until(() => isWell(stack), 'the pool is well again');
    const answers = await Promise.all(Array.from({ length: poolSize * 2 }, () => getStack(stack)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  test('a call that times out protects the next: the idle connections are closed with the one that hung', async () => {
    const stack = await createStack(beside);
    await until(() => isWell(stack), 'the pool is well');
    await Promise.all(Array.from({ length: poolSize }, () => getStack(stack)));
    expect(app.context.db.poolState().idle).toBeGreaterThan(1);
    proxy.hang();
    expectUnavailable(await getStack(stack));
    await until(async () => app.context.db.poolState().idle === 0, 'no idle connection is left');
  });
});

test('connections to a server that becomes read-only are closed and opened again', async () => {
  const stack = await createStack(beside);
  await until(() => isWell(stack), 'the pool is well');
  const create = () =>
    app.call('POST', `/api/stacks/${stack.organization}/read-only`, {
      auth: stack.auth,
      body: { stackName: `s${Date.now()}` },
    });
  // Its sessions can still write.
  const admin = new pg.Client({ connectionString: database.ownerUrl, options: '-c default_transaction_read_only=off' });
  await admin.connect();
  const name = new URL(database.url).pathname.slice(1);
  try {
    await admin.query(`alter database ${name} set default_transaction_read_only = on`);
    // Older connections do not know it yet.
    proxy.cut();
    expectUnavailable(await create());
    await admin.query(`alter database ${name} reset default_transaction_read_only`);
  } finally {
    await admin.end();
  }
  await ok(create());
});
