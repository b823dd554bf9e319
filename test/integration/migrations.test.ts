import { expect, test } from '@jest/globals';
import pg from 'pg';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { readMigration } from '../support/migration-file.ts';
import { MigrationFolder, manyStacks, splitMigrations } from '../support/next-migrations.ts';
import { createTestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const logger = createLogger({ level: 'silent' });

async function connect(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** The statements of a migration of the next release. */
async function statementsOf(name: string): Promise<readonly string[]> {
  await using folder = await MigrationFolder.create();
  await folder.putNext();
  const { statements, hasTransaction } = await readMigration(folder.pathOf(name));
  expect(hasTransaction).toBe(false);
  return statements;
}

test('two processes that migrate an empty database at once apply each migration once', async () => {
  await using database = await createEmptyDatabase();
  const start = { url: database.url, connectMs: 30_000, waitMs: 0, logger };
  const [one, other] = await Promise.all([migrate(start), migrate(start)]);
  await using client = await connect(start.url);
  const { rows } = await client.query<{ name: string }>('select name from holdfast_migrations order by id');
  expect(rows.map((row) => row.name)).toEqual(await MigrationFolder.listBaseline());
  expect([...one, ...other].toSorted()).toEqual(rows.map((row) => row.name));
  expect(Math.min(one.length, other.length)).toBe(0);
  const invalid = await client.query('select 1 from pg_index where not indisvalid');
  expect(invalid.rows).toEqual([]);
  // One that is created shortly before a power failure can keep Postgres from starting.
  const unlogged = await client.query(`select relname from pg_class where relpersistence = 'u'`);
  expect(unlogged.rows).toEqual([]);
});

test('each migration of this release is sent as one text, in a transaction, or in the statements that its lines separate', async () => {
  await using folder = await MigrationFolder.create();
  for (const name of await MigrationFolder.listBaseline()) {
    const parts = splitMigrations[name];
    expect({ name, ...(await readMigration(folder.pathOf(name))) }).toEqual({
      name,
      hasTransaction: parts === undefined,
      statements: Array.from({ length: parts ?? 1 }, () => expect.any(String)),
    });
  }
});

test('a migration with a number below one that was applied is refused', async () => {
  await using database = await createEmptyDatabase();
  await using folder = await MigrationFolder.create();
  const run = () =>
    migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger }, { directory: folder.directory });
  expect(await run()).toEqual(await MigrationFolder.listBaseline());
  await folder.put('0000_late', 'create table late (id integer primary key);\n');
  await expect(run()).rejects.toThrow(/Not run migration 0000_late is preceding already run migration/);
  await using client = await connect(database.url);
  expect((await client.query(`select to_regclass('late') as late`)).rows).toEqual([{ late: null }]);
});

test('a clock of Postgres that was set back between migrations stops no later run', async () => {
  await using database = await createEmptyDatabase();
  await using folder = await MigrationFolder.create();
  const run = () =>
    migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger }, { directory: folder.directory });
  await run();
  await using client = await connect(database.url);
  await client.query(`update holdfast_migrations set run_on = run_on + interval '1 year'`);
  await folder.put('9998_next', 'create table next (id integer primary key);\n');
  expect(await run()).toEqual(['9998_next']);
  await folder.put('9999_last', 'create table last (id integer primary key);\n');
  expect([await run(), await run()]).toEqual([['9999_last'], []]);
});

test('a new index on updates blocks no writer, and is created again after a failure halfway', async () => {
  await using database = await createTestDatabase();
  await using migrating = await connect(database.ownerUrl);
  await using busy = await connect(database.ownerUrl);
  await using writer = await connect(database.ownerUrl);
  await writer.query(`with o as (insert into organizations (name) values ('o') returning id),
    p as (insert into projects (organization_id, name) select id, 'p' from o returning id),
    s as (insert into stacks (project_id, name) select id, 's' from p returning id)
    insert into updates (stack_id, kind, exclusive, status, expires_at) select id, 'update', true, 'succeeded', now() from s`);
  const statements = await statementsOf('9002_updates_by_user');
  // As a run that ended halfway leaves it.
  await writer.query('create index updates_by_user on updates (requested_by)');
  await writer.query(`update pg_index set indisvalid = false where indexrelid = 'updates_by_user'::regclass`);
  await writer.query(`set statement_timeout = '60s'`);
  for (const statement of statements) {
    await busy.query('begin');
    await busy.query(`update updates set message = 'busy'`);
    const running = migrating.query(statement);
    // Not by the session with the transaction, which sees the others as it saw them first.
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await writer.query(waiting)).rows.length > 0, 'the statement waits for the transaction');
    await writer.query(`insert into updates (stack_id, kind, exclusive, status, expires_at)
      select id, 'update', false, 'succeeded', now() from stacks`);
    await busy.query('commit');
    await running;
  }
  const { rows } = await writer.query(
    `select pg_get_indexdef(indexrelid) as text from pg_index where indexrelid = 'updates_by_user'::regclass and indisvalid`,
  );
  expect(rows).toEqual([{ text: expect.stringContaining('(requested_by, number DESC) WHERE') }]);
});

test('the batches of a copy that are killed halfway are completed by the next run', async () => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await using busy = await connect(database.ownerUrl);
  await client.query(manyStacks);
  const rows = async () => (await client.query('select stack_id, place from stack_places order by stack_id')).rows;
  const statements = await statementsOf('9003_stack_places');
  const copy = statements.findIndex((statement) => statement.includes('limit 500 for share'));
  for (const statement of statements.slice(0, copy)) await client.query(statement);
  await busy.query('begin');
  await busy.query('select from stacks order by id desc limit 1 for update');
  const killed = new pg.Client({ connectionString: database.ownerUrl });
  killed.on('error', () => {});
  await killed.connect();
  const running = killed.query(statements[copy] as string).catch((error: unknown) => error);
  await until(async () => (await rows()).length >= 1_000, 'two batches are committed');
  const end = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until(async () => (await client.query(end)).rows.length === 1, 'the copy waits, and is killed');
  expect(await running).toMatchObject({ code: '57P01' });
  await busy.query('rollback');
  expect(await rows()).toHaveLength(1_000);
  // Noted by the trigger meanwhile.
  await client.query(`update stacks set name = 'renamed' where id = (select id from stacks order by id desc limit 1)`);
  for (const statement of statements) await client.query(statement);
  const whole = await client.query(`select id as stack_id, 'p/' || name as place from stacks order by id`);
  expect(await rows()).toEqual(whole.rows);
  expect(whole.rows).toHaveLength(1_200);
});

test.each([
  {
    migration: '0039_project_days',
    counted: 'is_counted',
    lock: 'limit 100 for share',
    held: 'select from stacks order by id desc limit 1 for update',
    change: 'runs = runs + 5, longest_ms = longest_ms + 1',
    sums: `select day, sum(runs)::int as counted, max(longest_ms)::int as most from (
      select day, runs, longest_ms from project_days union all select day, runs, longest_ms from project_day_changes) c group by 1 order by 1`,
    meant: 'select day, sum(runs)::int as counted, max(longest_ms)::int as most from stack_days group by 1 order by 1',
  },
  {
    migration: '0042_project_deliveries',
    counted: 'is_delivery_counted',
    lock: 'limit 100 for no key update',
    held: 'select from stack_changes order by stack_id desc limit 1 for update',
    change: `changed = changed + 5, lead_seconds = lead_seconds || 400 || 405, restore_seconds = '{}'`,
    sums: `select day, sum(count)::int as counted, sum(count * seconds)::int as most from (
      select day, count, seconds from project_day_deliveries
      union all select day, count, seconds from project_day_delivery_changes) c group by 1 order by 1`,
    meant: `select d.day, sum(d.changed + cardinality(d.lead_seconds) + cardinality(d.restore_seconds))::int as counted,
        sum((select coalesce(sum(rounded_delivery(s)), 0) from unnest(d.lead_seconds || d.restore_seconds) s))::int as most
      from stack_days d group by 1 order by 1`,
  },
])(
  '$migration sums days of projects once, whatever is counted during the copy and however often it is killed',
  async ({ change, counted: flag, held, lock, meant, migration, sums }) => {
    await using database = await createTestDatabase();
    await using client = await connect(database.ownerUrl);
    await using changer = await connect(database.ownerUrl);
    await using busy = await connect(database.ownerUrl);
    await client.query(manyStacks);
    // As before the migration.
    await client.query(`begin; set local session_replication_role = replica;
    alter table stack_changes alter column ${flag} set default false;
    update stack_changes set ${flag} = false;
    insert into stack_days (organization_id, day, stack_id, runs, longest_ms, changed, lead_seconds, restore_seconds)
      select c.organization_id, (now() at time zone 'UTC')::date - n, c.stack_id, n, 10 * n, n, array[n * 1000], array[n]
      from stack_changes c, generate_series(0, 3) n;
    commit`);
    const statements = await statementsOf(migration);
    const copy = statements.findIndex((statement) => statement.includes(lock));
    expect(copy).toBeGreaterThan(0);
    for (const statement of statements.slice(0, copy)) await client.query(statement);
    const run = (which: 'asc' | 'desc', by = client) =>
      by.query(`update stack_days set ${change} where stack_id = (select id from stacks order by id ${which} limit 1)`);
    const counted = async () =>
      (await client.query<{ n: number }>(`select count(*)::int as n from stack_changes where ${flag}`)).rows[0]?.n ?? 0;
    await busy.query('begin');
    await busy.query(held);
    const killed = new pg.Client({ connectionString: database.ownerUrl });
    killed.on('error', () => {});
    await killed.connect();
    const { rows } = await killed.query<{ pid: number }>('select pg_backend_pid() as pid');
    const running = killed.query(statements[copy] as string).catch((error: unknown) => error);
    await until(async () => (await counted()) === 1_100, 'eleven batches are committed');
    await run('asc');
    // Whether or not it has to wait.
    const last = run('desc', changer);
    const waiting = `select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`;
    await until(async () => (await client.query(waiting, [rows[0]?.pid])).rows.length > 0, 'the copy waits');
    await client.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    expect(await running).toMatchObject({ code: '57P01' });
    await busy.query('rollback');
    await last;
    for (const statement of statements) await client.query(statement);
    for (const which of ['asc', 'desc'] as const) await run(which);
    const days = await client.query(meant);
    expect((await client.query(sums)).rows).toEqual(days.rows);
    expect(days.rows).toHaveLength(4);
    expect(await counted()).toBe(1_200);
    await client.query('delete from stacks');
    expect((await client.query(`select distinct counted from (${sums}) s`)).rows).toEqual([{ counted: 0 }]);
  },
);

test('0044_million_stacks fills what it adds, once, while a transaction without its triggers is open', async () => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await using busy = await connect(database.ownerUrl);
  await using watcher = await connect(database.ownerUrl);
  await client.query(manyStacks);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at)
    select id, k.kind, true, k.status, now() from stacks, (values ('update', 'failed'), ('preview', 'succeeded')) k (kind, status)`);
  await client.query(`with c as (
      insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
      select id, '', 1, 1, 'zstd', 7, '' from stacks returning id, stack_id)
    update stacks s set checkpoint_id = c.id from c where s.id = c.stack_id`);
  // As before the migration.
  await client.query(`drop table stack_counts, stack_storage;
    drop trigger stack_changes_numbered on stack_changes; drop trigger stack_changes_renumbered on stack_changes;
    drop trigger stacks_not_kept on stacks; drop trigger stacks_still_kept on stacks; drop trigger stacks_head_noted on stacks;
    drop trigger updates_last_noted on updates; drop trigger updates_last_inserted on updates;
    alter table stacks drop column resource_count, drop column last_kind, drop column last_status, drop column last_started_at`);
  await busy.query('begin');
  await busy.query(`insert into stacks (project_id, name) select id, 'late' from projects limit 1`);
  const statements = await statementsOf('0044_million_stacks');
  const migrating = (async () => {
    for (const statement of statements) await client.query(statement);
  })();
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until(async () => (await watcher.query(waiting)).rows.length > 0, 'the migration waits');
  await busy.query('commit');
  await migrating;
  const versions = async () => (await client.query('select id, xmin::text from stacks order by id')).rows;
  const before = await versions();
  for (const statement of statements) await client.query(statement);
  // A run that begins again writes no row twice.
  expect(await versions()).toEqual(before);
  const { rows } =
    await client.query(`select count(*)::int as stacks, (select sum(stacks)::int from stack_counts) as counted,
      (select count(*)::int from stack_storage) as kept,
      count(*) filter (where resource_count = 7 and last_kind = 'update' and last_status = 'failed' and last_started_at is not null)::int as filled
    from stacks where deleted_at is null`);
  expect(rows).toEqual([{ stacks: 1_201, counted: 1_201, kept: 1_201, filled: 1_200 }]);
});

test('0061_abandoned_updates corrects the stacks whose last update ended without having started, once', async () => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await client.query(manyStacks);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, started_at, ended_at)
    select id, 'destroy', true, 'failed', now(), now(), now() from stacks where name <> (select min(name) from stacks)`);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
    select id, 'update', true, 'cancelled', now(), now() from stacks`);
  // As before the migration.
  await client.query(`update stacks set last_kind = 'update', last_status = 'cancelled', last_started_at = now()`);
  await client.query(`update stack_changes set trouble = 'cancelled'`);
  const statements = await statementsOf('0061_abandoned_updates');
  for (const statement of statements) await client.query(statement);
  const found = `select s.last_kind, s.last_status, c.trouble, count(*)::int
    from stacks s join stack_changes c on c.stack_id = s.id group by 1, 2, 3 order by 4`;
  const { rows } = await client.query(found);
  expect(rows).toEqual([
    { last_kind: null, last_status: null, trouble: null, count: 1 },
    { last_kind: 'destroy', last_status: 'failed', trouble: 'failed', count: expect.any(Number) },
  ]);
  expect(rows[1].count).toBeGreaterThan(1_000);
  const versions = async () => (await client.query('select id, xmin::text from stacks order by id')).rows;
  const before = await versions();
  for (const statement of statements) await client.query(statement);
  expect((await client.query(found)).rows).toEqual(rows);
  expect((await client.query('select 1 from pg_index where not indisvalid')).rows).toEqual([]);
  // What was right already is not written again.
  expect(await versions()).toEqual(before);
});

test('0064_due_again makes stacks due whose index has more resources than the bound, and outdates their indexes', async () => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await client.query(manyStacks);
  await client.query(`insert into state_indexes (stack_id, version, known_from, is_ended, resource_count)
    select id, 3, 1, true, case when name in ('s1', 's2', 's3') then 300000 else 250000 end from stacks`);
  await client.query('delete from state_index_due');
  // One that a worker is indexing, and whose index may show an earlier version.
  await client.query(`insert into state_index_due (stack_id, claim, claimed_until)
    select id, gen_random_uuid(), now() from stacks where name = 's2'`);
  await using folder = await MigrationFolder.create();
  for (const statement of (await readMigration(folder.pathOf('0064_due_again'))).statements)
    await client.query(statement);
  const { rows } =
    await client.query(`select s.name, i.version, i.known_from, i.is_ended, i.edition::int, d.is_backlog, d.is_noted_again
    from stacks s join state_indexes i on i.stack_id = s.id left join state_index_due d on d.stack_id = s.id
    where i.version is null or d.stack_id is not null order by s.name`);
  const outdated = {
    version: null,
    known_from: 1,
    is_ended: false,
    edition: 1,
    is_backlog: true,
    is_noted_again: false,
  };
  expect(rows).toEqual([
    { name: 's1', ...outdated },
    { name: 's2', ...outdated, known_from: null, is_backlog: false, is_noted_again: true },
    { name: 's3', ...outdated },
  ]);
});
