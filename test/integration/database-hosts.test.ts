import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { ConfigError, parseConfig } from '../../src/shared/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/shared/platform/db/database.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { parsePostgresUrl } from '../../src/shared/platform/db/postgres-url.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../src/shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { joinUrls, type PostgresPair, startPostgresPair } from '../../testkit/postgres-pair.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { appRole, asApp, createAppRole } from '../support/global-setup.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { createTestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

let pair: PostgresPair;
beforeAll(async () => {
  pair = await startPostgresPair();
  await createAppRole(pair.primaryUrl);
  const url = joinUrls(pair.standbyUrl, pair.primaryUrl);
  await migrate({ url, connectMs: 60_000, waitMs: 0, logger: createLogger({ level: 'silent' }) }, { appRole });
});
afterAll(() => pair?.[Symbol.asyncDispose]());

const open = async (url: string, connectTimeoutMs = 30_000): Promise<Database & AsyncDisposable> => {
  const db = await openDatabase({ ...parseConfig({}).database, url, connectTimeoutMs, poolSize: 4 });
  return Object.assign(db, { [Symbol.asyncDispose]: () => db.close() });
};
const write = (db: Database): Promise<unknown> =>
  db.query(sql.nothing`insert into users (login) values (${`user-${crypto.randomUUID()}`})`);

test('a standby listed before the primary is skipped', async () => {
  await using db = await open(joinUrls(pair.standbyUrl, pair.primaryUrl, '?target_session_attrs=read-write'));
  await Promise.all(Array.from({ length: 8 }, () => write(db)));
});

test('a host that refuses connections and a host that hangs are skipped', async () => {
  await using silent = await openTcpProxy(pair.primaryUrl);
  silent.hang();
  const refused = new URL(pair.primaryUrl);
  refused.port = String(await findFreePort());
  for (const first of [refused.toString(), silent.url]) {
    await using db = await open(joinUrls(first, pair.primaryUrl), 3_000);
    await write(db);
  }
});

test('a standby alone is unavailable, unless any server is accepted', async () => {
  await using strict = await open(pair.standbyUrl, 3_000);
  const error: unknown = await write(strict).catch((thrown: unknown) => thrown);
  expect(mapDatabaseError(error)).toBeInstanceOf(UnavailableError);
  await using lenient = await open(`${pair.standbyUrl}?target_session_attrs=any`);
  await lenient.query(sql.nothing`select 1`);
  const refused: unknown = await write(lenient).catch((thrown: unknown) => thrown);
  expect(mapDatabaseError(refused)).toBeInstanceOf(UnavailableError);
});

test('a standby answers where the database says serializable, which a standby cannot be', async () => {
  await using primary = await open(pair.primaryUrl);
  const standbyUrl = `${pair.standbyUrl}?target_session_attrs=any`;
  await using before = await open(standbyUrl);
  const count = async (db: Database): Promise<number> => {
    const CountRow = Type.Object({ count: Type.Integer() });
    const isSerializable = `{default_transaction_isolation=serializable}`;
    return (
      await db.one(sql.rows(CountRow)`
        /* test.countDefaults */ select count(*)::integer as count from pg_db_role_setting where setconfig::text = ${isSerializable}`)
    ).count;
  };
  expect(await count(before)).toBe(0);
  const set = async (change: string): Promise<void> => {
    const session = await primary.openSession();
    const name = new URL(pair.primaryUrl).pathname.slice(1);
    await session.client.query(`alter database ${name} ${change}`).finally(() => session.end());
  };
  await set(`set default_transaction_isolation = 'serializable'`);
  try {
    await until(async () => (await count(before)) === 1, 'the standby knows the default');
    await using db = await open(standbyUrl);
    expect(await count(db)).toBe(1);
    await using strict = await open(joinUrls(pair.standbyUrl, pair.primaryUrl));
    await write(strict);
  } finally {
    await set('reset default_transaction_isolation');
  }
});

test.each([
  ['postgres://u:p@a:1,b:2/db?target_session_attrs=standby', 'target_session_attrs'],
  ['postgres://u:p@a:1,b:99999/db', '"b:99999"'],
  ['postgres://u:p@a:1,/db', '""'],
  ['http://u:p@a/db', 'postgres://'],
])('%s is rejected without revealing the password', (url, what) => {
  expect(() => parsePostgresUrl(url)).toThrow(ConfigError);
  expect(() => parsePostgresUrl(url)).toThrow(what);
  expect(() => parsePostgresUrl(url)).not.toThrow('p@');
});

test('a URL is parsed as libpq does it', () => {
  const { hosts, mustTakeWrites, tls } = parsePostgresUrl(
    'postgresql://u:p%40w@[::1]:1,b,c.example:3/db?sslmode=require&application_name=x&target_session_attrs=any',
  );
  expect(mustTakeWrites).toBe(false);
  expect(tls).toEqual({ rejectUnauthorized: false });
  expect(hosts).toEqual([
    { name: '[::1]:1', url: 'postgresql://u:p%40w@[::1]:1/db?application_name=x' },
    { name: 'b', url: 'postgresql://u:p%40w@b/db?application_name=x' },
    { name: 'c.example:3', url: 'postgresql://u:p%40w@c.example:3/db?application_name=x' },
  ]);
  expect(parsePostgresUrl('postgres://u@/db?host=/run/postgresql').hosts).toEqual([
    { name: '/run/postgresql', url: 'postgres://u@/db?host=%2Frun%2Fpostgresql' },
  ]);
});

// The last one: the pair after it is not valid.
test('the primary goes silent and the standby is promoted: acknowledged writes are there, and calls continue', async () => {
  await using proxy = await openTcpProxy(pair.primaryUrl);
  await using app = await createTestApp({
    database: {
      url: joinUrls(asApp(proxy.url), asApp(pair.standbyUrl)),
      ownerUrl: pair.primaryUrl,
      [Symbol.asyncDispose]: async () => {},
    },
    settings: {
      statementTimeoutMs: 5000,
      databaseConnectMs: 5000,
      databaseAcquireMs: 15_000,
    },
  });
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const acknowledged: string[] = [];
  let index = 0;
  const writeOne = async (): Promise<number> => {
    const name = `n${index}`;
    const { status } = await append(app, update, creation(1 + 2 * index, name, stack));
    if (status === 204) {
      acknowledged.push(name);
      index++;
    }
    return status;
  };
  while (acknowledged.length < 20) expect(await writeOne()).toBe(204);
  proxy.hang();
  expect(await writeOne()).toBe(503);
  await pair.promote();
  await until(async () => (await writeOne()) === 204, 'the new primary is found');
  await ok(complete(app, update));
  const there = new Set(await exportedNames(app, stack));
  expect(acknowledged.filter((name) => !there.has(name))).toEqual([]);
  await startUpdate(app, stack);
});
