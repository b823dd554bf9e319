import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createAccessHolderRepository } from '../../src/api/access/access-holder-repository.ts';
import { createPolicyGroupRepository } from '../../src/api/policies/policy-group-repository.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { createTokenRepository } from '../../src/shared/identity/token-repository.ts';
import { createIssuerRepository } from '../../src/shared/identity/trust/issuer-repository.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createAuditExportRepository } from '../../src/workers/audit/audit-export-repository.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import { createEmptyProjectRepository } from '../../src/workers/stacks/empty-project-repository.ts';
import { explainingPool } from '../../testkit/query-plan.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

// What years leave behind is not read again.

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

/** Runs SQL without triggers and foreign keys. */
async function seed(...statements: readonly string[]): Promise<void> {
  await client.query('set session_replication_role = replica');
  for (const statement of statements) await client.query(statement);
  await client.query('set session_replication_role = origin');
}

/**
 * The rows of a table that the work reads and changes in one transaction, which is rolled back, with those of triggers, functions and foreign
 * keys.
 */
async function rowsOf(
  table: string,
  work: (db: Queryable) => Promise<unknown>,
): Promise<{ read: number; changed: number }> {
  const { pool } = explainingPool(client);
  const count = async () => {
    const { rows } = await client.query<{ read: number; changed: number }>(
      `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read, n_tup_upd::float8 as changed
       from pg_stat_xact_user_tables where relname = $1`,
      [table],
    );
    return rows[0] ?? { read: 0, changed: 0 };
  };
  await client.query('begin');
  try {
    // Those of earlier transactions may still be counted.
    const before = await count();
    await work(pool as Queryable);
    const after = await count();
    return { read: after.read - before.read, changed: after.changed - before.changed };
  } finally {
    await client.query('rollback');
  }
}

test('chunks of other stacks are not read when a stack is deleted', async () => {
  const id = crypto.randomUUID();
  await seed(
    `insert into version_chunks (stack_id, depth, sha256, size_bytes, stored_bytes, codec, inline_bytes)
     select ('00000000-0000-0000-0000-' || lpad((n / 100)::text, 12, '0'))::uuid, 0, sha256(n::text::bytea), 1, 1, 'zstd', ''
     from generate_series(1, 20000) n`,
    `insert into stacks (id, project_id, name, deleted_at) values ('${id}', gen_random_uuid(), 'deleted', now())`,
  );
  await analyzeExactly(client, 'version_chunks');
  const { read } = await rowsOf('version_chunks', async (db) => {
    const rows = createDeletedStackRepository(db);
    await rows.lock(id);
    await rows.deleteChunks(id, 200);
  });
  expect(read).toBe(0);
});

test('deleting empty projects does not read the stacks of others', async () => {
  await client.query(`insert into organizations (name) values ('of-projects')`);
  await client.query(
    `insert into projects (organization_id, name, may_be_empty) select id, 'p' || n, n > 10 from organizations, generate_series(1, 60) n`,
  );
  await seed(
    `insert into stacks (project_id, name, deleted_at) select p.id, 's' || n, case when n % 10 = 0 then now() end
     from projects p, generate_series(1, 1000) n where not p.may_be_empty`,
  );
  await analyzeExactly(client, 'stacks', 'projects');
  const { rows } = await client.query<{ id: string }>('select id from projects where may_be_empty');
  const { read } = await rowsOf('stacks', (db) => createEmptyProjectRepository(db).delete(rows.map((row) => row.id)));
  expect(read).toBe(0);
});

test('the export of the audit log reads the batches that are to be exported', async () => {
  await client.query(`with chains as (
      insert into audit_chains (organization_id, batch, hash, base_hash, exported_batch, sent_batch)
      select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1000, '', '', 1000 - (n = 50)::int, 1000 - (n = 50)::int
      from generate_series(1, 100) n returning organization_id)
    insert into audit_batches (organization_id, batch, month, through_number, numbers, event_hashes, previous_hash, hash)
    select organization_id, n, '2026-01-01', n, '{}', '', '', '' from chains, generate_series(1, 1000) n`);
  await analyzeExactly(client, 'audit_chains', 'audit_batches');
  for (const target of ['blobs', 'receiver'] as const) {
    const plan = await planOf(client, (db) => createAuditExportRepository(db).listUnexported(target, { limit: 50 }));
    expect(plan.returned).toBe(1);
    expect(plan.read).toBeLessThanOrEqual(150);
    const earlier = await planOf(client, (db) =>
      createAuditExportRepository(db).hasUnexportedBefore(target, '2026-01-01'),
    );
    expect(earlier.read).toBeLessThanOrEqual(150);
  }
});

describe('the tokens of CI runs that have ended are not read', () => {
  const organization = crypto.randomUUID();
  const team = crypto.randomUUID();
  const user = crypto.randomUUID();
  const issuer = crypto.randomUUID();
  const policy = crypto.randomUUID();
  beforeAll(async () => {
    const add = (count: number, owner: string, rest: string) =>
      `insert into api_tokens (kind, organization_id, team_id, user_id, role, token_hash, policy_id, claims, expires_at, name, created_at)
       select ${owner}, decode(md5(gen_random_uuid()::text), 'hex'), ${rest} from generate_series(1, ${count}) n`;
    const owners = [
      `'organization', '${organization}'::uuid, null::uuid, null::uuid, 'member'`,
      `'team', '${organization}', '${team}', null, null`,
      `'personal', null, null, '${user}', null`,
    ];
    const live = `now() + interval '1 hour', null, now()`;
    await client.query(`insert into organizations (id, name) values ('${organization}', 'of-runs')`);
    await client.query(`insert into users (id, login) values ('${user}', 'of-runs')`);
    await client.query(
      `insert into memberships (organization_id, user_id, role) values ('${organization}', '${user}', 'member')`,
    );
    await client.query(
      `insert into teams (id, organization_id, name) values ('${team}', '${organization}', 'of-runs')`,
    );
    await seed(
      ...owners.flatMap((owner) => [
        add(7_000, owner, `'${policy}', '{}', now() - n * interval '1 minute', null, now() - interval '30 days'`),
        add(30, owner, `'${policy}', '{}', ${live}`),
        add(10, owner, `null, null, now() + interval '1 hour', n::text, now()`),
      ]),
      add(5_000, `'organization', gen_random_uuid(), null, null, 'member'`, `gen_random_uuid(), '{}', ${live}`),
      `insert into trust_policies (id, issuer_id, position, decision, token_kind, is_admin, rules)
       values ('${policy}', '${issuer}', 0, 'allow', 'organization', false, '[]')`,
    );
    await analyzeExactly(client, 'api_tokens');
  });

  const page = { after: null, limit: 201, withCiTokens: true };
  test.each<[string, number, (db: Queryable) => Promise<unknown>]>([
    // Each of them again for its facts.
    [
      'by the access of a stack',
      4 * 80,
      (db) => createAccessHolderRepository(db, null).listTokens(organization, { ...page, only: null }),
    ],
    [
      'by a later page of it',
      4 * 80,
      (db) =>
        createAccessHolderRepository(db, null).listTokens(organization, {
          ...{ limit: 51, only: null, after: '80000000-0000-0000-0000-000000000000' },
        }),
    ],
    [
      'by the list of the organization',
      4 * 80,
      (db) => createTokenRepository(db).list({ organizationId: organization }),
    ],
    ['by the list of a team', 4 * 40, (db) => createTokenRepository(db).list({ teamId: team })],
    ['by the list of a user', 4 * 40, (db) => createTokenRepository(db).list({ userId: user })],
    [
      'by a page of the organization',
      4 * 80,
      (db) => createTokenRepository(db).listPage({ organizationId: organization }, page),
    ],
    ['by a page of a user', 4 * 40, (db) => createTokenRepository(db).listPage({ userId: user }, page)],
    ['by the revocation of the tokens of an issuer', 400, (db) => createIssuerRepository(db).revokeAllTokens(issuer)],
    [
      'by the revocation of the tokens of policies',
      400,
      (db) => createIssuerRepository(db).revokeTokens({ policyIds: [policy], ids: [] }),
    ],
    ['by the removal of policies', 400, (db) => createIssuerRepository(db).removePolicies([policy])],
    [
      'by the tokens that a limit would shorten',
      8 * 120,
      (db) => createTokenRepository(db).listAffected(organization, 60),
    ],
    ['by a limit of lifetimes', 8 * 120, (db) => createTokenRepository(db).setMaxSeconds(organization, 86_400)],
  ])('%s', async (_, most, work) => {
    expect((await rowsOf('api_tokens', work)).read).toBeLessThanOrEqual(most);
  });

  test('a limit of lifetimes changes the tokens that it shortens', async () => {
    const of = (seconds: number) =>
      rowsOf('api_tokens', (db) => createTokenRepository(db).setMaxSeconds(organization, seconds));
    expect(await of(86_400)).toMatchObject({ changed: 0 });
    expect(await of(1_800)).toMatchObject({ changed: 3 * 40 });
  });
});

test('the people behind the tokens of CI runs are found without reading all members', async () => {
  await client.query(`insert into organizations (name) values ('of-people')`);
  await seed(
    `with u as (insert into users (login, email) select 'Person-' || n, 'P' || n || '@example.com' from generate_series(1, 2000) n returning id)
     insert into memberships (organization_id, user_id, role) select o.id, u.id, 'member' from organizations o, u where o.name = 'of-people'`,
    `with t as (
       insert into api_tokens (kind, organization_id, role, token_hash, policy_id, claims, expires_at)
       select 'organization', id, 'member', decode(md5(n::text), 'hex'), gen_random_uuid(),
         json_build_object('actor', 'person-' || n, 'user_email', 'p' || 2 * n || '@example.com')::jsonb, now() + interval '1 hour'
       from organizations, generate_series(1, 20) n where name = 'of-people' returning id),
     p as (insert into projects (organization_id, name) select id, 'p' from organizations where name = 'of-people' returning id),
     s as (insert into stacks (project_id, name) select id, 's' from p returning id)
     insert into update_approvals (stack_id, kind, commit_id, asked_by, asked_token_id, request) select s.id, 'delete', t.id::text, 'a', t.id, 'x' from s, t`,
  );
  await analyzeExactly(client, 'users', 'memberships', 'update_approvals', 'api_tokens');
  const { rows } = await client.query<{ id: string; people: string[] }>(
    `select s.id, array(
       select u.login from unnest(people_behind((select asked_token_id from update_approvals a where a.stack_id = s.id order by asked_at limit 1), null)) i
       join users u on u.id = i order by 1) as people
     from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = 'of-people'`,
  );
  expect(rows[0]?.people).toHaveLength(2);
  const { read } = await rowsOf('memberships', (db) =>
    db.any({ sql: 'select people_behind(asked_token_id, null) from update_approvals', values: [] } as never),
  );
  expect(read).toBeLessThanOrEqual(2 * 20);
});

test('the stacks of policy groups are counted without reading them', async () => {
  await client.query(`insert into organizations (name) values ('of-groups')`);
  const organization = `(select id from organizations where name = 'of-groups')`;
  await client.query(`insert into projects (organization_id, name) values (${organization}, 'of-groups')`);
  await client.query(`insert into stacks (project_id, name)
    select p.id, 's' || n from projects p, generate_series(1, 1000) n where p.name = 'of-groups'`);
  await client.query(
    `insert into policy_groups (organization_id, name) values (${organization}, 'one'), (${organization}, 'other')`,
  );
  await client.query(`insert into policy_group_stacks (group_id, stack_id)
    select g.id, s.id from policy_groups g join projects p on p.organization_id = g.organization_id join stacks s on s.project_id = p.id
    where g.name in ('one', 'other') and p.name = 'of-groups' and s.name <> 's1' and (g.name = 'one' or s.name like 's10%')`);
  await client.query(`update stacks s set deleted_at = now(), restorable_until = now() + interval '1 day', restorable_in = p.organization_id
    from projects p where p.id = s.project_id and p.name = 'of-groups' and s.name in ('s2', 's10')`);
  // Deleted ones of other organizations.
  await seed(`update stacks set restorable_until = now() + interval '1 day', restorable_in = gen_random_uuid()
    where deleted_at is not null and restorable_until is null`);
  await analyzeExactly(client, 'stacks', 'policy_groups', 'policy_group_stacks', 'projects');
  const { read } = await rowsOf('stacks', (db) => createPolicyGroupRepository(db).list('of-groups', null));
  // The deleted ones.
  expect(read).toBeLessThanOrEqual(2);
});

test('the organizations that are due for a measurement are found without reading the stacks that are measured', async () => {
  await client.query(`insert into organizations (name) select 'of-storage-' || n from generate_series(1, 20) n`);
  await seed(
    `insert into organization_storage (organization_id, day, state_bytes, journal_bytes, event_bytes, measured_at, took_ms)
     select id, now()::date, 0, 0, 0, now() - interval '5 minutes', 0 from organizations`,
  );
  const pagesWith = async (stacks: number) => {
    await seed(`insert into stack_storage (stack_id, organization_id, state_bytes, journal_bytes, event_bytes, measured_at)
      select gen_random_uuid(), o.id, 0, 0, 0, now() from organizations o, generate_series(1, ${stacks}) n`);
    await analyzeExactly(client, 'stack_storage', 'organization_storage', 'organizations');
    return (await planOf(client, (db) => createStorageRepository(db).listDue(50))).pages;
  };
  const few = await pagesWith(10);
  expect(await pagesWith(2_000)).toBeLessThanOrEqual(few + 30);
});
