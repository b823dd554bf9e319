import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { assertMigrated, migrate, migrateIfPending } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { addAuditPartitions, dropOldAudit } from '../../src/workers/audit/audit-retention.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { appRole, asApp } from '../support/global-setup.ts';
import { createStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

// Every app of these tests runs as a user that owns nothing. What only the owner may do is shown here.
let client: pg.Client;
// Before the app's own, which drops the database.
afterAll(() => client.end());
const app = testApp({ settings: { HOLDFAST_AUDIT_RETENTION_DAYS: '40' } });
const logger = createLogger({ level: 'silent' });
const start = (url: string) => ({ url, connectMs: 30_000, waitMs: 0, logger });
beforeAll(async () => {
  client = new pg.Client({ connectionString: app.database.url });
  await client.connect();
});

test('the server runs as the user that owns nothing', async () => {
  const users = await query<{ usename: string }>(
    app,
    `select distinct usename from pg_stat_activity where datname = current_database() and application_name like 'holdfast%'`,
  );
  expect(users).toEqual([{ usename: appRole }]);
  const owned = await query(app, `select relname from pg_class where relowner = '${appRole}'::regrole`);
  expect(owned).toEqual([]);
});

test('the audit log is chained, months are added, and old ones dropped', async () => {
  await createStack(app);
  await chainAll(app);
  const lastMonth = `to_char(now() at time zone 'UTC' + interval '3 months', 'YYYY_MM')`;
  const [months] = await query<{ last: string }>(app, `select 'audit_events_' || ${lastMonth} as last`);
  await query(app, `drop table ${months?.last}`);
  expect(await addAuditPartitions(app.context)).toBe(1);
  const old = `date_trunc('month', now() at time zone 'UTC' - interval '3 months')::date`;
  await query(app, `select add_audit_partition(${old})`);
  await query(
    app,
    `insert into audit_events select (e).* from (select jsonb_populate_record(a, jsonb_build_object('number', next_audit_number(),
      'occurred_at', ${old} + interval '1 day')) as e from audit_events a limit 1) as copied`,
  );
  await expect(client.query(`select drop_audit_months(${old} + interval '1 month')`)).rejects.toThrow();
  await expect(client.query(`select drop_audit_months((${old} + interval '1 month')::date)`)).rejects.toThrow(
    'not chained',
  );
  await chainAll(app);
  expect(await dropOldAudit(app.context)).toBe(1);
});

test('a server that may migrate as its user starts while nothing is pending, and then names the command of the owner', async () => {
  await migrateIfPending(start(app.database.url));
  const newest = 'id = (select max(id) from holdfast_migrations)';
  const [last] = await query<{ name: string }>(app, `select name from holdfast_migrations where ${newest}`);
  await query(app, `update holdfast_migrations set name = 'another' where ${newest}`);
  await expect(migrateIfPending(start(app.database.url))).rejects.toThrow(
    `The database lacks 1 migration(s): ${last?.name}. The database user "${appRole}" does not own the tables: as their owner, run \`holdfast migrate --app-role ${appRole}\`.`,
  );
  await query(app, `update holdfast_migrations set name = '${last?.name}' where ${newest}`);
});

test.each([
  'create table mine (id int)',
  'drop table stacks',
  'alter table stacks add column mine int',
  'truncate stacks',
  `select drop_audit_months('9999-01-01')`,
  `select drop_audit_months((date_trunc('month', now()) + interval '1 month')::date)`,
  `select add_audit_partition('2999-01-01')`,
  `select add_audit_partition(current_date - extract(day from current_date)::int + 2)`,
])('it may not: %s', async (statement) => {
  await expect(client.query(statement)).rejects.toThrow(/permission denied|must be owner|not the first day/);
});

test('functions of the owner are not for all users, and have a search path of their own', async () => {
  const definers = await query<{ name: string; open: boolean; path: string | null }>(
    app,
    `select proname as name, has_function_privilege('public', oid, 'execute') as open, array_to_string(proconfig, ';') as path
     from pg_proc where prosecdef and pronamespace = 'public'::regnamespace order by 1`,
  );
  const path = 'search_path=pg_catalog, public, pg_temp';
  expect(definers).toEqual([
    { name: 'add_audit_partition', open: false, path },
    { name: 'drop_audit_months', open: false, path },
  ]);
});

test('a server without the rights names the command that grants them; a role that does not exist is granted nothing', async () => {
  await query(app, `revoke update on stacks from ${appRole}`);
  await expect(assertMigrated(start(app.database.url))).rejects.toThrow(
    `The database user "${appRole}" lacks rights (stacks). As the owner of the tables, run \`holdfast migrate --app-role ${appRole}\`.`,
  );
  expect(await migrate(start(app.database.ownerUrl), { appRole })).toEqual([]);
  await assertMigrated(start(app.database.url));
  await expect(migrate(start(app.database.ownerUrl), { appRole: 'nobody' })).rejects.toThrow('create role "nobody"');
});

test('what later migrations add is granted, too', async () => {
  await query(app, 'create table later (id bigserial)');
  await query(app, `create function later_one() returns int language sql security definer as 'select 1'`);
  await query(app, 'revoke execute on function later_one from public');
  await assertMigrated(start(app.database.url));
  await using other = Object.assign(new pg.Client({ connectionString: asApp(app.database.ownerUrl) }), {
    [Symbol.asyncDispose]: () => other.end(),
  });
  await other.connect();
  await other.query('insert into later default values');
  await other.query('select later_one()');
});
