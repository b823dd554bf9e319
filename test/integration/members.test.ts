import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { type Person, person, team } from '../support/grants.ts';
import { createStack, ok } from '../support/state.ts';
import { createTestApp, type TestApp, testApp } from '../support/test-app.ts';

const app = testApp();

describe('members of an organization', () => {
  test('are listed in the order of their logins, with roles, and without others', async () => {
    const { auth, organization } = await createStack(app);
    await person(app, (await createStack(app)).organization, 'member');
    const viewer = await person(app, organization, 'viewer');
    const { json } = await ok(app.call('GET', `/api/orgs/${organization}/members?type=backend`, { auth: viewer.auth }));
    expect(json.continuationToken).toBeUndefined();
    expect(json.members.map(({ role }: { role: string }) => role)).toEqual(['admin', 'viewer']);
    expect(json.members[1]).toMatchObject({
      user: { githubLogin: viewer.login, name: viewer.login },
      knownToPulumi: true,
    });
    await query(
      app,
      `with added as (insert into users (login) select 'z' || lpad(n::text, 4, '0') from generate_series(1, 600) n
         on conflict (login) do update set login = excluded.login returning id)
       insert into memberships (organization_id, user_id, role) select $1, id, 'viewer' from added`,
      [viewer.organizationId],
    );
    const logins: string[] = [];
    for (let token: string | undefined = ''; token !== undefined; ) {
      const page = await ok(app.call('GET', `/api/orgs/${organization}/members?continuationToken=${token}`, { auth }));
      logins.push(...page.json.members.map(({ user }: { user: { githubLogin: string } }) => user.githubLogin));
      token = page.json.continuationToken;
    }
    expect(logins).toHaveLength(602);
    expect(new Set(logins).size).toBe(602);
  });

  test('get other roles and are removed by admins; the last admin stays', async () => {
    const { auth, organization } = await createStack(app);
    const member = await person(app, organization, 'member');
    const path = `/api/orgs/${organization}/members`;
    const change = (login: string, role: string, by = auth) =>
      app.call('PATCH', `${path}/${login}`, { auth: by, body: { role } });
    const [admin] = await query<{ login: string }>(
      app,
      `select u.login from users u join memberships m on m.user_id = u.id where m.role = 'admin' and m.organization_id = $1`,
      [member.organizationId],
    );
    const last = admin?.login as string;
    expect((await change(last, 'member')).status).toBe(409);
    const removal = await app.call('DELETE', `${path}/${last}`, { auth });
    expect([removal.status, removal.json.message]).toEqual([409, expect.stringContaining('last admin')]);
    await ok(change(member.login, 'admin'));
    await ok(change(last, 'viewer', member.auth));
    expect((await change(member.login, 'viewer')).status).toBe(403);
    await ok(app.call('DELETE', `${path}/${last}`, { auth: member.auth }));
    expect((await app.call('GET', path, { auth })).status).toBe(404);
    expect((await change('nobody', 'viewer', member.auth)).status).toBe(404);
    expect((await change(member.login, 'owner', member.auth)).status).toBe(400);
  });
});

test('a stack that is created for teams can be updated by them; nothing is created for unknown or foreign ones', async () => {
  const { auth, organization } = await createStack(app);
  const [viewer, member] = [await person(app, organization, 'viewer'), await person(app, organization, 'member')];
  await team(app, viewer.organizationId, 'blue', [viewer.userId]);
  const create = (by: string, stackName: string, teams: string[]) =>
    app.call('POST', `/api/stacks/${organization}/proj`, { auth: by, body: { stackName, teams } });
  const update = async (stack: string) =>
    (await app.call('POST', `/api/stacks/${organization}/proj/${stack}/update`, { auth: viewer.auth, body: {} }))
      .status;
  await ok(create(auth, 'theirs', ['blue']));
  expect([await update('theirs'), await update('dev')]).toEqual([200, 403]);
  expect((await create(auth, 'none', ['blue', 'red'])).status).toBe(404);
  expect((await create(member.auth, 'none', ['blue'])).status).toBe(403);
  expect((await app.call('GET', `/api/stacks/${organization}/proj/none`, { auth })).status).toBe(404);
  await ok(create(member.auth, 'none', []));
});

describe('two admins who take the role from each other at once, on two replicas', () => {
  let replica: TestApp;
  beforeAll(async () => {
    replica = await createTestApp({ database: app.database, dataDir: app.dataDir });
  });
  // Before the app's own hook, which drops the database.
  afterEach(() => replica[Symbol.asyncDispose]());

  test('leave one admin, by any path', async () => {
    const ways: Record<string, (on: TestApp, by: Person, of: Person, path: string) => Promise<unknown>> = {
      removal: (on, by, of, path) => on.call('DELETE', `${path}/${of.login}`, { auth: by.auth }),
      role: (on, by, of, path) => on.call('PATCH', `${path}/${of.login}`, { auth: by.auth, body: { role: 'member' } }),
      leaving: (on, by, _of, path) => on.call('DELETE', `${path}/${by.login}`, { auth: by.auth }),
      deactivation: (on, _by, of) => runAdminCommand(on, 'deactivate-user', of.login),
    };
    const names = Object.keys(ways);
    // Commands are slow to start, and always call first or last: one pair with them is enough.
    const pairs = names
      .flatMap((one) => names.map((other) => [one, other] as const))
      .filter(([one, other]) => (one !== 'deactivation' && other !== 'deactivation') || one === 'removal');
    for (const [one, other] of pairs) {
      const organization = `last-${one}-${other}`;
      const [ada, eve] = [await person(app, organization, 'admin'), await person(app, organization, 'admin')];
      const path = `/api/orgs/${organization}/members`;
      await Promise.all([ways[one]?.(app, ada, eve, path), ways[other]?.(replica, eve, ada, path)]);
      const left = await query(
        app,
        `select 1 from memberships m join users u on u.id = m.user_id
         where m.organization_id = $1 and m.role = 'admin' and u.deactivated_at is null`,
        [ada.organizationId],
      );
      expect({ one, other, left: left.length }).toEqual({ one, other, left: 1 });
    }
  });
});
