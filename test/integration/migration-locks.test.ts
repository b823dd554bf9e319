import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PG_MIGRATE_LOCK_ID } from 'node-pg-migrate';
import pg from 'pg';
import { TableInUseError } from '../../src/shared/platform/db/lock-waits.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createEmptyDatabase, type EmptyDatabase } from '../support/empty-database.ts';
import { MigrationFolder, nextMigrations } from '../support/next-migrations.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

const waiting = 'the migration waits for other sessions';
const patience = { lockMs: 200, firstPauseMs: 50, maxPauseMs: 100, giveUpMs: 300_000, watchMs: 20 };

let folder: MigrationFolder;
let database: EmptyDatabase;
let lines: { msg: string; table?: string; sessions?: string[] }[];
const logger = createLogger({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });

beforeAll(async () => {
  folder = await MigrationFolder.create();
  database = await createEmptyDatabase();
  lines = [];
});

afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

function run(changed: Partial<typeof patience> = {}): Promise<string[]> {
  const start = { url: database.url, connectMs: 30_000, waitMs: 0, logger };
  return migrate(start, { directory: folder.directory, patience: { ...patience, ...changed } });
}

async function connect(name: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: database.url, application_name: name });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

async function listTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`,
  );
  return rows.map(({ name }) => name).filter((name) => name !== 'holdfast_migrations');
}

test('while each migration waits for a reader of all tables, no call waits for the migration', async () => {
  await using reader = await connect('report');
  await using caller = await connect('caller');
  expect(await run()).toEqual(await MigrationFolder.listBaseline());
  for (const [name, text] of Object.entries(nextMigrations)) {
    await folder.put(name, text);
    const tables = await listTables(caller);
    // With a snapshot, for which an index that is built concurrently waits.
    await reader.query('begin isolation level repeatable read; select from updates');
    await reader.query(`lock table ${tables.join(', ')} in access share mode`);
    lines = [];
    const applied = run();
    await until(async () => lines.some(({ msg }) => msg === waiting), `${name} waits`);
    // Each would wait for as long as the reader does, if the migration kept its place in the queue of the lock.
    await caller.query(`set statement_timeout = '60s'`);
    for (const table of tables) await caller.query(`select from ${table} limit 1`);
    await caller.query(`insert into organizations (name) values ('${name}')`);
    const line = lines.find(({ msg }) => msg === waiting);
    expect(line?.sessions?.join()).toContain('report');
    await reader.query('commit');
    expect(await applied).toEqual([name]);
  }
  const invalid = await caller.query('select indexrelid::regclass from pg_index where not indisvalid');
  expect(invalid.rows).toEqual([]);
});

test('a copy that gets further with each attempt is not given up', async () => {
  await folder.put(
    '9800_steps',
    `-- Without a transaction

do $$
declare
  done integer := coalesce(nullif(current_setting('holdfast.migrated', true), ''), '0');
begin
  perform set_config('holdfast.migrated', (done + 1)::text, false);
  commit;
  if done < 20 then
    raise exception 'busy' using errcode = 'lock_not_available';
  end if;
end $$;
`,
  );
  expect(await run({ giveUpMs: 500 })).toContain('9800_steps');
});

test('a copy that begins again with each attempt is not given up while one gets further than all before', async () => {
  await using other = await connect('other');
  await other.query('create sequence attempts');
  await folder.put(
    '9810_batches',
    `-- Without a transaction

do $$
declare
  attempt integer := nextval('attempts');
begin
  for batch in 1 .. attempt loop
    perform batch;
    commit;
  end loop;
  if attempt < 20 then
    raise exception 'busy' using errcode = 'lock_not_available';
  end if;
end $$;
`,
  );
  expect(await run({ giveUpMs: 500 })).toEqual(['9810_batches']);
});

test('a copy that commits the same batches with each attempt is given up', async () => {
  await folder.put(
    '9820_stuck',
    `-- Without a transaction

do $$
begin
  for batch in 1 .. 5 loop
    commit;
  end loop;
  raise exception 'busy' using errcode = 'lock_not_available';
end $$;
`,
  );
  await expect(run({ giveUpMs: 500 })).rejects.toThrow(TableInUseError);
  await folder.put('9820_stuck', 'select 1;\n');
  expect(await run()).toEqual(['9820_stuck']);
});

test('a migration whose commit gets no lock is applied again as a whole', async () => {
  await using other = await connect('other');
  await other.query('create sequence commits');
  await folder.put(
    '9822_commit',
    `
create table committed (at integer);
create function refuse_first_commit() returns trigger language plpgsql as $$
begin
  if nextval('commits') = 1 then
    raise exception 'busy' using errcode = 'lock_not_available';
  end if;
  return null;
end $$;
create constraint trigger first_commit after insert on committed deferrable initially deferred
  for each row execute function refuse_first_commit();
insert into committed values (1);
`,
  );
  await folder.put('9823_next', 'select 1;\n');
  expect((await run()).slice(-2)).toEqual(['9822_commit', '9823_next']);
  expect((await other.query('select at from committed')).rows).toEqual([{ at: 1 }]);
});

test('limits of the database for statements and idle transactions are none for migrations', async () => {
  await using other = await connect('other');
  for (const setting of ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'])
    await other.query(`alter database ${database.name} set ${setting} = '1s'`);
  await folder.put('9830_slow', 'select pg_sleep(2);\n');
  try {
    expect(await run()).toEqual(['9830_slow']);
  } finally {
    await other.query(`alter database ${database.name} reset all`);
  }
});

test('a migration that somebody cancels ends with the reason, and is not begun again', async () => {
  await using other = await connect('other');
  await folder.put('9840_cancelled', 'select pg_sleep(60);\n');
  const start = { url: database.url, connectMs: 30_000, waitMs: 60_000, logger };
  const applied = migrate(start, { directory: folder.directory, patience });
  applied.catch(() => {});
  const running = `from pg_stat_activity where datname = current_database() and query like '%pg_sleep(60)%' and pid <> pg_backend_pid() and state = 'active'`;
  await until(async () => (await other.query(`select pg_cancel_backend(pid) ${running}`)).rowCount === 1, 'it runs');
  await expect(applied).rejects.toThrow('Postgres has cancelled a statement: canceling statement due to user request');
  await folder.put('9840_cancelled', 'select 1;\n');
  expect(await run()).toEqual(['9840_cancelled']);
});

test('a migration gives up after a time, and names the table and the session that uses it', async () => {
  await using reader = await connect('nightly report');
  await reader.query('begin; select from updates limit 1');
  await folder.put('9900_wait', 'alter table updates add column waited boolean;\n');
  const failed = await run({ giveUpMs: 1_000 }).then(
    () => null,
    (error: unknown) => error as Error,
  );
  expect(failed).toBeInstanceOf(TableInUseError);
  expect(failed?.message).toMatch(
    /could not lock updates for .*in use by session \d+ \(nightly report of user .*, idle in transaction, .*pg_terminate_backend/,
  );
  // A statement of another session may contain a secret.
  expect(failed?.message).not.toContain('select from');
  expect(lines.some(({ msg }) => msg === 'the migration lets other sessions go first and tries again')).toBe(true);
  await reader.query('commit');
  expect(await run()).toEqual(['9900_wait']);
});

test('migrations that took long are no part of the time for which the next one waits', async () => {
  await using reader = await connect('report');
  await folder.put('9910_long', 'select pg_sleep(6);\n');
  await folder.put('9911_short', 'alter table updates add column waited_again boolean;\n');
  await reader.query('begin; select from updates limit 1');
  lines = [];
  const applied = run({ giveUpMs: 5_000 });
  await until(
    async () => lines.some(({ msg }) => msg === 'the migration lets other sessions go first and tries again'),
    'it has tried once',
  );
  await reader.query('commit');
  expect(await applied).toEqual(['9910_long', '9911_short']);
});

test('a run that loses Postgres later than it waits for it at its start resumes', async () => {
  await using other = await connect('other');
  await folder.put(
    '9920_long',
    'select pg_sleep(case when (select count(*) from organizations) > 1000 then 0 else 60 end);\n',
  );
  const start = { url: database.url, connectMs: 30_000, waitMs: 1_000, logger };
  const applied = migrate(start, { directory: folder.directory, patience });
  applied.catch(() => {});
  const running = `from pg_stat_activity where datname = current_database() and query like '%pg_sleep%' and pid <> pg_backend_pid() and now() - query_start > '1.5 s'`;
  await until(async () => (await other.query(`select ${running}`)).rowCount === 1, 'it has run for longer');
  await other.query(`insert into organizations (name) select 'o' || n from generate_series(1, 1001) n`);
  await other.query(`select pg_terminate_backend(pid) ${running}`);
  expect(await applied).toEqual(['9920_long']);
});

test('a run that waits for another one names its session', async () => {
  await using other = await connect('killed run');
  await other.query('select pg_advisory_lock($1)', [PG_MIGRATE_LOCK_ID]);
  lines = [];
  const applied = run();
  const found = await until(async () => lines.find(({ msg }) => /waits for another run/.test(msg)), 'it says so');
  const { rows } = await other.query<{ pid: number }>('select pg_backend_pid() as pid');
  expect(found.sessions).toEqual([expect.stringMatching(`^session ${rows[0]?.pid} \\(killed run of user`)]);
  await other.query('select pg_advisory_unlock($1)', [PG_MIGRATE_LOCK_ID]);
  expect(await applied).toEqual([]);
});

test('the session of a run that is gone ends in the middle of its statement', async () => {
  await using other = await connect('other');
  await using proxy = await openTcpProxy(database.url);
  await folder.put('9930_killed', 'select pg_sleep(600);\n');
  const start = { url: proxy.url, connectMs: 30_000, waitMs: 0, logger };
  const lost = migrate(start, { directory: folder.directory, patience });
  lost.catch(() => {});
  const running = `select from pg_stat_activity where datname = current_database() and query like '%pg_sleep(600)%' and pid <> pg_backend_pid() and state = 'active'`;
  await until(async () => (await other.query(running)).rowCount === 1, 'it runs');
  proxy.refuse();
  await expect(lost).rejects.toThrow();
  await until(async () => (await other.query(running)).rowCount === 0, 'its session ends');
  await folder.put('9930_killed', 'select 1;\n');
  expect(await run()).toEqual(['9930_killed']);
});
