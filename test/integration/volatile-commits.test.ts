import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { reportVolatileCommits } from '../../src/shared/platform/db/volatile-commits.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

// A commit is acknowledged only when it is on disk, whatever an operator has set for the database.

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

async function setForDatabase(value: string): Promise<void> {
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  try {
    const { rows } = await owner.query('select quote_ident(current_database()) as name');
    await owner.query(`alter database ${rows[0].name} set synchronous_commit = ${value}`);
  } finally {
    await owner.end();
  }
}

const SettingRow = Type.Object({ value: Type.String() });
const settingOn = async (on: Queryable): Promise<string> =>
  (await on.one(sql.rows(SettingRow)`/* test.read */ select current_setting('synchronous_commit') as value`)).value;

test.each([
  ['off', 'on', ['warn']],
  ['on', 'on', []],
  ['local', 'local', []],
  ['remote_apply', 'remote_apply', []],
])('where the database says %s, sessions have %s', async (given, effective, levels) => {
  await setForDatabase(given);
  const db = await openDatabase({ ...parseConfig({}).database, url: database.ownerUrl, poolSize: 2 });
  try {
    expect(await Promise.all([settingOn(db), settingOn(db), db.inTransaction(settingOn)])).toEqual([
      effective,
      effective,
      effective,
    ]);
    const session = await db.openSession();
    const { rows } = await session.client.query('show synchronous_commit');
    await session.end();
    expect(rows).toEqual([{ synchronous_commit: effective }]);

    const logged: string[] = [];
    const logger = createLogger({ level: 'info' }, { write: (line: string) => void logged.push(line) });
    await reportVolatileCommits({ db, logger });
    expect(logged.map((line) => JSON.parse(line).level)).toEqual(levels);
  } finally {
    await db.close();
  }
});
