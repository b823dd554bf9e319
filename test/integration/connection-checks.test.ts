import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
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
