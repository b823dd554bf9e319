import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { limitLockWait } from '../../src/shared/platform/db/limit-lock-wait.ts';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { isLockTimeout, isOutage } from '../../src/shared/platform/db/sqlstate.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const poolSize = 4;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const open = async (url = database.ownerUrl, options: object = {}) => {
  const db = await openDatabase({ ...parseConfig({}).database, url, poolSize, ...options });
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

test('while a pool opens its connections, callers do not wait for a slow login', async () => {
  await using db = await open();
  const slow = Promise.withResolvers<void>();
  let checked = 0;
  db.checkConnections(() => (++checked === 1 ? Promise.resolve() : slow.promise));
  const opening = db.openConnections();
  expect(await readPid(db)).toBeGreaterThan(0);
  slow.resolve();
  await opening;
  expect(checked).toBe(poolSize);
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

describe('while a lock is held', () => {
  const lock = (on: Queryable) => on.query(sql.nothing`select pg_advisory_xact_lock(7)`);
  const whileHeld = async (work: (release: () => Promise<unknown>) => Promise<void>): Promise<void> => {
    const holder = new pg.Client({ connectionString: database.ownerUrl });
    await holder.connect();
    try {
      await holder.query('select pg_advisory_lock(7)');
      await work(() => holder.query('select pg_advisory_unlock(7)'));
    } finally {
      await holder.end();
    }
  };

  test('more callers than connections wait for it and get it in the end, and others have connections meanwhile', async () => {
    await using db = await open(database.ownerUrl, { acquireTimeoutMs: 60_000 });
    await whileHeld(async (release) => {
      const waiting = Array.from({ length: 2 * poolSize }, (_, at) => (at % 2 ? lock(db) : db.inTransaction(lock)));
      await until(async () => db.poolState().waiting > 0, 'the pool is in use');
      expect(await readPid(db)).toBeGreaterThan(0);
      await release();
      expect(await Promise.all(waiting)).toHaveLength(2 * poolSize);
    });
  });

  test('a transaction with a limit of its own runs once', async () => {
    await using db = await open();
    await whileHeld(async () => {
      let runs = 0;
      const limited = db.inTransaction(async (tx) => {
        runs++;
        await limitLockWait(tx, 50);
        await lock(tx);
      });
      expect(isLockTimeout(await limited.catch((error: unknown) => error))).toBe(true);
      expect(runs).toBe(1);
    });
  });

  test('a wait ends when a statement would have failed', async () => {
    await using db = await open(database.ownerUrl, { statementTimeoutMs: 3_000 });
    await whileHeld(async () => {
      let runs = 0;
      const waiting = db.inTransaction(async (tx) => {
        runs++;
        await lock(tx);
      });
      expect(isLockTimeout(await waiting.catch((error: unknown) => error))).toBe(true);
      expect(runs).toBe(2);
    });
  });
});

test.each([
  ['it has broken', sql.nothing`select pg_terminate_backend(pg_backend_pid())`],
  ['its server takes no writes', sql.nothing`do $$ begin raise sqlstate '25006'; end $$`],
  ['it is in a transaction', sql.nothing`begin`],
])('a connection is closed when %s', async (_, statement) => {
  await using db = await open();
  const pid = await readPid(db);
  await db.query(statement).catch(() => {});
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

test('parallel statements of a transaction that fails end with it', async () => {
  await using db = await open();
  const insert = (tx: Queryable, name: string) =>
    tx.query(sql.nothing`insert into organizations (name) values (${name})`);
  for (let round = 0; round < 5; round++) {
    const refused = db.inTransaction((tx) =>
      Promise.all([tx.query(sql.nothing`select 1 / 0`), ...['a', 'b', 'c', 'd'].map((name) => insert(tx, name))]),
    );
    const nested = db.inTransaction((tx) =>
      tx.transaction((inner) =>
        Promise.all([insert(inner, 'e'), inner.query(sql.nothing`select 1 / 0`), insert(inner, 'f')]),
      ),
    );
    await expect(refused).rejects.toThrow(/division by zero/);
    await expect(nested).rejects.toThrow(/division by zero/);
    await db.inTransaction(readPid);
  }
  expect(await db.exists(sql.rows(PidRow)`select 1 as pid from organizations`)).toBe(false);
});

test('a connection that is lost while nobody can log in leaves the open ones in use', async () => {
  const role = `pool_${process.pid}`;
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(`create role ${role} login password 'only-for-tests'`);
  const url = Object.assign(new URL(database.ownerUrl), { username: role, password: 'only-for-tests' }).toString();
  {
    await using db = await open(url);
    await db.openConnections();
    await owner.query(`alter role ${role} nologin`);
    await expect(db.query(sql.nothing`do $$ begin raise sqlstate 'XX000'; end $$`)).rejects.toThrow();
    const used = new Set<number>();
    for (let call = 0; call < 2 * poolSize; call++) used.add(await readPid(db));
    expect(used.size).toBe(1);
    await expect(Promise.all(Array.from({ length: poolSize }, () => readPid(db)))).rejects.toThrow();
    expect(await readPid(db)).toBeGreaterThan(0);
  }
  await owner.query(`drop role ${role}`);
  await owner.end();
});

test('a statement that nobody awaits fails its transaction', async () => {
  await using db = await open();
  const refused = db.inTransaction(async (tx) => {
    await tx.query(sql.nothing`insert into organizations (name) values ('half')`);
    tx.query(sql.nothing`select 1 / 0`).catch(() => {});
  });
  await expect(refused).rejects.toMatchObject({ name: 'RolledBackError', cause: { message: 'division by zero' } });
  expect(await db.exists(sql.rows(PidRow)`select 1 as pid from organizations`)).toBe(false);
});

describe('a transaction whose work conceals that a statement failed', () => {
  const insert = (on: Queryable) => on.query(sql.nothing`insert into organizations (name) values ('half')`);
  const divide = (on: Queryable) => on.query(sql.nothing`select 1 / 0`);
  const conceal = async (statement: Promise<unknown>) => void (await statement.catch(() => {}));

  test.each([
    [
      'the last one',
      async (tx: Queryable) => {
        await insert(tx);
        await conceal(divide(tx));
      },
    ],
    [
      'all that follow, too',
      async (tx: Queryable) => {
        await conceal(divide(tx));
        await conceal(insert(tx));
      },
    ],
    [
      'one before others',
      async (tx: Queryable) => {
        await conceal(divide(tx));
        await insert(tx);
      },
    ],
    [
      'one after a savepoint',
      async (tx: Queryable) => {
        await insert(tx);
        await tx.transaction((nested) => conceal(divide(nested)));
      },
    ],
    [
      'one after a savepoint, before others',
      async (tx: Queryable) => {
        await tx.transaction((nested) => conceal(divide(nested)));
        await tx.transaction(insert);
      },
    ],
  ])('fails, and its connection stays open: %s', async (_, work) => {
    await using db = await open();
    const pid = await readPid(db);
    // An error outside of the transaction is not its cause.
    await expect(db.query(sql.nothing`select nothing`)).rejects.toThrow();
    const error = { name: 'RolledBackError', cause: { message: 'division by zero' } };
    await expect(db.inTransaction(work)).rejects.toMatchObject(error);
    await expect(db.transaction(work)).rejects.toMatchObject(error);
    expect(await db.inTransaction(readPid)).toBe(pid);
    await expect(db.onConnection((connection) => connection.transaction(work))).rejects.toMatchObject(error);
    expect(await db.exists(sql.rows(PidRow)`select 1 as pid from organizations`)).toBe(false);
  });

  test('is not repeated, but its caller may do so, if the statement failed for a conflict', async () => {
    await using db = await open();
    let runs = 0;
    const failed = db.inTransaction(async (tx) => {
      runs++;
      await conceal(tx.query(sql.nothing`do $$ begin raise sqlstate '40001'; end $$`));
    });
    const error = await failed.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ name: 'RolledBackError' });
    expect(isOutage(error)).toBe(true);
    expect(runs).toBe(1);
  });

  test('commits the rest, if a savepoint was before the statement', async () => {
    await using db = await open();
    await db.inTransaction(async (tx) => {
      await tx.query(sql.nothing`insert into organizations (name) values ('whole')`);
      await conceal(tx.transaction(divide));
    });
    const NameRow = Type.Object({ name: Type.String() });
    expect(await db.any(sql.rows(NameRow)`delete from organizations returning name`)).toEqual([{ name: 'whole' }]);
  });
});
