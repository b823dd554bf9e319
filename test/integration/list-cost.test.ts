import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createPolicyGroupRepository } from '../../src/api/policies/policy-group-repository.ts';
import { createReferenceRepository } from '../../src/api/search/reference-repository.ts';
import { createResourceRepository } from '../../src/api/search/resource-repository.ts';
import { createAttentionRepository } from '../../src/api/stacks/attention-repository.ts';
import { createStackQueryRepository, type OverviewFilter } from '../../src/api/stacks/stack-query-repository.ts';
import { createCiQueryRepository } from '../../src/api/statistics/ci-query-repository.ts';
import { createProjectDeliveryRepository } from '../../src/api/statistics/project-delivery-repository.ts';
import {
  type ApprovalFilter,
  createApprovalQueryRepository,
} from '../../src/api/updates/approvals/approval-query-repository.ts';
import { createUpdateQueryRepository } from '../../src/api/updates/update-query-repository.ts';
import { createGrantRepository, type GrantCursor } from '../../src/shared/access/grant-repository.ts';
import { createKeptBytesRepository } from '../../src/shared/access/quotas/kept-bytes-repository.ts';
import { createDriftRepository } from '../../src/shared/drift/drift-repository.ts';
import { createIdentityRepository } from '../../src/shared/identity/identity-repository.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import {
  createStackListRepository,
  type ListedOrganization,
  type StackFilter,
} from '../../src/shared/stacks/stack-list-repository.ts';
import { createApprovalRepository } from '../../src/shared/updates/approvals/approval-repository.ts';
import { createHistoryRepository } from '../../src/shared/updates/history-repository.ts';
import { createUpdateRepository } from '../../src/shared/updates/update-repository.ts';
import { createEmptyProjectRepository } from '../../src/workers/stacks/empty-project-repository.ts';
import { createProjectDayRepository } from '../../src/workers/statistics/project-day-repository.ts';
import { explainingPool } from '../../testkit/query-plan.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
let deepStack: string;
let previewedStack: string;
const organizations: { id: string; name: string; facts: string | null }[] = [];

/** Ten organizations with 600 stacks each, one stack with 4,000 updates, and 2,000 running updates. */
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`insert into organizations (name) select 'org-' || n from generate_series(1, 10) n`);
  await client.query(`insert into projects (organization_id, name)
    select id, 'project-' || lpad(n::text, 2, '0') from organizations, generate_series(1, 30) n`);
  await client.query(`insert into stacks (project_id, name, tags)
    select id, 'stack-' || lpad(n::text, 2, '0'), json_build_object('common', 'yes', 'team', 'team-' || n % 10,
      case when n = 1 and name = 'project-07' then 'rare' else 'other' end, 'x')::text
    from projects, generate_series(1, 20) n`);
  await client.query('set session_replication_role = replica');
  await client.query(`with written as (
      insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
      select id, '', 1, 1, 'zstd', 0, '' from stacks returning id, stack_id)
    update stacks s set checkpoint_id = w.id from written w where w.stack_id = s.id`);
  await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at)
    select id, 'update', true, 'running', now() + interval '1 minute' from stacks order by id limit 2000`);
  const [row, previewed] = (await client.query<{ id: string }>(`select id from stacks order by id desc limit 2`)).rows;
  deepStack = row?.id as string;
  previewedStack = previewed?.id as string;
  await client.query(
    `insert into updates (stack_id, kind, dry_run, exclusive, status, expires_at, checkpoint_id, environment)
     select s.id, case when n % 1000 = 0 then 'preview' else 'update' end, n % 1000 = 0, true, 'succeeded', now(), s.checkpoint_id, repeat('x', 1500)
     from stacks s, generate_series(1, 4000) n where s.id = $1`,
    [deepStack],
  );
  await client.query(
    `insert into updates (stack_id, kind, dry_run, exclusive, status, expires_at, environment)
     select $1, 'preview', true, false, 'succeeded', now(), repeat('x', 1500) from generate_series(1, 3000)`,
    [previewedStack],
  );
  await client.query('set session_replication_role = origin');
  await analyzeExactly(client);
  organizations.push(
    ...(
      await client.query<(typeof organizations)[number]>(
        'select id, name, null as facts from organizations order by name',
      )
    ).rows,
  );
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

describe('a page of stacks reads what it returns', () => {
  const later = { organization: 'org-1', project: 'project-15', stack: 'stack-10' };
  const cases: [string, Partial<StackFilter> & { only?: number }, number][] = [
    ['of one organization', { only: 1 }, 101],
    ['of all organizations', {}, 101],
    ['a later page', { after: later }, 101],
    ['the last page of an organization and the first of the next', { after: { ...later, project: 'project-30' } }, 101],
    ['of a project', { only: 1, project: 'project-20' }, 20],
    ['of a project in all organizations', { project: 'project-20' }, 101],
    ['a later page of a project', { only: 1, project: 'project-15', after: later }, 10],
    ['with a tag that all have', { only: 1, tagName: 'common' }, 101],
    ['a later page with a tag that all have', { tagName: 'common', after: later }, 101],
    ['with the value of a tag', { only: 1, tagName: 'team', tagValue: 'team-3' }, 60],
    ['a later page with the value of a tag', { tagName: 'team', tagValue: 'team-3', after: later }, 101],
    ['with a tag that few have', { tagName: 'rare' }, 10],
    ['with a tag that none has', { tagName: 'none' }, 0],
    ['with a value that none has', { tagName: 'common', tagValue: 'no' }, 0],
  ];
  const pageOf = ({ only, ...filter }: (typeof cases)[number][1]) =>
    planOf(client, (db) =>
      createStackListRepository(db).list({
        organizations: organizations.slice(0, only),
        project: null,
        tagName: null,
        tagValue: null,
        after: null,
        unstarted: false,
        limit: 101,
        maxBytes: 1e9,
        ...filter,
      }),
    );

  test.each(cases)('%s', async (_, filter, returned) => {
    const plan = await pageOf(filter);
    expect(plan.returned).toBe(returned);
    // Its listing and the stack; and some listings of the next organization.
    expect(plan.read).toBeLessThanOrEqual(3 * returned);
    // Of the stack: two or three of the index, and its own. One search in the index for each organization.
    expect(plan.pages).toBeLessThanOrEqual(4 * returned + 4 * organizations.length);
  });

  test('with the last updates that never started', async () => {
    const plan = await pageOf({ unstarted: true });
    expect(plan.returned).toBe(101);
    expect(plan.read).toBeLessThanOrEqual(4 * plan.returned);
    // Also two or three of the index of updates, and the update's own.
    expect(plan.pages).toBeLessThanOrEqual(8 * plan.returned + 4 * organizations.length);
  });
});

const allStacks = {
  words: [],
  owner: null,
  updated: null,
  project: null,
  tag: null,
  isTagCommon: false,
  status: null,
  frozenBy: null,
  before: null,
  limit: 51,
};

describe('a page of the dashboard reads what it returns', () => {
  const later = async () => {
    const { rows } = await client.query<NonNullable<OverviewFilter['before']>>(
      `select (extract(epoch from changed_at) * 1000000)::bigint::text as "changedAt", stack_id as id from stack_changes
       where organization_id = $1 order by changed_at desc, stack_id desc offset 400 limit 1`,
      [organizations[0]?.id],
    );
    return { before: rows[0] ?? null };
  };
  /** How many rows of an organization are read: all that the condition finds have to be put in order. */
  const cases: [string, () => Partial<OverviewFilter> | Promise<Partial<OverviewFilter>>, number, number][] = [
    ['of one organization', () => ({}), 51, 51],
    ['of all organizations', () => ({ organizations }), 51, 10 * 51],
    ['a later page', later, 51, 51],
    ['of a project', () => ({ project: 'project-20' }), 20, 2 * 20],
    ['with a tag that few have', () => ({ organizations, tag: { name: 'rare', value: null } }), 10, 2 * 10],
    ['with the value of a tag', () => ({ tag: { name: 'team', value: 'team-3' } }), 51, 2 * 60],
    [
      'with a tag that all have',
      () => ({ organizations, tag: { name: 'common', value: null }, isTagCommon: true }),
      51,
      10 * 2 * 51,
    ],
    [
      'with a value that many have',
      () => ({ tag: { name: 'team', value: 'team-3' }, isTagCommon: true }),
      51,
      // A tenth of the stacks has it.
      600 + 51,
    ],
    ['with a text that few have', () => ({ words: ['project-07/stack-01'] }), 1, 600],
    ['of those that run', () => ({ status: 'running' }), 0, 0],
  ];

  test.each(cases)('%s', async (_, filter, returned, found) => {
    const chosen = { ...allStacks, organizations: organizations.slice(0, 1), ...(await filter()) };
    const plan = await planOf(client, (db) => createStackQueryRepository(db).list(chosen));
    expect(plan.returned).toBe(returned);
    // The stack, its checkpoint and its last update.
    expect(plan.read).toBeLessThanOrEqual(found + 5 * returned);
    expect(plan.pages).toBeLessThanOrEqual(25 * returned + 2 * found + 4 * organizations.length);
  });
});

describe('a page of the history reads what it returns', () => {
  const page = { limit: 50, maxBytes: 1e9, wholeBytes: 1e9 };

  test.each([
    ['the first', { before: null, offset: 0 }],
    ['one in the middle', { before: null, offset: 2_000 }],
    ['the continuation of a long answer', { before: 5_000, offset: 0 }],
  ])('%s', async (_, position) => {
    const plan = await planOf(client, (db) =>
      createHistoryRepository(db).list(deepStack, { ...position, shown: 'updates' }, page),
    );
    expect(plan.returned).toBe(50);
    // Rows that a page number skips are counted in the index: many to a page of it.
    expect(plan.read - position.offset).toBeLessThanOrEqual(3 * 50);
    expect(plan.pages).toBeLessThanOrEqual(4 * 50 + position.offset / 50);
  });

  test('the latest previews of a stack with many other updates', async () => {
    const plan = await planOf(client, (db) =>
      createHistoryRepository(db).listPreviewIds(deepStack, { limit: 3, offset: 0 }),
    );
    expect(plan).toMatchObject({ returned: 3, read: 3 });
  });

  test('a later page of the latest previews', async () => {
    const plan = await planOf(client, (db) =>
      createHistoryRepository(db).listPreviewIds(previewedStack, { limit: 50, offset: 2_000 }),
    );
    expect(plan.returned).toBe(50);
    expect(plan.pages).toBeLessThanOrEqual(4 * 50 + 2_000 / 50);
  });

  test('an update that has waited looks for the ones before it among the newest', async () => {
    const last = '(select id from updates where stack_id = $1 and not dry_run order by number desc limit 1)';
    const { rows } = await client.query<{ id: string }>(
      `update updates set waited_ms = 1000 where id = ${last} returning id`,
      [deepStack],
    );
    const { id } = rows[0] as { id: string };
    const plan = await planOf(client, (db) => createUpdateQueryRepository(db).find(deepStack, { id }));
    await client.query('update updates set waited_ms = null where id = $1', [id]);
    expect(plan.returned).toBe(1);
    expect(plan.read).toBeLessThanOrEqual(600);
  });
});

test('a page of resources does not read all children of their parent', async () => {
  await client.query('set session_replication_role = replica');
  await client.query('insert into state_indexes (stack_id, version) values ($1, 1)', [deepStack]);
  await client.query(
    `insert into stack_resources (stack_id, key, digest, urn, type, name, place, parent, dependencies, is_custom, is_external,
       is_protected, deletes_first, is_deleted)
     select $1, 'key-' || n, '', 'urn-' || n, 'a:b:C', 'name', 'place-' || lpad(n::text, 6, '0'), case when n > 0 then 'key-0' end,
       '{}', true, false, false, false, false from generate_series(0, 20000) n`,
    [deepStack],
  );
  await client.query('set session_replication_role = origin');
  await analyzeExactly(client, 'stack_resources');
  const all = { text: null, type: null, within: null };
  const plan = await planOf(client, (db) => createResourceRepository(db).list(deepStack, all, null, 51));
  expect(plan.returned).toBe(51);
  // Each with its parent and provider, and a hundred children of the first one.
  expect(plan.read).toBeLessThanOrEqual(3 * 51 + 100);
});

test('the holder of a token is found among many, without grants that do not concern them', async () => {
  await client.query(`with u as (insert into users (login) select 'user-' || n from generate_series(1, 2000) n returning id, login),
      m as (insert into memberships (organization_id, user_id, role) select o.id, u.id, 'viewer' from organizations o, u
        where o.name in ('org-1', 'org-2', 'org-3')),
      g as (insert into grants (organization_id, effect, permissions, stack_pattern, user_id)
        select o.id, 'allow', 1, 'stack-0*', u.id from organizations o, u, generate_series(1, 4)
        where o.name = 'org-1' or o.name = 'org-3' and u.login = 'user-1')
    insert into api_tokens (user_id, token_hash) select id, sha256(login::bytea) from u`);
  await analyzeExactly(client, 'users', 'memberships', 'grants', 'api_tokens');
  const hash = createHash('sha256').update('user-77').digest();
  const find = (organization: string) =>
    planOf(client, (db) =>
      createIdentityRepository(db).findCaller(hash, { organization, project: 'project-07', stack: 'stack-03' }),
    );
  // The first call of a function in a session reads the catalog.
  await find('org-1');
  const [withGrants, withRoles, withFewGrants] = [await find('org-1'), await find('org-2'), await find('org-3')];
  for (const plan of [withGrants, withRoles, withFewGrants]) {
    expect(plan.returned).toBe(1);
    expect(plan.read).toBeLessThanOrEqual(20);
  }
  // Both call the function that collects the grants, which is planned each time: the planner looks at a page of every empty index of its
  // tables. All grants of the organization have more than a hundred pages.
  expect(withFewGrants.pages).toBeGreaterThan(withRoles.pages);
  expect(withGrants.pages - withFewGrants.pages).toBeLessThanOrEqual(20);
});

test('pages of grants are read without the others', async () => {
  const [organization] = (await client.query<{ id: string }>(`select id from organizations where name = 'org-1'`)).rows;
  const page = (after: GrantCursor | null) =>
    planOf(client, (db) =>
      createGrantRepository(db).listPage(organization?.id as string, { subject: null, after, limit: 50 }),
    );
  const { rows } = await client.query<GrantCursor>(
    `select id, (extract(epoch from created_at) * 1000000)::float8 as micros from grants order by created_at, id offset 5000 limit 1`,
  );
  for (const after of [null, rows[0] as GrantCursor]) {
    const plan = await page(after);
    expect(plan.returned).toBe(50);
    // With the user of each.
    expect(plan.read).toBeLessThanOrEqual(110);
  }
});

describe('a sweep reads no update whose lease is alive', () => {
  test.each<[string, (updates: ReturnType<typeof createUpdateRepository>) => Promise<unknown>]>([
    ['expired updates', (updates) => updates.listExpired(100, [])],
    ['updates that lost their lease', (updates) => updates.listLost(100)],
    ['leases that are too long', (updates) => updates.clipLeases(3600)],
    ['the too long lease of a stack', (updates) => updates.clipLeases(3600, deepStack)],
  ])('%s', async (_, work) => {
    const plan = await planOf(client, (db) => work(createUpdateRepository(db)));
    expect(plan.read).toBe(0);
    expect(plan.pages).toBeLessThanOrEqual(5);
  });
});

describe('a page of approvals reads what it returns', () => {
  const first = { project: null, stack: null, isGiven: null, before: null, limit: 51 };
  const busy = { project: 'project-01', stack: 'stack-01' };

  /** 100,000 approvals of one organization, half of them of one stack; few of them are not given. */
  beforeAll(async () => {
    await client.query(`insert into update_approvals (stack_id, kind, commit_id, asked_at, asked_by, request, approved_at, approved_by, reason, expires_at)
      select s.id, 'update', n::text, now() - n * interval '1 minute', 'ada', '', g.at, g.by, g.by, g.at
      from generate_series(1, 100000) n
      cross join lateral (select case when n % 1000 <> 0 then now() end as at, case when n % 1000 <> 0 then 'ben' end as by) g
      join (select l.stack_id as id, row_number() over (order by l.project_name, l.stack_name) as at
            from stack_listings l where l.organization_id = '${organizations[0]?.id}' and l.tag_name = '') s
        on s.at = case when n % 2 = 0 then 1 else 1 + n % 600 end`);
    // By all rows: with an estimate from few, Postgres may as well sort what is left of those that are not given.
    await client.query('alter table update_approvals set (autovacuum_enabled = off)');
    await analyzeExactly(client, 'update_approvals');
  });

  const later = async () => {
    const { rows } = await client.query<NonNullable<ApprovalFilter['before']>>(
      `select (extract(epoch from asked_at) * 1000000)::bigint::text as "askedMicros", id from update_approvals
       order by asked_at desc, id desc offset 10000 limit 1`,
    );
    return { before: rows[0] ?? null };
  };
  const cases: [string, () => Partial<ApprovalFilter> | Promise<Partial<ApprovalFilter>>, number][] = [
    ['of an organization', () => ({}), 51],
    ['a later page', later, 51],
    ['of those that were given', () => ({ isGiven: true }), 51],
    ['of those that were not', () => ({ isGiven: false }), 51],
    ['of a number of those that were not', () => ({ isGiven: false, maxScanned: 5_000 }), 51],
    ['of a stack with many', () => busy, 51],
    ['of those of a stack that were not given', () => ({ ...busy, isGiven: false }), 51],
    ['of a stack without any', () => ({ project: 'project-01', stack: 'none' }), 0],
  ];

  const viewer = { tokenId: null, userId: null };
  test.each(cases)('%s', async (_, filter, returned) => {
    const chosen = { ...first, ...(await filter()) };
    const plan = await planOf(client, (db) =>
      createApprovalQueryRepository(db).list(organizations[0] as (typeof organizations)[number], chosen, viewer),
    );
    expect(plan.returned).toBe(returned);
    // The approval, its stack and project; and as many that are given or not, where both are shown.
    expect(plan.read).toBeLessThanOrEqual(6 * returned + 4);
    expect(plan.pages).toBeLessThanOrEqual(16 * returned + 16);
  });

  test('the last ones of a stack, as the REST API lists them', async () => {
    const { rows } = await client.query<{ id: string }>(
      `select stack_id as id from update_approvals group by 1 order by count(*) desc limit 1`,
    );
    const plan = await planOf(client, (db) => createApprovalRepository(db).list(rows[0]?.id as string, 100));
    expect(plan.returned).toBe(100);
    expect(plan.read).toBeLessThanOrEqual(2 * 100);
  });
});

describe('stacks are counted in an index alone', () => {
  test('those of each organization, up to a number', async () => {
    const { rows } = await client.query<{
      id: string;
    }>(`with u as (insert into users (login) values ('counting') returning id),
        m as (insert into memberships (organization_id, user_id, role) select o.id, u.id, 'viewer' from organizations o, u)
      insert into api_tokens (user_id, token_hash) select id, sha256('counting') from u returning id`);
    const token = rows[0]?.id as string;
    const plan = await planOf(client, (db) => createStackQueryRepository(db).listOrganizations(token, 101));
    expect(plan.returned).toBe(10);
    // With the organization, its membership and access.
    expect(plan.read).toBeLessThanOrEqual(10 * (101 + 3) + 40);
    expect(plan.pages).toBeLessThanOrEqual(10 * 12);
  });

  test('those that are measured next', async () => {
    const { rows } = await client.query<{ id: string }>(
      `select id from organizations where id not in (
         select organization_id from stack_listings where stack_id = $1) order by name limit 1`,
      [deepStack],
    );
    const kept = (limit: number) =>
      planOf(client, (db) =>
        createKeptBytesRepository(db).listPage(rows[0]?.id as string, 'live', ['project-05', 'stack-10'], limit),
      );
    const [page, all] = [await kept(50), await kept(10_000)];
    expect([page.returned, page.read]).toEqual([50, 50]);
    expect(all.returned).toBeGreaterThan(300);
  });

  test('those of the default policy group', async () => {
    await createProjectDayRepository(explainingPool(client).pool as Queryable).addStackCounts(100_000);
    await client.query('vacuum (index_cleanup on) stack_counts');
    await analyzeExactly(client, 'stack_counts');
    const plan = await planOf(client, (db) => createPolicyGroupRepository(db).list('org-1', null));
    expect(plan.returned).toBe(1);
    // Few rows of each organization; no stacks.
    expect(plan.read).toBeLessThanOrEqual(40);
    expect(plan.pages).toBeLessThanOrEqual(30);
  });
});

describe('a page about few stacks does not read the others', () => {
  /** Of the first organization: three stacks that have failed, two that have drifted, and one whose runs were refused. */
  beforeAll(async () => {
    const chosen = (from: number, to: number) =>
      `(select l.stack_id as id, l.organization_id from stack_listings l join organizations o on o.id = l.organization_id
        where o.name = 'org-1' and l.project_name = 'project-09' and l.tag_name = ''
          and l.stack_name between 'stack-0${from}' and 'stack-0${to}') s`;
    await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, started_at, ended_at)
      select id, 'update', true, 'failed', now(), now(), now() from ${chosen(1, 3)}`);
    await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, started_at)
      select id, 'refresh', false, 'running', now(), now() from ${chosen(4, 5)}`);
    await client.query(`update updates set status = 'succeeded', ended_at = now() where kind = 'refresh'`);
    await client.query(`update drift_runs set state = 'done', is_detected = true`);
    // Of others, which found none: Postgres reads a table of two rows whole at each look.
    await client.query('set session_replication_role = replica');
    await client.query(`insert into drift_runs (update_id, stack_id, organization_id, number, state)
      select gen_random_uuid(), l.stack_id, l.organization_id, -row_number() over (), 'done'
      from stack_listings l join organizations o on o.id = l.organization_id where o.name <> 'org-1' and l.tag_name = '' limit 1000`);
    await client.query('set session_replication_role = origin');
    await client.query(`insert into refused_runs (organization_id, stack_id, reason, message)
      select organization_id, id, 'freeze', 'no' from ${chosen(6, 6)}, generate_series(1, 3)`);
    // Otherwise, Postgres leaves a few dead rows in pages, which are then not visible to all.
    await client.query('vacuum (index_cleanup on)');
    await analyzeExactly(client, 'updates', 'stack_changes', 'drift_runs', 'refused_runs');
  });

  test.each<[string, Partial<OverviewFilter>, number]>([
    ['failed', { status: 'failed' }, 3],
    ['interrupted', { organizations, status: 'interrupted' }, 0],
    ['drifted', { status: 'drifted' }, 2],
  ])('those that are %s', async (_, filter, returned) => {
    const chosen = { ...allStacks, organizations: organizations.slice(0, 1), ...filter };
    const plan = await planOf(client, (db) => createStackQueryRepository(db).list(chosen));
    expect(plan.returned).toBe(returned);
    expect(plan.read).toBeLessThanOrEqual(16 * returned);
    expect(plan.pages).toBeLessThanOrEqual(40 * returned + 4 * organizations.length);
  });

  test('those that need attention', async () => {
    const plan = await planOf(client, (db) => createAttentionRepository(db).listTroubled(organizations, 50, 5));
    expect(plan.returned).toBe(5);
    expect(plan.read).toBeLessThanOrEqual(8 * 5 + organizations.length);
    expect(plan.pages).toBeLessThanOrEqual(20 * 5 + 8 * organizations.length);
    const more = await planOf(client, (db) => createAttentionRepository(db).hasMore(organizations, 50));
    expect(more.read).toBeLessThanOrEqual(6 * 5 + organizations.length);
  });

  test('those that need attention, up to a number of each kind', async () => {
    const plan = await planOf(client, (db) => createAttentionRepository(db).listTroubled(organizations, 1, 5));
    expect(plan.returned).toBe(2);
    expect(plan.read).toBeLessThanOrEqual(8 * 5 + organizations.length);
  });

  const page = { after: null, days: 90, limit: 51 };
  type Ci = ReturnType<typeof createCiQueryRepository>;
  // The last number: rows that all steps together read for each one. Drift is found by one look into the index for each stack.
  test.each<[string, (ci: Ci, of: ListedOrganization) => Promise<unknown>, number, number]>([
    ['drift', (ci, of) => ci.listDrifted(of, { ...page, onlyDrifted: false }), 2, 13],
    // By day, by project and by reason.
    ['counts of refused runs', (ci, of) => ci.countRefused(of, 90), 3, 10],
    ['refused runs', (ci, of) => ci.listRefused(of, { ...page, project: null, reasons: null }), 3, 10],
  ])('%s', async (_, work, returned, perRow) => {
    const plan = await planOf(client, (db) =>
      work(createCiQueryRepository(db), organizations[0] as ListedOrganization),
    );
    expect(plan.returned).toBe(returned);
    expect(plan.read).toBeLessThanOrEqual(perRow * returned);
    expect(plan.pages).toBeLessThanOrEqual(30 * returned);
  });

  test('deliveries', async () => {
    await client.query('set session_replication_role = replica');
    await client.query(`insert into stack_days (organization_id, day, stack_id, runs, changed, lead_seconds)
      select l.organization_id, (now() at time zone 'UTC')::date - n, l.stack_id, 2, 1, array[60]
      from stack_listings l, generate_series(1, 20) n where l.tag_name = '' on conflict do nothing`);
    await client.query('set session_replication_role = origin');
    await client.query('vacuum (index_cleanup on) stack_days');
    await analyzeExactly(client, 'stack_days');
    const plan = await planOf(client, (db) =>
      createProjectDeliveryRepository(db).sum(organizations[0] as ListedOrganization, 4),
    );
    // By project, and of all. Each row is read in three steps, of ten organizations and twenty days.
    expect(plan.returned).toBe(31);
    expect(plan.read).toBeLessThanOrEqual(8 * 3 * 600);
    expect(plan.pages).toBeLessThanOrEqual(200);
  });

  test('statistics of runs, for users whose rights are the same in each project', async () => {
    const [organization] = organizations as [ListedOrganization];
    // Of three days, before today.
    await client.query(
      `update stack_days set runs = runs + 1 where organization_id = $1 and day > (now() at time zone 'UTC')::date - 4`,
      [organization.id],
    );
    await createProjectDayRepository(explainingPool(client).pool as Queryable).addChanges(5_000);
    await client.query('vacuum (index_cleanup on) project_days, project_day_changes');
    await analyzeExactly(client, 'project_days', 'project_day_changes');
    const plan = await planOf(client, (db) => createCiQueryRepository(db).sumProjects(organization, 4));
    expect(plan.returned).toBe(4 + 30);
    // And the projects.
    expect(plan.read).toBeLessThanOrEqual(4 * 30 + 30);
    expect(plan.pages).toBeLessThanOrEqual(20);
  });

  test('deliveries, for users whose rights are the same in each project, and of all organizations', async () => {
    const [organization] = organizations as [ListedOrganization];
    const { pool } = explainingPool(client);
    // On one day: of a tenth of the stacks and of all, each within the same minute.
    const deliverTo = async (share: number) => {
      await client.query(
        `update stack_days set runs = runs + 1, changed = changed + 1, lead_seconds = array[300 + abs(hashtext(stack_id::text)) % 60, 60],
           restore_seconds = '{20}'
         where day = (now() at time zone 'UTC')::date - 1 and abs(hashtext(stack_id::text || 'x')) % 10 < $1`,
        [share],
      );
      const days = createProjectDayRepository(pool as Queryable);
      await days.addChanges(100_000);
      await days.addDeliveryChanges(100_000);
      const tables = ['project_days', 'project_day_changes', 'project_day_deliveries', 'project_day_delivery_changes'];
      await client.query(`vacuum (index_cleanup on) ${tables.join(', ')}`);
      await analyzeExactly(client, ...tables);
      return [
        await planOf(client, (db) => createProjectDeliveryRepository(db).sumProjects(organization, 2)),
        await planOf(client, (db) => createProjectDeliveryRepository(db).listOrganizations(2, 200)),
      ] as const;
    };
    const plans = [await deliverTo(1), await deliverTo(10)];
    for (const [of, each] of plans) {
      expect(of.returned).toBeGreaterThan(20);
      expect(each.returned).toBe(10);
      // The few different times of each project, the projects, and the sums, of which there are so few that Postgres may read all.
      expect(of.read).toBeLessThanOrEqual(30 * (1 + 8 + 1) + 30 + 13 * 30);
      expect(each.read).toBeLessThanOrEqual(10 * 30 * (1 + 1 + 8 + 1) + 20);
      expect(of.pages).toBeLessThanOrEqual(30);
      expect(each.pages).toBeLessThanOrEqual(200);
    }
    const [returned, rows] = [plans[1]?.[0].returned, plans[1]?.[1].read ?? 0];
    expect(returned).toBe(31);
    // Fewer than the stacks.
    expect(rows).toBeLessThan(6_000);
  });

  test('stacks in which drift was found again and again are looked at once', async () => {
    await client.query(`set session_replication_role = replica`);
    await client.query(`with u as (
        insert into updates (stack_id, organization_id, number, kind, exclusive, status, expires_at, started_at, ended_at)
        overriding system value
        select u.stack_id, u.organization_id, u.number - n, 'refresh', false, 'succeeded', now(), now(), now()
        from updates u, generate_series(1, 1000) n where u.kind = 'refresh' returning *)
      insert into drift_runs (update_id, stack_id, organization_id, number, state, is_detected)
      select id, stack_id, organization_id, number, 'done', true from u`);
    await client.query(`set session_replication_role = origin`);
    await client.query('vacuum (index_cleanup on) drift_runs');
    await analyzeExactly(client, 'updates', 'drift_runs');
    const drifted: OverviewFilter = { ...allStacks, organizations: organizations.slice(0, 1), status: 'drifted' };
    const list = await planOf(client, (db) => createStackQueryRepository(db).list(drifted));
    expect(list.returned).toBe(2);
    expect(list.read).toBeLessThanOrEqual(16 * 2);
    const troubled = await planOf(client, (db) => createAttentionRepository(db).listTroubled(organizations, 50, 5));
    expect(troubled.returned).toBe(5);
    expect(troubled.read).toBeLessThanOrEqual(8 * 5 + organizations.length);
    const [first] = organizations as [ListedOrganization];
    const ci = await planOf(client, (db) =>
      createCiQueryRepository(db).listDrifted(first, { ...page, onlyDrifted: true }),
    );
    expect(ci.returned).toBe(2);
    expect(ci.read).toBeLessThanOrEqual(8 * 2);
    const counted = await planOf(client, (db) => createDriftRepository(db).countDrifted());
    expect(counted.read).toBeLessThanOrEqual(8 * 2 + organizations.length);
  });

  test('stacks whose drift was repaired are not looked at', async () => {
    const ended = `'succeeded', now(), now(), now()`;
    await client.query(`with u as (
        insert into updates (stack_id, kind, exclusive, status, expires_at, started_at, ended_at)
        select l.stack_id, 'refresh', false, ${ended} from stack_listings l join organizations o on o.id = l.organization_id
        where o.name = 'org-1' and l.tag_name = '' and l.project_name > 'project-15' returning *)
      insert into drift_runs (update_id, stack_id, organization_id, number, state, is_detected)
      select id, stack_id, organization_id, number, 'done', true from u`);
    await client.query(`insert into updates (stack_id, kind, exclusive, status, expires_at, started_at, ended_at)
      select stack_id, 'update', true, ${ended} from stack_changes where is_drifted and project_name > 'project-15'`);
    await client.query('vacuum (index_cleanup on)');
    await analyzeExactly(client, 'updates', 'drift_runs', 'stack_changes');
    const [first] = organizations as [ListedOrganization];
    const counted = await planOf(client, (db) => createDriftRepository(db).countDrifted());
    expect(counted.read).toBeLessThanOrEqual(8 * 2 + organizations.length);
    const ci = await planOf(client, (db) =>
      createCiQueryRepository(db).listDrifted(first, { ...page, onlyDrifted: true }),
    );
    expect(ci.returned).toBe(2);
    expect(ci.read).toBeLessThanOrEqual(8 * 2);
    const drifted: OverviewFilter = { ...allStacks, organizations: [first], status: 'drifted' };
    const list = await planOf(client, (db) => createStackQueryRepository(db).list(drifted));
    expect(list.returned).toBe(2);
    expect(list.read).toBeLessThanOrEqual(16 * 2);
    const more = await planOf(client, (db) => createAttentionRepository(db).hasMore(organizations, 50));
    expect(more.read).toBeLessThanOrEqual(6 * 5 + organizations.length);
  });

  test('the graph of references', async () => {
    await client.query(`insert into state_indexes (stack_id, version) select id, 1 from stacks on conflict do nothing`);
    await client.query(`insert into stack_resources (stack_id, key, digest, urn, type, name, place, dependencies, is_custom, is_external,
        is_protected, deletes_first, is_deleted, reads)
      select l.stack_id, 'key', '', 'urn', 'a:b:C', 'name', 'place', '{}', true, false, false, false, false,
        case when l.project_name = 'project-09' and l.stack_name between 'stack-01' and 'stack-03' then 'org-1/p/s' end
      from stack_listings l where l.tag_name = ''`);
    await client.query('vacuum (index_cleanup on) state_indexes, stack_resources');
    await analyzeExactly(client, 'state_indexes', 'stack_resources');
    const [first] = organizations as [ListedOrganization];
    const plan = await planOf(client, (db) =>
      createReferenceRepository(db).listOfOrganization(first, { limit: 2_001, stacks: 501 }),
    );
    expect(plan.returned).toBe(3);
    expect(plan.read).toBeLessThanOrEqual(3 * 3);
    expect(plan.pages).toBeLessThanOrEqual(16 * 3);
  });

  test('the sweep of empty projects', async () => {
    await client.query('update projects set may_be_empty = false');
    await client.query(
      `insert into stacks (project_id, name) select id, 'leaving' from projects where name = 'project-20' limit 1`,
    );
    await client.query(`delete from stacks where name = 'leaving'`);
    await client.query('vacuum (index_cleanup on) projects');
    await analyzeExactly(client, 'projects');
    const plan = await planOf(client, (db) => createEmptyProjectRepository(db).lock(500));
    expect(plan.returned).toBe(1);
    expect(plan.read).toBe(1);
    expect(plan.pages).toBeLessThanOrEqual(12);
  });
});
