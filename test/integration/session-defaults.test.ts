import { afterEach, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Static, Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { type Database, openDatabase } from '../../src/shared/platform/db/database.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { passingReason } from '../../src/shared/platform/db/sqlstate.ts';
import { Timestamp } from '../../src/shared/platform/schema/standard-schema.ts';
import { type PgBouncer, startPgBouncer } from '../../testkit/pgbouncer.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { describeWithTools } from '../support/tools.ts';
import { until } from '../support/until.ts';

// Locks and times mean the same, whatever an operator has set for the database.

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

const open = (url = database.ownerUrl): Promise<Database> =>
  openDatabase({ ...parseConfig({}).database, url, poolSize: 3 });

async function asOwner<T>(work: (owner: pg.Client) => Promise<T>): Promise<T> {
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  try {
    return await work(owner);
  } finally {
    await owner.end();
  }
}

const setForDatabase = (...settings: string[]): Promise<void> =>
  asOwner(async (owner) => {
    const { rows } = await owner.query('select quote_ident(current_database()) as name');
    for (const setting of settings) await owner.query(`alter database ${rows[0].name} set ${setting}`);
  });

const CountRow = Type.Object({ count: Type.Integer() });
const count = async (on: Queryable): Promise<number> =>
  (await on.one(sql.rows(CountRow)`/* test.count */ select count(*)::integer as count from marks`)).count;

test.each(['read committed', 'repeatable read', 'serializable'])(
  'where the database says %s, a transaction that has waited for a lock sees what was committed meanwhile',
  async (level) => {
    await setForDatabase(`default_transaction_isolation = '${level}'`);
    const db = await open();
    try {
      const second = await asOwner(async (owner) => {
        await owner.query('create table marks (); begin; select pg_advisory_xact_lock(1)');
        const seen = db.inTransaction(async (other) => {
          await other.query(sql.nothing`/* test.lock */ select pg_advisory_xact_lock(1)`);
          return count(other);
        });
        const waits = `select from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())`;
        await until(async () => (await owner.query(waits)).rowCount === 1, 'the second waits');
        await owner.query('insert into marks default values; commit');
        return { seen };
      });
      expect(await second.seen).toBe(1);
    } finally {
      await db.close();
    }
  },
);

test.each(['SQL, DMY', 'German', 'Postgres'])('times are read where the database writes them as %s', async (style) => {
  await setForDatabase(`datestyle = '${style}'`);
  const db = await open();
  try {
    const TimeRow = Type.Object({ at: Type.Union([Timestamp, Type.Null()]) });
    const { at } = await db.one(sql.rows(TimeRow)`/* test.read */ select timestamptz '2026-02-03T04:05:06Z' as at`);
    expect(at?.toISOString()).toBe('2026-02-03T04:05:06.000Z');
  } finally {
    await db.close();
  }
});

const SettingRow = Type.Object({ name: Type.String(), setting: Type.String() });
type Setting = Static<typeof SettingRow>;
const asObject = (rows: readonly Setting[]) => Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));

test('sessions have none of the limits of the database, and those of the pool have ours', async () => {
  const limits = ['statement', 'lock', 'idle_in_transaction_session', 'idle_session', 'transaction'].map(
    (limit) => `${limit}_timeout`,
  );
  await setForDatabase(...limits.map((limit) => `${limit} = '7s'`));
  const db = await open();
  const read = 'select name, setting from pg_settings where name = any ($1)';
  const none = Object.fromEntries(limits.map((name) => [name, '0']));
  try {
    const session = await db.openSession();
    const { rows } = await session.client.query<Setting>(read, [limits]);
    await session.end();
    expect(asObject(rows)).toEqual(none);
    const ofPool = await db.any(sql.rows(SettingRow)`
      /* test.limits */ select name, setting from pg_settings where name = any (${sql.array(limits, 'text')})`);
    expect(asObject(ofPool)).toEqual({
      ...none,
      statement_timeout: '60000',
      lock_timeout: '2000',
      idle_in_transaction_session_timeout: '15000',
    });
  } finally {
    await db.close();
  }
});

await describeWithTools('behind PgBouncer', ['pgbouncer'], () => {
  const advice = `alter role … set default_transaction_isolation = 'read committed'`;
  const start = async (): Promise<PgBouncer> => {
    await setForDatabase(`default_transaction_isolation = 'repeatable read'`);
    return startPgBouncer(database.ownerUrl, {
      poolMode: 'transaction',
      poolSize: 3,
      settings: { ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout' },
    });
  };

  test('such a default is refused, because other sessions would keep it', async () => {
    await using pooler = await start();
    const db = await open(pooler.url);
    try {
      await expect(db.ping(30_000)).rejects.toThrow(advice);
    } finally {
      await db.close();
    }
  });

  test('it is no outage to wait for, whatever the other hosts answer', async () => {
    await using pooler = await start();
    const { host } = new URL(pooler.url);
    for (const hosts of [`127.0.0.1:${await findFreePort()},${host}`, `${host},${host}`]) {
      const db = await open(pooler.url.replace(host, hosts));
      try {
        const error: unknown = await db.openSession().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'UNSAFE_DEFAULT', message: expect.stringContaining(advice) });
        expect(passingReason(error)).toBeNull();
      } finally {
        await db.close();
      }
    }
  });
});
