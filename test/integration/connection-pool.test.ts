import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

const poolSize = 4;
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

test('callers one after another use the same connection, also after a burst', async () => {
  await using db = await open();
  await db.openConnections();
  const read = () => readPid(db);
  const burst = await Promise.all(Array.from({ length: poolSize }, read));
  expect(new Set(burst).size).toBe(poolSize);
  const next: number[] = [];
  for (let call = 0; call < 3 * poolSize; call++) next.push(await read(), await db.inTransaction(readPid));
  expect(new Set(next).size).toBe(1);
});

describe('a connection stays open', () => {
  test.each([
    ['a statement that Postgres refuses', (on: Queryable) => on.query(sql.nothing`select 1 / 0`)],
    ['a missing row', (on: Queryable) => on.one(sql.rows(PidRow)`select 1 as pid where false`)],
    ['a row of another shape', (on: Queryable) => on.one(sql.rows(PidRow)`select 'a' as pid`)],
    [
      'a constraint that is violated',
      async (on: Queryable) => {
        for (let at = 0; at < 2; at++) await on.query(sql.nothing`insert into organizations (name) values ('twice')`);
      },
    ],
    [
      'a statement that takes too long',
      async (on: Queryable) => {
        await on.query(sql.nothing`set local statement_timeout = 1`);
        await on.query(sql.nothing`select pg_sleep(60)`);
      },
    ],
    [
      'a refusal of the caller',
      async () => {
        throw new Error('refused');
      },
    ],
  ])('after %s, and has nothing of the transaction', async (_, fail: (on: Queryable) => Promise<unknown>) => {
    await using db = await open();
    const pid = await readPid(db);
    await expect(
      db.inTransaction(async (tx) => {
        await tx.query(sql.nothing`insert into organizations (name) values ('half')`);
        await fail(tx);
      }),
    ).rejects.toThrow();
    expect(await readPid(db)).toBe(pid);
    expect(await db.exists(sql.rows(PidRow)`select 1 as pid from organizations`)).toBe(false);
  });

  test('after a single statement that fails', async () => {
    await using db = await open();
    const pid = await readPid(db);
    await expect(db.query(sql.nothing`select 1 / 0`)).rejects.toThrow(/division by zero/);
    expect(await readPid(db)).toBe(pid);
  });
});

test.each([
  ['it has broken', sql.nothing`select pg_terminate_backend(pg_backend_pid())`],
  ['its server takes no writes', sql.nothing`do $$ begin raise sqlstate '25006'; end $$`],
])('a connection is closed when %s', async (_, statement) => {
  await using db = await open();
  const pid = await readPid(db);
  await expect(db.query(statement)).rejects.toThrow();
  expect(await readPid(db)).not.toBe(pid);
});

test('what goes on after its transaction has failed is not part of the next one', async () => {
  await using db = await open();
  const failed = Promise.withResolvers<void>();
  const late = Promise.withResolvers<unknown>();
  const refused = db.inTransaction(async (tx) => {
    const slow = failed.promise.then(() => tx.query(sql.nothing`insert into organizations (name) values ('late')`));
    slow.then(late.resolve, late.resolve);
    throw new Error('refused');
  });
  await expect(refused).rejects.toThrow('refused');
  await db.inTransaction(async (tx) => {
    await readPid(tx);
    failed.resolve();
    expect(await late.promise).toMatchObject({ message: 'The transaction has ended' });
  });
  expect(await db.exists(sql.rows(PidRow)`select 1 as pid from organizations`)).toBe(false);
});
