import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { isOutage } from '../../src/shared/platform/db/sqlstate.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const poolSize = 3;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const open = async () => {
  const db = await openDatabase({ ...parseConfig({}).database, url: database.ownerUrl, poolSize });
  return Object.assign(db, { [Symbol.asyncDispose]: () => db.close() });
};
const PidRow = Type.Object({ pid: Type.Integer() });
const readPid = async (on: Queryable): Promise<number> =>
  (await on.one(sql.rows(PidRow)`/* test.readPid */ select pg_backend_pid() as pid`)).pid;

test('each connection is checked once, before its first use, however often it is used', async () => {
  await using db = await open();
  const checked: number[] = [];
  db.checkConnections(async (connection) => void checked.push(await readPid(connection)));
  await db.openConnections();
  for (let round = 0; round < 5; round++) {
    const used = await Promise.all(Array.from({ length: 2 * poolSize }, () => readPid(db)));
    expect(new Set(checked)).toEqual(new Set([...checked, ...used]));
    await db.inTransaction((tx) => readPid(tx));
  }
  expect(checked).toHaveLength(poolSize);
});

test('a connection that takes the place of a lost one is checked, and so are open ones by a new check', async () => {
  await using db = await open();
  const [first, second]: [number[], number[]] = [[], []];
  db.checkConnections(async (connection) => void first.push(await readPid(connection)));
  const lost = await readPid(db);
  await db.query(sql.nothing`select pg_terminate_backend(${lost})`).catch(() => {});
  await until(async () => (await readPid(db).catch(() => lost)) !== lost, 'the pool has another connection');
  const next = await readPid(db);
  expect(first).toContain(next);

  db.checkConnections(async (connection) => void second.push(await readPid(connection)));
  await readPid(db);
  expect(second).toEqual([next]);
});

test.each([
  ['its password has changed', `password 'other'`],
  ['it may not log in', 'nologin'],
])('a login that Postgres refuses because %s is an outage only if the pool has logged in before', async (_, change) => {
  const role = `probe_${process.pid}`;
  const admin = new pg.Client({ connectionString: database.ownerUrl });
  await admin.connect();
  try {
    await admin.query(`create role ${role} login password 'first'`);
    const url = Object.assign(new URL(database.ownerUrl), { username: role, password: 'first' }).toString();
    const openAsRole = async () => {
      const db = await openDatabase({ ...parseConfig({}).database, url, poolSize });
      return Object.assign(db, { [Symbol.asyncDispose]: () => db.close() });
    };
    await using db = await openAsRole();
    await readPid(db);
    await admin.query(`alter role ${role} ${change}`);
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);
    const refusal = async (on: typeof db): Promise<unknown> => {
      let error: unknown;
      // The first statement may meet the connection that is being closed.
      await until(async () => {
        error = await on.inTransaction(readPid).catch((thrown: unknown) => thrown);
        return /authentication failed|not permitted to log in/.test(String((error as Error).message));
      }, 'the login is refused');
      return error;
    };
    expect(isOutage(await refusal(db))).toBe(true);
    await using late = await openAsRole();
    expect(isOutage(await refusal(late))).toBe(false);
    await admin.query(`alter role ${role} login password 'first'`);
    expect(await readPid(db)).toBeGreaterThan(0);
  } finally {
    await admin.query(`drop role ${role}`);
    await admin.end();
  }
});
