import { beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append } from '../support/update-calls.ts';

const app = testApp();
let operator: Person;

beforeAll(async () => {
  operator = await person(app, 'acme', 'admin');
  await query(app, 'update users set site_admin = (id = $1)', [operator.userId]);
});

const call = (method: string, below: string, body?: object) =>
  app.call(method, `/api/operator/${below}`, { auth: operator.auth, ...(body ? { body } : {}) });
const serverEvents = () =>
  query<{ action: string; object: string; login: string }>(
    app,
    `select action, object, login from audit_events where organization = '' order by number`,
  );

test('users are created, changed and listed, and each change is one event', async () => {
  const begin = (await serverEvents()).length;
  const created = (await ok(call('POST', 'users', { login: 'ada' }))).json;
  expect(created).toEqual({
    ...{ login: 'ada', displayName: '', email: '', siteAdmin: false, active: true, organizations: [] },
  });
  for (const login of ['ada', 'ADA']) expect((await call('POST', 'users', { login })).status).toBe(409);
  for (const login of ['', '/', 'a b', 'x'.repeat(101)])
    expect((await call('POST', 'users', { login })).status).toBe(400);
  await ok(call('PATCH', 'users/ada', { siteAdmin: true }));
  await ok(call('PATCH', 'users/ada', { siteAdmin: true, active: false }));
  expect((await ok(call('GET', 'users/ada'))).json).toMatchObject({ siteAdmin: true, active: false });
  await ok(call('PATCH', 'users/ada', { siteAdmin: false, active: true }));
  for (const path of ['users/none', 'users/%00', 'users/a%2Fb'])
    expect([(await call('GET', path)).status, (await call('PATCH', path, {})).status]).toEqual([404, 404]);
  expect((await serverEvents()).slice(begin).map(({ action, login, object }) => [action, object, login])).toEqual(
    ['create', 'site-admin', 'deactivate', 'site-admin', 'reactivate'].map((each) => [
      ...[`user.${each}`, 'ada', operator.login],
    ]),
  );
  await query(app, `insert into users (login) select 'many-' || n from generate_series(1, 600) n`);
  const first = (await ok(call('GET', 'users'))).json;
  const second = (await ok(call('GET', `users?continuationToken=${first.continuationToken}`))).json;
  const logins = [...first.users, ...second.users].map(({ login }: { login: string }) => login);
  expect([first.users.length, new Set(logins).size, second.continuationToken]).toEqual([500, logins.length, undefined]);
  expect(logins.length).toBeGreaterThan(600);
  expect((await call('GET', 'users?continuationToken=.')).status).toBe(200);
  expect((await call('GET', `users?continuationToken=${Buffer.from('/').toString('base64url')}`)).status).toBe(400);
});

test('a deactivated user loses running updates, and the last admins stay', async () => {
  const stack = await createStack(app);
  const writer = await person(app, stack.organization, 'member');
  const update = await startUpdate(app, { ...stack, auth: writer.auth }, { journal: true });
  await ok(call('PATCH', `users/${writer.login}`, { active: false }));
  expect((await append(app, update, [])).status).toBe(403);
  expect((await app.call('GET', stack.path, { auth: writer.auth })).status).toBe(401);
  const events = (await listEvents(app, stack.organization)).map(({ action }) => action);
  expect(events).toContain('user.deactivate');
  const [{ login = '' } = {}] = await query<{ login: string }>(
    app,
    `select u.login from users u join memberships m on m.user_id = u.id join organizations o on o.id = m.organization_id
     where o.name = $1 and m.role = 'admin'`,
    [stack.organization],
  );
  for (const [user, body, sentence] of [
    [login, { active: false }, 'last admin of'],
    [operator.login, { siteAdmin: false }, 'last site admin'],
    [operator.login, { active: false }, 'last site admin'],
  ] as const) {
    const { json, status } = await call('PATCH', `users/${user}`, body);
    expect([status, json.message]).toEqual([409, expect.stringContaining(sentence)]);
  }
});

test('organizations are created with their first admin, limited, and deleted when nothing is kept in them', async () => {
  const { auth, login } = await person(app, 'elsewhere', 'viewer');
  await ok(call('POST', 'organizations', { name: 'fresh', admin: login }));
  expect((await ok(app.call('GET', '/api/orgs/fresh/members', { auth }))).json.members).toMatchObject([
    { role: 'admin', user: { githubLogin: login } },
  ]);
  for (const [body, status] of [
    [{ name: 'fresh' }, 409],
    [{ name: 'a/b' }, 400],
    [{ name: 'other', admin: 'nobody' }, 404],
    [{}, 400],
  ] as const)
    expect((await call('POST', 'organizations', body)).status).toBe(status);
  expect((await ok(call('GET', 'organizations'))).json.organizations).toContainEqual({
    name: 'fresh',
    created: expect.any(String),
  });
  const none = { stacks: null, keptBytes: null, inFlightBytes: null, updates: null, requestsPerSecond: null };
  const quota = async () => (await ok(call('GET', 'organizations/fresh/quota'))).json;
  expect(await quota()).toEqual(none);
  await ok(call('PUT', 'organizations/fresh/quota', { stacks: 1, keptBytes: 1_000_000 }));
  await ok(call('PUT', 'organizations/fresh/quota', { stacks: 1, keptBytes: 1_000_000 }));
  expect(await quota()).toEqual({ ...none, stacks: 1, keptBytes: 1_000_000 });
  const create = (stackName: string) => app.call('POST', '/api/stacks/fresh/proj', { auth, body: { stackName } });
  await ok(create('one'));
  expect((await create('two')).status).toBe(409);
  expect((await call('PUT', 'organizations/fresh/quota', { stacks: -1 })).status).toBe(400);
  await ok(call('PUT', 'organizations/fresh/quota', {}));
  expect(await quota()).toEqual(none);
  await ok(create('two'));
  const events = (await listEvents(app, 'fresh')).map(({ action }) => action);
  expect(events.filter((action) => action.startsWith('organization.'))).toEqual([
    ...['organization.create', 'organization.quota', 'organization.quota'],
  ]);

  const deleted = await call('DELETE', 'organizations/fresh');
  expect([deleted.status, deleted.json.message]).toEqual([409, expect.stringContaining('still has 2 stacks')]);
  await query(
    app,
    'delete from stacks where project_id in (select p.id from projects p join organizations o on o.id = p.organization_id where o.name = $1)',
    ['fresh'],
  );
  const packs = new PolicyCalls(app, { organization: 'fresh', auth } as TestStack);
  await packs.publish();
  const kept = await call('DELETE', 'organizations/fresh');
  expect([kept.status, kept.json.message]).toEqual([409, expect.stringContaining('1 policy packs')]);
  // Its row remains, so that no tag is given again.
  await ok(packs.call('DELETE', 'policypacks/pack'));
  await ok(app.call('POST', '/api/orgs/fresh/tokens', { auth, body: { name: 'ci' } }));
  await ok(app.call('POST', '/api/orgs/fresh/teams/pulumi', { auth, body: { name: 'blue' } }));
  await ok(call('DELETE', 'organizations/fresh'));
  for (const [method, below] of [
    ['DELETE', ''],
    ['GET', '/quota'],
    ['PUT', '/quota'],
  ] as const)
    expect((await call(method, `organizations/fresh${below}`, method === 'PUT' ? {} : undefined)).status).toBe(404);
  expect((await app.call('GET', '/api/orgs/fresh/members', { auth })).status).toBe(404);
  expect((await serverEvents()).at(-1)).toMatchObject({ action: 'organization.delete', object: 'fresh' });
});

test('an organization is deleted only when no change in it is under way', async () => {
  const { auth } = await person(app, 'racing', 'admin');
  const create = (stackName: string) => app.call('POST', '/api/stacks/racing/proj', { auth, body: { stackName } });
  await ok(create('first'));
  await query(app, `delete from stacks where name = 'first'`);
  const client = new pg.Client({ connectionString: app.database.url });
  await client.connect();
  try {
    const isWaiting = async (statement: string) =>
      (
        await query<{ count: string }>(
          app,
          `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%' || $1 || '%'
             and pid <> pg_backend_pid()`,
          [statement],
        )
      )[0]?.count !== '0';
    await client.query('begin');
    await client.query(`select 1 from projects where name = 'proj' for update`);
    const creating = create('second');
    await until(() => isWaiting('rojects'), 'the creation waits');
    const deleting = call('DELETE', 'organizations/racing');
    await until(() => isWaiting('identity.'), 'the deletion waits');
    await client.query('commit');
    await ok(creating);
    expect(await deleting).toMatchObject({
      status: 409,
      json: { message: expect.stringContaining('still has 1 stacks') },
    });
  } finally {
    await client.end();
  }
});

test('a deactivated user is no first admin, and one whom a provider has deactivated stays so', async () => {
  const { login, userId } = await person(app, 'provided', 'member');
  await query(app, 'update users set deactivated_at = now(), provider_deactivated_at = now() where id = $1', [userId]);
  expect((await call('POST', 'organizations', { name: 'unled', admin: login })).status).toBe(409);
  await ok(call('PATCH', `users/${login}`, { active: false }));
  const [user] = await query(
    app,
    'select provider_deactivated_at as by_provider, deactivated_at is null as active from users where id = $1',
    [userId],
  );
  expect(user).toEqual({ by_provider: null, active: false });
  // Only who decides has changed, and only once.
  await ok(call('PATCH', `users/${login}`, { active: false }));
  const recorded = await query(
    app,
    `select organization from audit_events where action = 'user.deactivate' and object = $1 and organization = ''`,
    [login],
  );
  expect(recorded).toHaveLength(1);
});

test('an organization with a long log of webhooks is deleted by statements of bounded length', async () => {
  await ok(call('POST', 'organizations', { name: 'logged' }));
  await query(
    app,
    `with added as (insert into webhook_events (organization_id, organization, event)
       select id, name, 'update_succeeded' from organizations, generate_series(1, 2500) where name = 'logged' returning id)
     insert into webhook_deliveries (webhook_id, event_id, state) select gen_random_uuid(), id, 'delivered' from added`,
  );
  await query(
    app,
    `create function refuse_many() returns trigger language plpgsql as $$ begin
       if (select count(*) from gone) > 1000 then raise exception 'too many at once'; end if; return null; end $$`,
  );
  await query(
    app,
    `create trigger refused after delete on webhook_events referencing old table as gone for each statement execute function refuse_many()`,
  );
  try {
    await ok(call('DELETE', 'organizations/logged'));
  } finally {
    await query(app, 'drop function refuse_many cascade');
  }
  expect(await query(app, `select 1 from webhook_events where organization = 'logged'`)).toEqual([]);
});

test('an organization that cannot be deleted keeps the log of its webhooks', async () => {
  const { organization } = await createStack(app);
  await query(
    app,
    `insert into webhook_events (organization_id, organization, event)
     select id, name, 'update_succeeded' from organizations where name = $1`,
    [organization],
  );
  expect((await call('DELETE', `organizations/${organization}`)).status).toBe(409);
  expect(await query(app, 'select 1 from webhook_events where organization = $1', [organization])).toHaveLength(1);
});

test('an operator who loses the right meanwhile deletes nothing of an organization', async () => {
  const leaving = await person(app, 'leaving', 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [leaving.userId]);
  await query(
    app,
    `insert into api_tokens (kind, organization_id, role, token_hash, name, expires_at, policy_id)
     select 'organization', id, 'member', sha256('ended run'), 'ended run', now() - interval '1 hour', gen_random_uuid()
     from organizations where name = 'leaving'`,
  );
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('select lock_exclusive(place_of_user($1))', [leaving.userId]);
    await client.query('update users set site_admin = false where id = $1', [leaving.userId]);
    const deleting = app.call('DELETE', '/api/operator/organizations/leaving', { auth: leaving.auth });
    await until(
      async () =>
        (
          await query(
            app,
            `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%/* identity.%'
               and pid <> pg_backend_pid()`,
          )
        ).length > 0,
      'the deletion waits',
    );
    await client.query('commit');
    expect((await deleting).status).toBe(403);
  } finally {
    await client.end();
  }
  expect(await query(app, `select name from api_tokens where name = 'ended run'`)).toHaveLength(1);
});

test('a deletion that ends because of a new stack says that the log of webhooks is gone', async () => {
  await ok(call('POST', 'organizations', { name: 'revived' }));
  await query(
    app,
    `insert into webhook_events (organization_id, organization, event)
     select id, name, 'update_succeeded' from organizations where name = 'revived'`,
  );
  await query(
    app,
    `create function revive() returns trigger language plpgsql as $$ begin
       with p as (insert into projects (organization_id, name) select id, 'proj' from organizations where name = 'revived' returning id)
       insert into stacks (project_id, name) select id, 'new' from p; return null; end $$`,
  );
  await query(
    app,
    'create trigger revived after delete on webhook_events for each statement execute function revive()',
  );
  try {
    expect(await call('DELETE', 'organizations/revived')).toMatchObject({
      status: 409,
      json: { message: expect.stringMatching(/still has 1 stacks.*; the log of its webhooks was deleted$/) },
    });
  } finally {
    await query(app, 'drop function revive cascade');
  }
});
