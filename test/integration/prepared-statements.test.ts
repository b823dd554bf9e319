import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { mapDatabaseError } from '../../src/shared/platform/db/sqlstate.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

const poolSize = 4;
let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(async () => {
  db = await openDatabase({ ...parseConfig({}).database, url: database.ownerUrl, poolSize });
  await run(sql.fragment`drop table if exists prepared_numbers`);
  await run(sql.fragment`create table prepared_numbers as select 1 as number`);
});
afterEach(() => db.close());
afterAll(() => database[Symbol.asyncDispose]());

const NumberRow = Type.Object({ number: Type.Integer() });
const run = (statement: ReturnType<typeof sql.fragment>, on: Queryable = db) => on.query(sql.nothing`${statement}`);
const readNumber = (on: Queryable) =>
  on.one(sql.prepared('test_read_number', NumberRow)`/* test.readNumber */ select number from prepared_numbers`);

/** Reads by each connection of the pool at the same time. */
const readByAll = (read: () => Promise<unknown>) =>
  Promise.all(
    Array.from({ length: poolSize }, () =>
      read().then(
        () => 'read',
        (error: unknown) => {
          const mapped = mapDatabaseError(error);
          return mapped instanceof UnavailableError ? 'unavailable' : String((mapped as Error).message);
        },
      ),
    ),
  );
const changes = {
  'a column has another type': () => run(sql.fragment`alter table prepared_numbers alter column number type bigint`),
  'the server has forgotten the statements': () =>
    db.onConnection(async (connection) => {
      await readNumber(connection);
      await run(sql.fragment`deallocate all`, connection);
    }),
};
const readers = {
  'in transactions': () =>
    db.inTransaction(async (tx) => {
      await run(sql.fragment`select pg_sleep(0.05)`, tx);
      return readNumber(tx);
    }),
  'by themselves': () => readNumber(db),
};

for (const [change, makeChange] of Object.entries(changes))
  for (const [how, read] of Object.entries(readers))
    test(`prepared statements ${how} work again when ${change}; until then they are unavailable`, async () => {
      expect(await readByAll(readers['in transactions'])).toEqual(Array(poolSize).fill('read'));
      await makeChange();
      for (const outcome of await readByAll(read)) expect(['read', 'unavailable']).toContain(outcome);
      expect(await readByAll(read)).toEqual(Array(poolSize).fill('read'));
    });
