import { afterEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { createRateCounterRepository } from '../../src/shared/identity/rate-counter-repository.ts';
import { createJobAdmissionRepository } from '../../src/shared/jobs/job-admission-repository.ts';
import { createOutcomeRepository } from '../../src/shared/platform/outcomes/outcome-repository.ts';
import { createProcessRepository } from '../../src/shared/platform/processes/process-repository.ts';
import { createUpdateQueueRepository } from '../../src/shared/updates/update-queue-repository.ts';
import { deleteEndedSignIns } from '../../src/workers/identity/delete-sign-ins.ts';
import { deleteEndedTokens } from '../../src/workers/identity/delete-tokens.ts';
import { deleteAbandonedPacks } from '../../src/workers/policies/delete-packs.ts';
import { deleteEmptyProjects } from '../../src/workers/stacks/delete-projects.ts';
import { deleteOldCiStatistics } from '../../src/workers/statistics/delete-ci-statistics.ts';
import { deleteOldApprovals } from '../../src/workers/updates/delete-approvals.ts';
import { query } from '../support/database.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const { signal } = new AbortController();
const id = 'gen_random_uuid()';

interface Kept {
  readonly table: string;
  /** For how long, and what is older. */
  readonly kept: string;
  readonly old: string;
  /** The columns and values of a row whose time was at `$`. */
  readonly columns: string;
  readonly values: string;
  readonly sweep: () => Promise<unknown>;
}

const db = () => app.context.db;
const tables: readonly Kept[] = [
  {
    table: 'update_approvals',
    kept: '99 days',
    old: '101 days',
    columns: 'stack_id, kind, commit_id, asked_by, request, asked_at',
    values: `${id}, 'delete', ${id}::text, 'a', 'x', $`,
    sweep: () => deleteOldApprovals(app.context, signal),
  },
  {
    table: 'refused_runs',
    kept: '99 days',
    old: '101 days',
    columns: 'organization_id, stack_id, reason, message, refused_at',
    values: `${id}, ${id}, 'busy', '', $`,
    sweep: () => deleteOldCiStatistics(app.context, signal),
  },
  {
    table: 'stack_days',
    kept: '99 days',
    old: '102 days',
    columns:
      'organization_id, stack_id, day, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms, longest_ms',
    values: `${id}, ${id}, ($)::date, 1, 0, 0, 0, 0, 0, 0, 0, 0`,
    sweep: () => deleteOldCiStatistics(app.context, signal),
  },
  {
    table: 'project_days',
    kept: '99 days',
    old: '102 days',
    columns:
      'organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms, longest_ms',
    values: `${id}, ($)::date, 'p', 1, 0, 0, 0, 0, 0, 0, 0, 0`,
    sweep: () => deleteOldCiStatistics(app.context, signal),
  },
  {
    table: 'project_day_deliveries',
    kept: '99 days',
    old: '102 days',
    columns: 'organization_id, day, project_name, kind, seconds, count',
    values: `${id}, ($)::date, 'p', 'lead', 1, 1`,
    sweep: () => deleteOldCiStatistics(app.context, signal),
  },
  {
    table: 'sign_in_flows',
    kept: '-1 minute',
    old: '1 minute',
    columns: 'flow_hash, kind, data, expires_at',
    values: `decode(md5(${id}::text), 'hex'), 'provider', '{}', $`,
    sweep: () => deleteEndedSignIns(app.context),
  },
  {
    table: 'sign_in_attempts',
    kept: '-1 minute',
    old: '1 minute',
    columns: 'key, points, expire',
    values: `${id}::text, 1, (extract(epoch from $) * 1000)::bigint`,
    sweep: () => deleteEndedSignIns(app.context),
  },
  {
    table: 'sign_in_paces',
    kept: '110 minutes',
    old: '130 minutes',
    columns: 'login_hash, level, at, next_at',
    values: `${id}::text, 1, $, $`,
    sweep: () => deleteEndedSignIns(app.context),
  },
  {
    table: 'job_results',
    kept: '23 hours',
    old: '25 hours',
    columns: 'job_id, outcome, created_at',
    values: `${id}, '{}', $`,
    sweep: () => createOutcomeRepository(db()).deleteOlderThan(24 * 3600),
  },
  {
    table: 'job_admissions',
    kept: '59 minutes',
    old: '61 minutes',
    columns: 'id, job, expires_at',
    values: `${id}, '{}', $`,
    sweep: () => createJobAdmissionRepository(db()).deleteExpired(3600),
  },
  {
    table: 'failed_lookups',
    kept: '9 minutes',
    old: '11 minutes',
    columns: 'source, level, updated_at',
    values: `${id}::text, 1, $`,
    sweep: () => createRateCounterRepository(db(), 'failedLookups').deleteOlderThan(600),
  },
  {
    table: 'rate_counters',
    kept: '9 minutes',
    old: '11 minutes',
    columns: 'source, level, updated_at',
    values: `${id}::text, 1, $`,
    sweep: () => createRateCounterRepository(db(), 'requests').deleteOlderThan(600),
  },
  {
    table: 'processes',
    kept: '59 minutes',
    old: '61 minutes',
    columns: 'id, role, version, host, pid, started_at, seen_at, rss_bytes, cpu, loop_ms',
    values: `${id}, 'api', '1', 'h', 1, $, $, 1, 0, 0`,
    sweep: () => createProcessRepository(db()).removeGone(),
  },
  {
    table: 'processes',
    kept: '0 minutes',
    // The clock was set back.
    old: '-2 minutes',
    columns: 'id, role, version, host, pid, started_at, seen_at, rss_bytes, cpu, loop_ms',
    values: `${id}, 'api', '1', 'h', 1, $, $, 1, 0, 0`,
    sweep: () => createProcessRepository(db()).removeGone(),
  },
];

async function count(table: string): Promise<number> {
  return (await query(app, `select 1 from ${table}`)).length;
}

async function add({ columns, table, values }: Kept, age: string): Promise<void> {
  const at = `(now() - interval '${age}')`;
  await query(
    app,
    `set session_replication_role = replica; insert into ${table} (${columns}) values (${values.replaceAll('$', () => at)})`,
  );
}

afterEach(async () => {
  for (const { table } of tables) await query(app, `delete from ${table}`);
});

test.each(tables)('rows of $table are deleted after their time, and no earlier', async (kept) => {
  await query(app, `delete from ${kept.table}`);
  await add(kept, kept.old);
  await add(kept, kept.kept);
  await kept.sweep();
  expect(await count(kept.table)).toBe(1);
  await query(app, `delete from ${kept.table}`);
  await add(kept, kept.kept);
  await kept.sweep();
  expect(await count(kept.table)).toBe(1);
});
// The same for what is measured by organization. table: 'organization_storage'
test('rows of organization_storage are deleted after 400 days', async () => {
  const { id: organizationId } = await app.context.identity.ensureOrganization('measured');
  await query(
    app,
    `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes)
     select $1, (now() at time zone 'UTC')::date - days, 0, 0, 0 from unnest(array[399, 402]) days`,
    [organizationId],
  );
  const storage = createStorageRepository(db());
  await storage.measure(organizationId);
  await storage.deleteOld(organizationId);
  expect(
    await query(app, 'select 1 from organization_storage where organization_id = $1', [organizationId]),
  ).toHaveLength(2);
});

test('a valid approval is kept, regardless of when it was requested', async () => {
  const stack = await createStack(app);
  const { json } = await ok(
    app.call('POST', `${stack.path}/approvals`, { auth: stack.auth, body: { commit: 'a'.repeat(40), reason: 'x' } }),
  );
  await query(
    app,
    `update update_approvals set asked_at = now() - interval '200 days', approved_at = now(), approved_by = 'a', reason = 'r',
       expires_at = now() + interval '1 minute' where id = $1`,
    [json.id],
  );
  await deleteOldApprovals(app.context, signal);
  expect(await count('update_approvals')).toBe(1);
});

test('approvals are kept while their stack is under a legal hold', async () => {
  const stack = await createStack(app);
  const { auth, path } = stack;
  await ok(app.call('POST', `${path}/approvals`, { auth, body: { commit: 'a'.repeat(40), reason: 'x' } }));
  await query(app, `update update_approvals set asked_at = now() - interval '101 days'`);
  await ok(app.call('PUT', `${path}/legal-hold`, { auth, body: { reason: 'Case 7' } }));
  await deleteOldApprovals(app.context, signal);
  expect(await count('update_approvals')).toBe(1);
  await ok(app.call('DELETE', `${path}/legal-hold`, { auth }));
  await deleteOldApprovals(app.context, signal);
  expect(await count('update_approvals')).toBe(0);
});

test('tokens are deleted long after their end, and not those that a file would bring back', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `with o as (select id from organizations where name = $1), u as (select user_id as id from memberships m join o on o.id = m.organization_id limit 1),
     ages as (select * from (values ('old', 31), ('kept', 29), ('older', 401), ('younger', 399)) a (name, days)),
     personal as (
       insert into api_tokens (kind, user_id, token_hash, name, revoked_at, listed_in)
       select 'personal', u.id, decode(md5(name || l.listed || 'p'), 'hex'), name || l.listed, now() - make_interval(days => days),
         case when l.listed then o.id end
       from ages, u, o, (values (false), (true)) l (listed))
     insert into api_tokens (kind, organization_id, role, token_hash, name, expires_at)
     select 'organization', o.id, 'member', decode(md5(name || 'o'), 'hex'), name, now() - make_interval(days => days) from ages, o`,
    [stack.organization],
  );
  await deleteEndedTokens(app.context, signal);
  const left = await query<{ kind: string; name: string }>(
    app,
    'select kind, name from api_tokens where name is not null order by kind, name',
  );
  expect(left.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'organization kept',
    'organization old',
    'organization younger',
    'personal keptfalse',
    'personal kepttrue',
    'personal oldertrue',
    'personal oldtrue',
    'personal youngertrue',
  ]);
  expect((await app.call('GET', '/api/user', { auth: stack.auth })).status).toBe(200);
});

test('projects without stacks are deleted, and others are not', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `insert into projects (organization_id, name) select o.id, 'empty' from organizations o where o.name = $1`,
    [stack.organization],
  );
  const sweep = async (): Promise<unknown[]> => {
    await deleteEmptyProjects(app.context, signal);
    const left = await query(
      app,
      'select p.name, may_be_empty as marked from projects p join organizations o on o.id = p.organization_id where o.name = $1',
      [stack.organization],
    );
    return left;
  };
  expect(await sweep()).toEqual([{ name: 'proj', marked: false }]);
  await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newProject: 'next' } }));
  expect(await sweep()).toEqual([{ name: 'next', marked: false }]);
});

test('a project whose last stack is deleted while the sweep looks at it is deleted by the next one', async () => {
  const stack = await createStack(app);
  const { organization } = stack;
  const ownStack = `project_id in (select p.id from projects p join organizations o on o.id = p.organization_id where o.name = '${organization}')`;
  await query(app, `update stacks set deleted_at = now() where ${ownStack}`);
  await using client = Object.assign(new pg.Client({ connectionString: app.database.url }), {
    [Symbol.asyncDispose]: () => client.end(),
  });
  await client.connect();
  // The mark is there: the deletion takes the lock of the project nevertheless.
  await client.query('begin');
  await client.query(`delete from stacks where ${ownStack}`);
  await deleteEmptyProjects(app.context, signal);
  await client.query('commit');
  const left = () =>
    query(app, `select 1 from projects p join organizations o on o.id = p.organization_id where o.name = $1`, [
      organization,
    ]);
  expect(await left()).toHaveLength(1);
  await deleteEmptyProjects(app.context, signal);
  expect(await left()).toEqual([]);
});

test('stacks are created in projects that are being deleted, and projects of new stacks stay', async () => {
  const auth = `token ${await app.createUser('busy', 'admin')}`;
  for (let round = 0; round < 20; round++) {
    const project = `p${round}`;
    await query(
      app,
      `insert into projects (organization_id, name) select id, $1 from organizations where name = 'busy'`,
      [project],
    );
    await Promise.all([
      ok(app.call('POST', `/api/stacks/busy/${project}`, { auth, body: { stackName: 'dev' } })),
      deleteEmptyProjects(app.context, signal),
    ]);
  }
  await deleteEmptyProjects(app.context, signal);
  const left = await query(app, `select 1 from projects where name ~ '^p[0-9]+$'`);
  expect(left).toHaveLength(20);
});

test('lost entries of a queue are deleted even if no call waits any more', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `with gone as (insert into update_queue_processes (id, alive_until) values (gen_random_uuid(), now() - interval '1 minute') returning id),
     alive as (insert into update_queue_processes (id, alive_until) values (gen_random_uuid(), now() + interval '10 minutes') returning id),
     places as (
       select id as process_id, now() as kept_until from gone union all select id, now() from alive
       union all select null, now() - interval '1 second' union all select null, now() + interval '10 minutes')
     insert into update_queue_waiters (stack_id, token_id, process_id, kept_until)
     select s.id, t.id, p.process_id, p.kept_until from places p, stacks s join projects j on j.id = s.project_id
       join organizations o on o.id = j.organization_id join memberships m on m.organization_id = o.id
       join api_tokens t on t.user_id = m.user_id
     where o.name = $1`,
    [stack.organization],
  );
  expect(await count('update_queue_waiters')).toBe(4);
  await createUpdateQueueRepository(app.context.db).removeGone();
  expect(await count('update_queue_waiters')).toBe(2);
  expect(await count('update_queue_processes')).toBe(1);
});

test('policy packs that were never published are deleted, and what was published or has just begun is not', async () => {
  const { id: organizationId } = await app.context.identity.ensureOrganization('packs');
  await query(
    app,
    `with p as (
       insert into policy_packs (organization_id, name, last_version)
       select $1, name, 1 from unnest(array['abandoned', 'begun', 'published', 'removed']) name returning id, name)
     insert into policy_pack_versions (pack_id, version, version_tag, display_name, description, begun_at, published_at, removed_at,
       sha256, size_bytes, stored_bytes, codec, inline_bytes)
     select id, v, v::text, '', '{}', now() - case when name = 'begun' then interval '1 hour' else interval '2 days' end,
       case when v = 1 and name in ('published', 'removed') then now() - interval '2 days' end,
       case when v = 1 and name = 'removed' then now() end, f.sha256, f.size_bytes, f.size_bytes, f.codec, f.sha256
     from p cross join generate_series(1, 2) v
     left join (select '\\x00'::bytea, 1, 'gzip') f (sha256, size_bytes, codec) on v = 1 and name = 'published'`,
    [organizationId],
  );
  await deleteAbandonedPacks(app.context, signal);
  const left = await query<{ name: string; version: number }>(
    app,
    'select p.name, v.version from policy_packs p left join policy_pack_versions v on v.pack_id = p.id order by 1, 2',
  );
  expect(left.map(({ name, version }) => `${name} ${version}`)).toEqual([
    'begun 1',
    'begun 2',
    'published 1',
    'removed 1',
  ]);
});
