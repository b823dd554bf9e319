import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { withDatabase } from '../support/global-setup.ts';
import { readMigration } from '../support/migration-file.ts';
import { createTestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const logger = createLogger({ level: 'silent' });

async function connect(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

test('two processes that migrate an empty database at once apply each migration once', async () => {
  const server = process.env['HOLDFAST_TEST_DATABASE_URL'] as string;
  await using admin = await connect(server);
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await admin.query(`create database ${name}`);
  try {
    const start = { url: withDatabase(server, name), connectMs: 30_000, waitMs: 0, logger };
    const [one, other] = await Promise.all([migrate(start), migrate(start)]);
    await using client = await connect(start.url);
    const { rows } = await client.query<{ name: string }>('select name from holdfast_migrations');
    expect([...one, ...other].toSorted()).toEqual(rows.map((row) => row.name).toSorted());
    expect(Math.min(one.length, other.length)).toBe(0);
    const invalid = await client.query('select 1 from pg_index where not indisvalid');
    expect(invalid.rows).toEqual([]);
    // One that is created shortly before a power failure can keep Postgres from starting.
    const unlogged = await client.query(`select relname from pg_class where relpersistence = 'u'`);
    expect(unlogged.rows).toEqual([]);
  } finally {
    await admin.query(`drop database ${name} with (force)`);
  }
});

test('a migration with a transaction is sent as one text', async () => {
  expect(await readMigration('0012_job_admissions')).toMatchObject({
    hasTransaction: true,
    statements: [expect.any(String)],
  });
});

test('new indexes on updates hold up no writer, and are created again after a failure halfway', async () => {
  await using database = await createTestDatabase();
  await using migrating = await connect(database.ownerUrl);
  await using busy = await connect(database.ownerUrl);
  await using writer = await connect(database.ownerUrl);
  await writer.query(`with o as (insert into organizations (name) values ('o') returning id),
    p as (insert into projects (organization_id, name) select id, 'p' from o returning id),
    s as (insert into stacks (project_id, name) select id, 's' from p returning id)
    insert into updates (stack_id, kind, exclusive, status, expires_at) select id, 'update', true, 'succeeded', now() from s`);
  // As a run that ended halfway leaves it.
  await writer.query(`update pg_index set indisvalid = false where indexrelid = 'updates_previews'::regclass`);
  await writer.query('drop index updates_lost');
  const { statements, hasTransaction } = await readMigration('0017_update_indexes');
  expect(hasTransaction).toBe(false);
  await writer.query(`set statement_timeout = '10s'`);
  for (const statement of statements) {
    if (!statement.includes('create index')) {
      await migrating.query(statement);
      continue;
    }
    await busy.query('begin');
    await busy.query(`update updates set message = 'busy'`);
    const running = migrating.query(statement);
    await until(async () => {
      const { rows } = await busy.query(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return rows.length > 0;
    }, 'the new index waits for the open transaction');
    await writer.query(`insert into updates (stack_id, kind, exclusive, status, expires_at)
      select id, 'update', false, 'succeeded', now() from stacks`);
    await busy.query('commit');
    await running;
  }
  const { rows } = await writer.query(
    `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
     where c.relname in ('updates_previews', 'updates_lost') and i.indisvalid order by 1`,
  );
  expect(rows).toEqual([{ name: 'updates_lost' }, { name: 'updates_previews' }]);
});

test('journals of ended updates and active updates from before are found, also when the migration is run again', async () => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await client.query(`with o as (insert into organizations (name) values ('o') returning id),
    p as (insert into projects (organization_id, name) select id, 'p' from o returning id)
    insert into stacks (project_id, name) select id, 's' || n from p, generate_series(1, 700) n`);
  await client.query('set session_replication_role = replica');
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
    select id, 'update', true, case when name like '%0' then 'failed' else 'running' end, now(), case when name like '%0' then now() end
    from stacks`);
  await client.query('insert into journals (update_id, stack_id) select id, stack_id from updates');
  await client.query('set session_replication_role = origin');
  const { statements, hasTransaction } = await readMigration('0019_active_indexes');
  expect(hasTransaction).toBe(false);
  for (const statement of [...statements, ...statements]) await client.query(statement);

  const counts = async () =>
    (
      await client.query(`select
        count(*) filter (where u.status = 'failed' and j.ended_at = u.ended_at)::int as ended,
        count(*) filter (where u.status = 'running' and j.ended_at is null and u.organization_id = o.id)::int as running
        from journals j join updates u on u.id = j.update_id, organizations o`)
    ).rows[0];
  expect(await counts()).toEqual({ ended: 70, running: 630 });
  // As the previous release ends and creates updates.
  await client.query(`update updates set status = 'failed', ended_at = now() where id in (
    select id from updates where status = 'running' limit 30)`);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at)
    select stack_id, 'preview', false, 'running', now() from updates where status = 'failed'`);
  await client.query(
    `insert into journals (update_id, stack_id) select id, stack_id from updates where kind = 'preview'`,
  );
  expect(await counts()).toEqual({ ended: 100, running: 700 });
});

test.each([
  ['0016_stack_listings', 'stack_listings'],
  ['0053_stack_changes', 'stack_changes'],
])('the batches of %s that are killed halfway are completed by the next run', async (name, table) => {
  await using database = await createTestDatabase();
  await using client = await connect(database.ownerUrl);
  await using busy = await connect(database.ownerUrl);
  await client.query(`with o as (insert into organizations (name) values ('o') returning id),
    p as (insert into projects (organization_id, name) select id, 'p' from o returning id)
    insert into stacks (project_id, name) select id, 's' || n from p, generate_series(1, 1200) n`);
  const rows = async () => (await client.query(`select stack_id from ${table} order by stack_id`)).rows;
  const whole = await rows();
  await client.query(`delete from ${table}`);
  const batches = (await readMigration(name)).statements.find((statement) => statement.includes('limit 500 for share'));
  await busy.query('begin');
  await busy.query('select from stacks order by id desc limit 1 for update');
  const killed = new pg.Client({ connectionString: database.ownerUrl });
  killed.on('error', () => {});
  await killed.connect();
  const running = killed.query(batches as string).catch((error: unknown) => error);
  await until(async () => (await rows()).length >= 1_000, 'two batches are committed');
  await busy.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  expect(await running).toMatchObject({ code: '57P01' });
  await busy.query('rollback');
  expect(await rows()).toHaveLength(1_000);
  await client.query(batches as string);
  expect(await rows()).toEqual(whole);
});
