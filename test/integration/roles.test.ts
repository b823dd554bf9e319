import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { runAdminCommand } from '../support/admin.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestApp, type TestResponse, testApp, testReplica } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

const app = testApp();
const replica = testReplica(app);

/** A stack, its owner, and a viewer who is alone in team blue. */
interface Scene extends TestStack {
  readonly viewer: Person;
  readonly teamId: string;
  readonly roles: string;
  readonly blue: string;
}

async function scene(): Promise<Scene> {
  const stack = await createStack(app);
  const viewer = await person(app, stack.organization, 'viewer');
  const teamId = await team(app, viewer.organizationId, 'blue', [viewer.userId]);
  const base = `/api/orgs/${stack.organization}`;
  return { ...stack, viewer, teamId, roles: `${base}/roles`, blue: `${base}/teams/blue/roles` };
}

const details = (...names: string[]) => ({
  __type: 'PermissionDescriptorAllow',
  permissions: names.map((name) => `stack:${name}`),
});
const make = async ({ auth, roles }: Scene, name: string, ...names: string[]): Promise<string> =>
  (await ok(app.call('POST', roles, { auth, body: { name, details: details(...names) } }))).json.id;
const edit = ({ auth, roles }: Scene, id: string, body: object): Promise<TestResponse> =>
  app.call('PATCH', `${roles}/${id}`, { auth, body });
const assign = ({ auth, blue }: Scene, id: string): Promise<TestResponse> =>
  app.call('POST', `${blue}/${id}`, { auth });
const mayUpdate = async (by: TestApp, { path, viewer }: Scene): Promise<boolean> => {
  const { json, status } = await by.call('POST', `${path}/update`, { auth: viewer.auth, body: {} });
  if (status === 200) await ok(by.call('POST', `${path}/update/${json.updateID}/cancel`, { auth: viewer.auth }));
  return status === 200;
};

describe('roles of an organization', () => {
  test('are the built-in ones and its own, which members see and admins make, change and remove', async () => {
    const of = await scene();
    const { auth, roles, viewer } = of;
    const listed = async (suffix = ''): Promise<string[]> =>
      (await ok(app.call('GET', `${roles}${suffix}`, { auth: viewer.auth }))).json.roles.map(
        ({ name }: { name: string }) => name,
      );
    expect(await listed()).toEqual(['viewer', 'member', 'admin']);
    const body = { name: 'Releaser', description: 'd', uxPurpose: '', details: details('write') };
    const { json } = await ok(app.call('POST', roles, { auth, body }));
    expect(json).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      orgId: viewer.organizationId,
      name: 'Releaser',
      description: 'd',
      resourceType: 'global',
      uxPurpose: 'role',
      defaultIdentifier: '',
      details: details('read', 'preview', 'write'),
      version: 1,
      isOrgDefault: false,
      created: expect.stringMatching(/^\d{4}-.*Z$/),
      modified: json.created,
    });
    expect([await listed('?uxPurpose=role'), await listed('?uxPurpose=policy')]).toEqual([
      ['viewer', 'member', 'admin', 'Releaser'],
      [],
    ]);
    // As the CLI does: all that it got, with what is new.
    const sent = { name: 'Auditor', description: json.description, details: json.details };
    const renamed = (await ok(edit(of, json.id, sent))).json;
    expect(renamed).toMatchObject({ name: 'Auditor', description: 'd', details: json.details, version: 2 });
    expect((await ok(edit(of, json.id, { details: details('read') }))).json).toMatchObject({
      name: 'Auditor',
      version: 3,
    });
    // A repeat changes nothing.
    expect((await ok(edit(of, json.id, { details: details('read') }))).json.version).toBe(3);
    expect((await ok(app.call('GET', `${roles}/${json.id}`, { auth: viewer.auth }))).json.version).toBe(3);
    await ok(app.call('DELETE', `${roles}/${json.id}`, { auth }));
    expect((await app.call('GET', `${roles}/${json.id}`, { auth })).status).toBe(404);
    expect((await listEvents(app, of.organization)).slice(-4).map(({ action, object }) => [action, object])).toEqual([
      ['role.create', 'Releaser'],
      ['role.change', 'Releaser'],
      ['role.change', 'Auditor'],
      ['role.remove', 'Auditor'],
    ]);
  });

  test('have names of their own, in any case, and the built-in ones stay as they are', async () => {
    const of = await scene();
    const { auth, roles } = of;
    const [one] = [await make(of, 'One', 'read'), await make(of, 'Two', 'read')];
    const statuses = await Promise.all([
      ...['one', 'Viewer', 'ADMIN'].map((name) =>
        app.call('POST', roles, { auth, body: { name, details: details('read') } }),
      ),
      edit(of, one, { name: 'two' }),
      edit(of, 'viewer', { name: 'x' }),
      app.call('DELETE', `${roles}/member`, { auth }),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([409, 409, 409, 409, 409, 409]);
    expect(statuses.at(-1)?.json.message).toMatch(/built in/);
    await ok(edit(of, one, { name: 'ONE' }));
  });

  test.each([
    [{ name: '/', details: details('read') }, /name of a role/],
    [{ name: 'x', details: details('none') }, /stack:none/],
    [{ name: 'x', details: { __type: 'PermissionDescriptorCondition' } }, /PermissionDescriptorCondition.*grants/],
    [{ name: 'x', details: null }, /the form/],
    [{ name: 'x', details: details('read'), uxPurpose: 'team' }, /--purpose/],
    [{ name: 'x', details: details('read'), resourceType: 'environment' }, /stacks/],
    [{ name: 'x', details: details('read'), description: '\0' }, /description/],
  ])('cannot be %j', async (body, message) => {
    const { auth, roles } = await scene();
    const refused = await app.call('POST', roles, { auth, body });
    expect([refused.status, refused.json.message]).toEqual([400, expect.stringMatching(message)]);
  });

  test('are limited in number, and exclude other organizations', async () => {
    const [of, other] = [await scene(), await scene()];
    const foreign = await make(other, 'theirs', 'write');
    for (const call of [edit(of, foreign, { name: 'x' }), assign(of, foreign)]) expect((await call).status).toBe(404);
    await expect(
      query(
        app,
        `insert into grants (organization_id, effect, permissions, role_id, team_id) values ($1, 'allow', 1, $2, $3)`,
        [of.viewer.organizationId, foreign, of.teamId],
      ),
    ).rejects.toThrow(/permissions/);
    await query(
      app,
      `insert into roles (organization_id, name, permissions) select $1, 'r' || n, 1 from generate_series(1, 200) n`,
      [of.viewer.organizationId],
    );
    const { auth, roles } = of;
    const refused = await app.call('POST', roles, { auth, body: { name: 'more', details: details('read') } });
    expect([refused.status, refused.json.message]).toEqual([409, expect.stringMatching(/at most 200/)]);
  });
});

describe('a team with a role', () => {
  test('has the current permissions of the role, on every replica, until it gets another one', async () => {
    const of = await scene();
    const { auth, blue } = of;
    const ids = async (): Promise<string[]> =>
      (await ok(app.call('GET', blue, { auth }))).json.roles.map(({ id }: { id: string }) => id);
    const releaser = await make(of, 'releaser', 'write');
    expect(await mayUpdate(replica, of)).toBe(false);
    await ok(assign(of, releaser));
    await ok(assign(of, releaser));
    expect([await ids(), await mayUpdate(replica, of)]).toEqual([[releaser], true]);
    await ok(edit(of, releaser, { details: details('preview') }));
    expect(await mayUpdate(replica, of)).toBe(false);
    await ok(assign(of, 'member'));
    expect([await ids(), await mayUpdate(replica, of)]).toEqual([['member'], true]);
    expect((await app.call('DELETE', `${blue}/${releaser}`, { auth })).status).toBe(404);
    await ok(app.call('DELETE', `${blue}/member`, { auth }));
    expect([await ids(), await mayUpdate(replica, of)]).toEqual([[], false]);
    for (const id of ['nobody', '00000000-0000-4000-8000-000000000000'])
      expect((await assign(of, id)).status).toBe(404);
    const actions = (await listEvents(app, of.organization)).filter(({ action }) => action.startsWith('role.'));
    expect(actions.map(({ action, object }) => [action, object])).toEqual([
      ['role.create', 'releaser'],
      ['role.assign', 'blue'],
      ['role.change', 'releaser'],
      ['role.assign', 'blue'],
      ['role.unassign', 'blue'],
    ]);
    expect(actions[3]?.details).toMatchObject({ role: 'member', instead: [releaser] });
  });

  const losses: readonly [string, (of: Scene, id: string) => Promise<TestResponse>][] = [
    ['loses the permission', (of, id) => edit(of, id, { details: details('preview', 'decrypt') })],
    ['is removed', ({ auth, roles }, id) => app.call('DELETE', `${roles}/${id}?force=true`, { auth })],
    ['is taken back', ({ auth, blue }, id) => app.call('DELETE', `${blue}/${id}`, { auth })],
    ['is replaced by a lesser one', async (of) => assign(of, await make(of, 'lesser', 'read'))],
  ];

  test.each(losses)('updates no longer when the role %s: running updates end on every replica', async (_, take) => {
    const of = await scene();
    const id = await make(of, 'releaser', 'write');
    await ok(assign(of, id));
    const stack = { ...of, auth: of.viewer.auth };
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'r0', stack)));
    await ok(append(replica, update, creation(2, 'r1', stack)));
    await ok(take(of, id));
    for (const each of [replica, app])
      expect((await append(each, update, creation(3, 'late', stack))).status).toBe(403);
  });

  test('keeps its running updates when the role is renamed, gets more, or is replaced by one that permits them', async () => {
    const of = await scene();
    const id = await make(of, 'releaser', 'write');
    await ok(assign(of, id));
    const stack = { ...of, auth: of.viewer.auth };
    const update = await startUpdate(app, stack, { journal: true });
    await ok(edit(of, id, { name: 'other', details: details('write', 'decrypt') }));
    await ok(append(app, update, creation(1, 'r0', stack)));
    await ok(assign(of, await make(of, 'second', 'admin')));
    await ok(append(replica, update, creation(2, 'r1', stack)));
    await ok(complete(app, update));
  });

  test('stops the removal of the role, unless it is forced; grants on some stacks do so as well', async () => {
    const of = await scene();
    const { auth, roles, viewer } = of;
    const id = await make(of, 'releaser', 'write');
    const body = { effect: 'allow', role: id, stacks: 'proj/*', user: viewer.login };
    const given = (await ok(app.call('POST', `/api/orgs/${of.organization}/grants`, { auth, body }))).json;
    expect(given).toMatchObject({ role: { id, name: 'releaser' }, permissions: ['read', 'preview', 'write'] });
    expect(await mayUpdate(app, of)).toBe(true);
    const { stdout } = await runAdminCommand(app, 'grant', 'list', '--organization', of.organization);
    expect(stdout).toContain(`allow read,preview,write  proj/*  user ${viewer.login}  role releaser`);
    for (const force of ['', '?force=false']) {
      const refused = await app.call('DELETE', `${roles}/${id}${force}`, { auth });
      expect([refused.status, refused.json.message]).toEqual([409, expect.stringMatching(/1 grant\..*--force/)]);
    }
    await ok(app.call('DELETE', `${roles}/${id}?force=true`, { auth }));
    expect(await mayUpdate(replica, of)).toBe(false);
  });

  test('is limited by what denies, and gives the tokens of its members no more than their scopes', async () => {
    const of = await scene();
    await ok(assign(of, 'admin'));
    const { json } = await ok(
      app.call('POST', '/api/user/tokens', {
        auth: of.viewer.auth,
        body: { scopes: [{ permissions: ['preview'], stacks: '*/*' }] },
      }),
    );
    const asToken = { ...of, viewer: { ...of.viewer, auth: `token ${json.tokenValue}` } };
    expect([await mayUpdate(app, of), await mayUpdate(app, asToken)]).toEqual([true, false]);
    await grant(app, of.viewer.organizationId, { userId: of.viewer.userId }, 'deny', ['write']);
    expect(await mayUpdate(app, of)).toBe(false);
    // On stacks alone: the organization is managed by its admins.
    expect((await app.call('GET', `/api/orgs/${of.organization}/grants`, { auth: of.viewer.auth })).status).toBe(403);
  });
});

test('a grant added while its role changes has the permissions of the changed role', async () => {
  const of = await scene();
  const id = await make(of, 'releaser', 'write');
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('update roles set permissions = 1 where id = $1', [id]);
    const adding = query(
      app,
      `insert into grants (organization_id, effect, permissions, role_id, team_id) values ($1, 'allow', 7, $2, $3)`,
      [of.viewer.organizationId, id, of.teamId],
    );
    await until(async () => {
      // By another connection: within its transaction, each sees what it saw first.
      const waiting = await query(
        app,
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return waiting.length > 0;
    }, 'the grant waits for the role');
    await client.query('commit');
    await adding;
  } finally {
    await client.end();
  }
  expect(await query(app, 'select permissions from grants where role_id = $1', [id])).toEqual([{ permissions: 1 }]);
  // Nor can it be changed by itself.
  await query(app, 'update grants set permissions = 127 where role_id = $1', [id]);
  expect(await query(app, 'select permissions from grants where role_id = $1', [id])).toEqual([{ permissions: 1 }]);
  expect(await mayUpdate(app, of)).toBe(false);
});

test('a member gets a built-in role by its id, and other roles by grants', async () => {
  const of = await scene();
  const path = `/api/orgs/${of.organization}/members/${of.viewer.login}`;
  const change = (body: object) => app.call('PATCH', path, { auth: of.auth, body });
  await ok(change({ fgaRoleId: 'member' }));
  expect(await mayUpdate(app, of)).toBe(true);
  const refused = await change({ fgaRoleId: await make(of, 'releaser', 'write') });
  expect([refused.status, refused.json.message]).toEqual([400, expect.stringMatching(/grants.*org role assign/)]);
  expect([(await change({})).status, (await change({ role: 'viewer', fgaRoleId: 'viewer' })).status]).toEqual([
    400, 400,
  ]);
});
