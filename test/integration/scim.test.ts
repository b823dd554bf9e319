import { beforeAll, describe, expect, test } from '@jest/globals';
import { runInProcess } from '../support/admin.ts';
import { listEvents } from '../support/audit.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { holdInserts, query } from '../support/database.ts';
import { grant, person, team } from '../support/grants.ts';
import { calls, expectKept, leaveRunning } from '../support/lease-owners.ts';
import { groupSchemas, membersOf, Provider, teamOf, tokenFor, userSchemas } from '../support/scim.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';

const app = testApp();
let stack: TestStack;
let provider: Provider;
let organization: string;
beforeAll(async () => {
  stack = await createStack(app);
  organization = stack.organization;
  provider = await Provider.of(app, organization);
});

const setActive = (by: Provider, id: string, active: boolean) =>
  by.patch(`Users/${id}`, { op: 'replace', path: 'active', value: active });
const idOf = async (by: Provider, userName: string): Promise<string> =>
  (await ok(by.find('Users', `userName eq "${userName}"`))).json.Resources[0].id;

/** A new organization with a stack and a provider. */
async function newOrganization(): Promise<{ at: TestStack; by: Provider }> {
  const at = await createStack(app);
  return { at, by: await Provider.of(app, at.organization) };
}

describe('who may call', () => {
  test('only tokens for provisioning, in their organization, and they may do nothing else', async () => {
    const elsewhere = await newOrganization();
    const admin = new Provider(app, organization, stack.auth);
    const refused = await admin.call('GET', 'Users');
    expect([refused.status, refused.headers['content-type'], refused.json]).toEqual([
      403,
      expect.stringMatching(/^application\/scim\+json/),
      expect.objectContaining({ status: '403', detail: expect.stringContaining('--provisioning') }),
    ]);
    expect((await new Provider(app, organization, elsewhere.by.auth).call('GET', 'Users')).status).toBe(404);
    expect((await new Provider(app, organization, 'Bearer hf-x').call('GET', 'Users')).status).toBe(401);
    const { auth } = provider;
    for (const [method, path] of [
      ['GET', stack.path],
      ['GET', `${stack.path}/export`],
      ['POST', `${stack.path}/decrypt`],
      ['DELETE', stack.path],
    ] as const)
      expect(
        (await app.call(method, path, { auth, ...(method === 'POST' ? { body: { ciphertext: 'QQ==' } } : {}) })).status,
      ).toBe(404);
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(403);
    for (const [method, path, body] of [
      ['GET', 'members'],
      ['GET', 'policypacks'],
      ['GET', 'tokens'],
      ['POST', 'tokens', { name: 'more' }],
      ['GET', 'auditlogs'],
      ['DELETE', 'members/nobody'],
    ] as const)
      expect(
        (await app.call(method, `/api/orgs/${organization}/${path}`, { auth, ...(body ? { body } : {}) })).status,
      ).toBe(403);
  });
});

test('operators make the token; whom they deactivate, no provider reactivates', async () => {
  const { at } = await newOrganization();
  const inOrganization = ['--organization', at.organization, '--provisioning'];
  const made = await runInProcess(app, 'admin', 'token', 'create', 'okta', ...inOrganization);
  const by = new Provider(app, at.organization, `Bearer ${made.stdout.trim()}`);
  const id = await by.addUser('both@example.test');
  await ok(setActive(by, id, false));
  expect((await runInProcess(app, 'admin', 'deactivate-user', 'both@example.test')).code).toBe(0);
  expect((await setActive(by, id, true)).status).toBe(409);
  expect((await runInProcess(app, 'admin', 'reactivate-user', 'both@example.test')).code).toBe(0);
  expect((await ok(setActive(by, id, true))).json.active).toBe(true);
  // An admin who had the secret could add people of other organizations without their consent.
  const tokens = `/api/orgs/${at.organization}/tokens`;
  const listed: { id: string; name: string }[] = (await ok(app.call('GET', tokens, { auth: at.auth }))).json.tokens;
  const tokenId = listed.find(({ name }) => name === 'okta')?.id ?? '';
  const rotated = await app.call('POST', `${tokens}/${tokenId}/rotate`, { auth: at.auth, body: {} });
  expect([rotated.status, rotated.json.message]).toEqual([403, expect.stringContaining('holdfast admin token rotate')]);
  await ok(by.call('GET', 'Users'));
  expect((await runInProcess(app, 'admin', 'token', 'rotate', tokenId)).code).toBe(0);
  const scoped = await runInProcess(app, 'admin', 'token', 'create', 'x', ...inOrganization, '--scope', 'read:*/*');
  expect([scoped.code, scoped.stderr]).toEqual([1, expect.stringContaining('no scopes')]);
});

describe('accounts', () => {
  test('of several organizations: each provider rules over its membership only', async () => {
    const [{ by: first, at }, { by: second, at: other }] = [await newOrganization(), await newOrganization()];
    const id = await first.addUser('shared@example.test', { displayName: 'First', externalId: '1' });
    const auth = await tokenFor(app, 'shared@example.test');
    expect(await second.addUser('Shared@Example.test', { displayName: 'Second', externalId: '2' })).toBe(id);
    const nameAt = async (by: Provider) => (await ok(by.call('GET', `Users/${id}`))).json.displayName;
    expect([await nameAt(first), await nameAt(second)]).toEqual(['First', 'Second']);
    expect((await ok(app.call('GET', '/api/user', { auth }))).json.name).toBe('First');
    const reach = async () =>
      Promise.all([at, other].map(async ({ path }) => (await app.call('GET', path, { auth })).status));
    expect(await reach()).toEqual([200, 200]);

    await ok(setActive(first, id, false));
    expect(await reach()).toEqual([404, 200]);
    const rename = { op: 'replace', path: 'userName', value: 'mine@example.test' };
    for (const by of [first, second]) {
      const { json, status } = await by.patch(`Users/${id}`, rename);
      expect([status, json.scimType]).toEqual([400, 'mutability']);
    }
    await ok(second.call('DELETE', `Users/${id}`));
    expect(await reach()).toEqual([404, 404]);
    await ok(app.call('GET', '/api/user', { auth }));
    await ok(setActive(first, id, true));
    expect(await reach()).toEqual([200, 404]);
    await ok(first.patch(`Users/${id}`, rename));
    await ok(first.call('DELETE', `Users/${id}`));
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
    const [row] = await query(app, 'select login, deactivated_at is null as active from users where id = $1', [id]);
    expect(row).toEqual({ login: 'mine@example.test', active: false });
    expect((await second.call('POST', 'Users', { userName: 'mine@example.test' })).status).toBe(409);

    expect(await first.addUser('mine@example.test')).toBe(id);
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
    expect(await membersOf(app, at.organization)).toContain('mine@example.test member');
  });

  test('that it deletes keep no way to sign in for the next person with the login', async () => {
    const { by } = await newOrganization();
    const id = await by.addUser('john@example.test');
    await setPassword(app, 'john@example.test');
    await query(
      app,
      `with passkey as (insert into passkeys (credential_id, user_id, public_key, counter, name) values ('john', $1, '', 0, 'key')),
         link as (insert into sign_in_links (user_id, link_hash, expires_at) values ($1, '', now() + interval '1 day'))
       insert into user_identities (issuer, subject, user_id) values ('https://id.example.test', 'john', $1)`,
      [id],
    );
    const signIn = async () => (await new PageBrowser(app).signIn('john@example.test')).status;
    await ok(setActive(by, id, false));
    await ok(setActive(by, id, true));
    expect(await signIn()).toBe(303);
    await ok(by.call('DELETE', `Users/${id}`));
    expect(await by.addUser('john@example.test')).toBe(id);
    expect(await signIn()).toBe(401);
    for (const table of ['user_passwords', 'passkeys', 'sign_in_links', 'user_identities'])
      expect([table, await query(app, `select 1 from ${table} where user_id = $1`, [id])]).toEqual([table, []]);
  });

  test('that it deletes leave no invitation to the next person with the login', async () => {
    const [{ by }, { at: other }] = [await newOrganization(), await newOrganization()];
    const id = await by.addUser('jane@example.test');
    await query(
      app,
      `insert into invitations (organization_id, login, user_id, role, invited_by_name, expires_at)
       select id, 'jane@example.test', $1, 'admin', 'x', now() + interval '1 day' from organizations where name = $2`,
      [id, other.organization],
    );
    await ok(by.call('DELETE', `Users/${id}`));
    expect(await by.addUser('jane@example.test')).toBe(id);
    expect(await query(app, 'select 1 from invitations where user_id = $1', [id])).toEqual([]);
  });

  test('of people who are no members can be suspended, too, and are only if the provider says so', async () => {
    const { at, by } = await newOrganization();
    const suspendedRole = async (id: string) =>
      (await query(app, 'select suspended_role as role from scim_users where user_id = $1', [id]))[0]?.['role'];
    const { json: created } = await by.call('POST', 'Users', { userName: 'later@example.test', active: false });
    expect(await suspendedRole(created.id)).toBe('member');

    const id = await by.addUser('removed@example.test');
    await ok(app.call('DELETE', `/api/orgs/${at.organization}/members/removed@example.test`, { auth: at.auth }));
    await ok(by.patch(`Users/${id}`, { op: 'replace', path: 'displayName', value: 'Removed' }));
    expect(await suspendedRole(id)).toBe(null);
    for (let call = 1; call <= 2; call++) await ok(setActive(by, id, false));
    expect(await suspendedRole(id)).toBe('member');
    const [user] = await query(app, 'select deactivated_at is null as active from users where id = $1', [id]);
    expect(user).toEqual({ active: false });
    await ok(setActive(by, id, true));
    expect(await membersOf(app, at.organization)).toContain('removed@example.test member');
  });

  test('that were there before are no provider’s: they lose their membership only', async () => {
    const { at, by } = await newOrganization();
    const member = await person(app, at.organization, 'member');
    const id = await idOf(by, member.login);
    const profile = { userName: member.login, displayName: 'X', emails: [{ value: 'x@example.test' }] };
    await ok(by.call('PUT', `Users/${id}`, profile));
    expect((await ok(app.call('GET', '/api/user', { auth: member.auth }))).json).toMatchObject({ name: member.login });
    await ok(setActive(by, id, false));
    await ok(app.call('GET', '/api/user', { auth: member.auth }));
    expect((await app.call('GET', at.path, { auth: member.auth })).status).toBe(404);
    expect((await by.call('POST', 'Users', profile)).json.scimType).toBe('uniqueness');
    await ok(setActive(by, id, true));
    await ok(app.call('GET', at.path, { auth: member.auth }));
  });

  test('that an operator or a site deactivates are not reactivated; a site admin stays active', async () => {
    const { at, by } = await newOrganization();
    const id = await by.addUser('stopped@example.test');
    await query(app, 'update users set deactivated_at = now() where id = $1', [id]);
    const shown = await ok(setActive(by, id, true));
    expect(shown.json.active).toBe(false);
    await ok(setActive(by, id, false));
    expect((await setActive(by, id, true)).status).toBe(409);
    expect(await membersOf(app, at.organization)).toHaveLength(1);
    const site = await by.addUser('site@example.test');
    await query(app, 'update users set site_admin = true where id = $1', [site]);
    const auth = await tokenFor(app, 'site@example.test');
    await ok(by.call('DELETE', `Users/${site}`));
    await ok(app.call('GET', '/api/user', { auth }));
  });

  test('get their role back, and no more than the default role when they are new', async () => {
    await using viewers = await createTestApp({
      database: app.database,
      settings: { HOLDFAST_SCIM_DEFAULT_ROLE: 'viewer' },
    });
    const { at, by } = await newOrganization();
    const id = await by.at(viewers).addUser('role@example.test', { roles: [{ value: 'admin' }] });
    expect(await membersOf(app, at.organization)).toContain('role@example.test viewer');
    await ok(
      app.call('PATCH', `/api/orgs/${at.organization}/members/role@example.test`, {
        auth: at.auth,
        body: { role: 'admin' },
      }),
    );
    await ok(setActive(by, id, false));
    await ok(setActive(by, id, true));
    expect(await membersOf(app, at.organization)).toContain('role@example.test admin');
    await ok(by.call('DELETE', `Users/${id}`));
    await by.addUser('role@example.test');
    expect(await membersOf(app, at.organization)).toContain('role@example.test member');
  });

  test('the last admin is neither suspended nor deleted, and keeps everything', async () => {
    const { at, by } = await newOrganization();
    const [admin] = await membersOf(app, at.organization);
    const id = await idOf(by, admin?.split(' ')[0] as string);
    for (const answer of [await setActive(by, id, false), await by.call('DELETE', `Users/${id}`)])
      expect([answer.status, answer.json.detail]).toEqual([409, expect.stringContaining('last admin')]);
    expect(await membersOf(app, at.organization)).toEqual([admin]);
    await ok(app.call('GET', at.path, { auth: at.auth }));
    await person(app, at.organization, 'admin');
    await ok(setActive(by, id, false));
    expect((await app.call('GET', at.path, { auth: at.auth })).status).toBe(404);
  });

  test('take an update that is running with them: its lease ends, and the stack is free', async () => {
    const { at, by } = await newOrganization();
    for (const end of [
      (id: string) => setActive(by, id, false),
      (id: string) => by.call('PUT', `Users/${id}`, { userName: 'busy@example.test', active: 'false' }),
      (id: string) => by.call('DELETE', `Users/${id}`),
    ]) {
      const owner = await createStackIn(at);
      const id = await by.addUser('busy@example.test');
      const auth = await tokenFor(app, 'busy@example.test');
      const member = { stack: { ...owner, auth }, login: 'busy@example.test', auth, tokenHash: Buffer.alloc(0), owner };
      const update = await leaveRunning(app, member);
      await ok(end(id));
      for (const call of Object.values(calls)) expect([401, 403]).toContain((await call(app, update, owner)).status);
      await expectKept(app, member, update);
      await by.call('DELETE', `Users/${id}`);
    }
  });
});

let stacks = 0;
async function createStackIn(at: TestStack): Promise<TestStack> {
  const name = `s${++stacks}`;
  await ok(app.call('POST', `/api/stacks/${at.organization}/proj`, { auth: at.auth, body: { stackName: name } }));
  return { ...at, stack: name, path: `/api/stacks/${at.organization}/proj/${name}` };
}

describe('groups', () => {
  test('take over the team of their name with its grants, and leave it behind', async () => {
    const { at, by } = await newOrganization();
    const viewer = await person(app, at.organization, 'viewer');
    const teamId = await team(app, viewer.organizationId, 'blue', [viewer.userId]);
    await grant(app, viewer.organizationId, { teamId }, 'allow', ['write']);
    const id = await by.addUser('blue@example.test');
    const created = await ok(
      by.call('POST', 'Groups', { displayName: 'Blue', externalId: 'g', members: [{ value: id }] }),
    );
    expect(created.json).toMatchObject({ id: teamId, displayName: 'Blue', externalId: 'g' });
    expect(await teamOf(app, at.organization, 'blue')).toEqual(['blue@example.test', viewer.login].sort());
    const again = await by.call('POST', 'Groups', { displayName: 'BLUE' });
    expect([again.status, again.json.scimType]).toEqual([409, 'uniqueness']);
    expect((await by.call('POST', 'Groups', { displayName: 'green', externalId: 'g' })).status).toBe(409);
    expect(await teamOf(app, at.organization, 'green')).toBeNull();
    await ok(by.call('DELETE', `Groups/${teamId}`));
    expect((await by.call('GET', `Groups/${teamId}`)).status).toBe(404);
    expect(await teamOf(app, at.organization, 'blue')).toEqual([]);
    expect(await query(app, 'select 1 from grants where team_id = $1', [teamId])).toHaveLength(1);
  });

  test('have users of the organization only, and cannot be renamed to a team with other grants', async () => {
    const [{ by }, { by: other }] = [await newOrganization(), await newOrganization()];
    const stranger = await other.addUser('stranger@example.test');
    const { json: group } = await ok(by.call('POST', 'Groups', { schemas: groupSchemas, displayName: 'own' }));
    for (const value of [stranger, 'not-an-id', `${stranger}x`]) {
      const { json, status } = await by.patch(`Groups/${group.id}`, { op: 'add', path: 'members', value: [{ value }] });
      expect([status, json.scimType]).toEqual([400, 'invalidValue']);
    }
    await ok(by.patch(`Groups/${group.id}`, { op: 'remove', path: 'members', value: [{ value: stranger }] }));
    const admin = await person(app, by.organization, 'admin');
    await team(app, admin.organizationId, 'root', []);
    for (const value of ['root', 'Root']) {
      const rename = await by.patch(`Groups/${group.id}`, { op: 'replace', path: 'displayName', value });
      expect([rename.status, rename.json.scimType]).toEqual([409, 'uniqueness']);
    }
    expect((await by.call('GET', `Groups/${stranger}`)).status).toBe(404);
    expect((await other.call('GET', `Groups/${group.id}`)).status).toBe(404);
    const foreign = await ok(by.call('POST', 'Groups', { displayName: '開発チーム' }));
    expect(foreign.json.displayName).toBe('開発チーム');
  });

  test('end the leases of users who lose a grant with them', async () => {
    const { at, by } = await newOrganization();
    const viewer = await person(app, at.organization, 'viewer');
    const { json: group } = await ok(
      by.call('POST', 'Groups', { displayName: 'deployers', members: [{ value: viewer.userId }] }),
    );
    await grant(app, viewer.organizationId, { teamId: group.id }, 'allow', ['write']);
    const member = {
      stack: { ...at, auth: viewer.auth },
      login: viewer.login,
      auth: viewer.auth,
      tokenHash: Buffer.alloc(0),
      owner: at,
    };
    const update = await leaveRunning(app, member);
    await ok(by.patch(`Groups/${group.id}`, { op: 'Remove', path: 'members', value: [{ value: viewer.userId }] }));
    for (const call of Object.values(calls)) expect((await call(app, update, at)).status).toBe(403);
    await expectKept(app, member, update);
  });
});

describe('replicas', () => {
  test('that create one user concurrently: one succeeds, the other reports that it exists', async () => {
    await using replica = await createTestApp({ database: app.database, dataDir: app.dataDir });
    const { at, by } = await newOrganization();
    await using gate = await holdInserts(app, 'scim_users');
    const body = { schemas: userSchemas, userName: 'twice@example.test', externalId: 't' };
    const answers = [by, by.at(replica)].map((each) => each.call('POST', 'Users', body));
    await gate.reached(2);
    await gate.release();
    const statuses = (await Promise.all(answers)).map(({ json, status }) => [status, json.scimType]);
    expect(statuses.sort()).toEqual([
      [201, undefined],
      [409, 'uniqueness'],
    ]);
    expect(await membersOf(app, at.organization)).toHaveLength(2);
  });

  test('a change that waits for another is not made with a token that was revoked meanwhile', async () => {
    await using replica = await createTestApp({ database: app.database, dataDir: app.dataDir });
    const { at, by } = await newOrganization();
    const late = await Provider.of(app, at.organization);
    await using gate = await holdInserts(app, 'scim_users');
    const first = by.call('POST', 'Users', { userName: 'before@example.test' });
    await gate.reached(1);
    const second = by.at(replica).call('POST', 'Users', { userName: 'after@example.test' });
    await gate.reached(2);
    await query(
      app,
      `update api_tokens set revoked_at = now() where kind = 'service' and organization_id in (
      select id from organizations where name = $1) and name <> (select name from api_tokens where kind = 'service' order by created_at desc limit 1)`,
      [at.organization],
    );
    await gate.release();
    expect([(await first).status, (await second).status]).toEqual([201, 401]);
    expect((await ok(late.find('Users', 'userName sw "after"'))).json.totalResults).toBe(0);
  });
});

describe('input', () => {
  test('of wrong types and shapes is refused, and changes nothing', async () => {
    const { at, by } = await newOrganization();
    const id = await by.addUser('shape@example.test');
    const { json: group } = await ok(by.call('POST', 'Groups', { displayName: 'shape', members: [{ value: id }] }));
    const bodies: [string, string, unknown][] = [
      ...[[], 3, 'x', null, {}, { userName: 5 }, { userName: 'a b' }, { userName: 'x'.repeat(101) }].map(
        (body): [string, string, unknown] => ['POST', 'Users', body],
      ),
      ['POST', 'Users', { userName: 'ok', active: 'maybe' }],
      ['POST', 'Users', { userName: 'ok', emails: [{ value: {} }] }],
      ['POST', 'Users', { userName: 'ok', name: [] }],
      ['POST', 'Users', { userName: 'ok', displayName: 'x\u0000' }],
      ['POST', 'Users', { userName: 'ok', externalId: 'x'.repeat(300) }],
      ['POST', 'Groups', { displayName: '' }],
      ['POST', 'Groups', { displayName: 'x', members: [3] }],
      ['POST', 'Groups', { displayName: 'x', members: [{ value: null }] }],
      ...[
        {},
        { Operations: {} },
        { Operations: [] },
        { Operations: [3] },
        { Operations: [{ op: 'move', path: 'active' }] },
        { Operations: [{ op: 'remove' }] },
        { Operations: [{ op: 'replace', value: [] }] },
        { Operations: [{ op: 'replace', path: 7, value: 'x' }] },
        { Operations: [{ op: 'replace', path: 'a[b', value: 'x' }] },
        { Operations: [{ op: 'replace', path: 'emails[type nope "work"].value', value: 'x' }] },
        { Operations: [{ op: 'replace', path: 'active', value: 'no' }] },
        { Operations: [{ op: 'remove', path: 'active' }] },
        { Operations: [{ op: 'remove', path: 'userName' }] },
      ].map((body): [string, string, unknown] => ['PATCH', `Users/${id}`, body]),
      ['PATCH', `Groups/${group.id}`, { Operations: [{ op: 'remove', path: 'members[display eq "x"]' }] }],
      ['PATCH', `Groups/${group.id}`, { Operations: [{ op: 'remove', path: 'displayName' }] }],
      // The first operation is fine, so it must be taken back with the second.
      [
        'PATCH',
        `Groups/${group.id}`,
        {
          Operations: [
            { op: 'remove', path: 'members' },
            { op: 'add', path: 'members', value: [{ value: 'x' }] },
          ],
        },
      ],
    ];
    for (const [method, path, body] of bodies) {
      const answer = await by.call(method, path, JSON.stringify(body));
      expect({ body, status: answer.status, ...answer.json }).toMatchObject({
        body,
        status: '400',
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        scimType: expect.stringMatching(/^(invalid(Syntax|Value|Path|Filter)|noTarget|mutability)$/),
      });
    }
    expect((await by.call('POST', 'Users', '{')).status).toBe(400);
    expect(await membersOf(app, at.organization)).toHaveLength(2);
    expect(await teamOf(app, at.organization, 'shape')).toEqual(['shape@example.test']);
  });

  test('names conflict whatever their case; PUT clears what it leaves out, PATCH changes what its path selects', async () => {
    const { by } = await newOrganization();
    const whole = {
      userName: 'Case@example.test',
      displayName: 'Case',
      externalId: 'e1',
      name: { givenName: 'Given', familyName: 'Family' },
      emails: [{ type: 'work', primary: true, value: 'one@example.test' }],
    };
    const id = await by.addUser(whole.userName, whole);
    const read = async () => (await ok(by.call('GET', `Users/${id}`))).json;
    const again = await by.call('POST', 'Users', { userName: 'cASE@EXAMPLE.test' });
    expect([again.status, again.json.scimType]).toEqual([409, 'uniqueness']);
    const other = await by.addUser('other@example.test');
    for (const call of [
      by.call('PUT', `Users/${other}`, { userName: 'CASE@example.test' }),
      by.patch(`Users/${other}`, { op: 'Replace', path: 'USERNAME', value: 'CASE@example.test' }),
    ]) {
      const { json, status } = await call;
      expect([status, json.scimType]).toEqual([409, 'uniqueness']);
    }
    const setEmail = (selection: string, value: string) =>
      by.patch(`Users/${id}`, { op: 'replace', path: `emails[${selection}].value`, value });
    await ok(setEmail('type eq "work"', 'two@example.test'));
    expect((await read()).emails).toMatchObject([{ value: 'two@example.test' }]);
    await setEmail('type eq "home"', 'home@example.test');
    expect((await read()).emails).toMatchObject([{ value: 'two@example.test' }]);
    await ok(setEmail('primary eq true and value eq "TWO@example.test"', 'three@example.test'));
    expect((await read()).emails).toMatchObject([{ value: 'three@example.test' }]);
    await ok(by.patch(`Users/${id}`, { op: 'replace', path: 'name.givenName', value: 'New' }));
    expect((await read()).name).toMatchObject({ givenName: 'New', familyName: 'Family' });
    await ok(setActive(by, id, false));
    await ok(by.call('PUT', `Users/${id}`, { userName: whole.userName, displayName: 'Case' }));
    const cleared = await read();
    expect(cleared).toMatchObject({ userName: whole.userName, displayName: 'Case', active: false });
    expect([cleared.externalId ?? '', cleared.emails ?? [], cleared.name?.givenName ?? '']).toEqual(['', [], '']);
  });

  test('filters are bounded, and say what they do not support', async () => {
    const nested = (depth: number) => `${'('.repeat(depth)}userName pr${')'.repeat(depth)}`;
    const terms = (count: number) => Array.from({ length: count }, () => 'userName eq "x"').join(' or ');
    for (const filter of [
      nested(11),
      nested(2_000),
      terms(51),
      `userName eq "${'x'.repeat(5_000)}"`,
      'userName',
      'userName eq',
      'userName eq "x',
      'userName eq x',
      'userName gt "x"',
      'password eq "x"',
      'constructor eq "x"',
      'active eq "maybe"',
      'id co "x"',
      'not id eq "x"',
      'userName eq "x" userName eq "y"',
      'userName eq "x") or (id pr',
      'emails[type eq "work"',
      `' or 1=1 --`,
    ]) {
      const { json, status } = await provider.find('Users', filter);
      expect({ filter, status, type: json.scimType }).toEqual({ filter, status: 400, type: 'invalidFilter' });
    }
    expect((await provider.find('Users', nested(10))).status).toBe(200);
    for (const query of ['count=x', 'startIndex=1e9', 'count=99999999999'])
      expect((await provider.call('GET', `Users?${query}`)).status).toBe(400);
  });

  test('filters select, and pages have every user once', async () => {
    const { by } = await newOrganization();
    const ids: string[] = [];
    for (const name of ['p1', 'p2', 'p3', 'p4'])
      ids.push(
        await by.addUser(`${name}@example.test`, {
          displayName: name.toUpperCase(),
          externalId: name,
          active: name !== 'p4',
        }),
      );
    const found = async (filter: string) =>
      (await ok(by.find('Users', filter))).json.Resources.map(
        ({ displayName }: { displayName: string }) => displayName,
      );
    expect(await found('externalId eq "p2"')).toEqual(['P2']);
    expect(await found('externalId eq "P2"')).toEqual([]);
    expect(await found('displayName eq "p3" or userName eq "p1@example.test"')).toEqual(['P1', 'P3']);
    expect(
      await found('userName co "@example" and not (displayName sw "p1" or externalId eq "p2") and active eq true'),
    ).toEqual(['P3']);
    const admin = (await found('userName pr')).find((name: string) => !/^P[1-4]$/.test(name));
    expect(await found('not (externalId eq "p1")')).toEqual([admin, 'P2', 'P3', 'P4']);
    expect(await found('not (externalId eq "p1" or displayName sw "P2")')).toEqual([admin, 'P3', 'P4']);
    expect(await found('active eq "False"')).toEqual(['P4']);
    expect(await found('userName ew "4@EXAMPLE.test" and emails pr')).toEqual([]);
    expect(await found(String.raw`displayName eq "p\"3"`)).toEqual([]);
    const seen: string[] = [];
    for (let startIndex = 1; ; ) {
      const { json } = await ok(by.call('GET', `Users?startIndex=${startIndex}&count=2`));
      expect(json).toMatchObject({ totalResults: 5, startIndex });
      if (json.itemsPerPage === 0) break;
      seen.push(...json.Resources.map(({ id }: { id: string }) => id));
      startIndex += json.itemsPerPage;
    }
    expect(seen).toHaveLength(5);
    expect(seen).toEqual(expect.arrayContaining(ids));
    expect((await ok(by.call('GET', 'Users?count=0'))).json).toMatchObject({ totalResults: 5, Resources: [] });
    expect((await ok(by.call('GET', 'Users?startIndex=-3&count=-1'))).json).toMatchObject({
      startIndex: 1,
      Resources: [],
    });
  });

  test('huge lists of members are stored at once, or refused as a whole', async () => {
    const { by, at } = await newOrganization();
    const { json: group } = await ok(by.call('POST', 'Groups', { displayName: 'everybody' }));
    const rows = await query<{ id: string }>(
      app,
      `with added as (insert into users (login) select 'crowd' || lpad(n::text, 5, '0') from generate_series(1, 2000) n returning id),
         joined as (insert into memberships (organization_id, user_id, role) select o.id, a.id, 'viewer' from added a, organizations o where o.name = $1)
       select id from added`,
      [at.organization],
    );
    const value = rows.map(({ id }) => ({ value: id }));
    await ok(by.patch(`Groups/${group.id}`, { op: 'add', path: 'members', value }));
    const { json } = await ok(by.call('GET', `Groups/${group.id}`));
    expect(json.members).toHaveLength(2_000);
    const events = await listEvents(app, at.organization);
    const logins = events
      .filter(({ action }) => action === 'team.add')
      .flatMap(({ details }) => details['logins'] as string[]);
    expect(new Set(logins).size).toBe(2_000);
    const operations = Array.from({ length: 1_001 }, () => ({ op: 'add', path: 'members', value: value.slice(0, 1) }));
    expect((await by.patch(`Groups/${group.id}`, ...operations)).status).toBe(413);
    await ok(by.patch(`Groups/${group.id}`, { op: 'replace', path: 'members', value: value.slice(0, 3) }));
    expect((await ok(by.call('GET', `Groups/${group.id}`))).json.members).toHaveLength(3);
    expect((await by.call('POST', 'Groups', `{"displayName":"${'x'.repeat(5_000_000)}"}`)).status).toBe(413);
  });
});

test('every change is an event, in the order in which it was made; calls that change nothing are none', async () => {
  const { at, by } = await newOrganization();
  const before = (await listEvents(app, at.organization)).length;
  const id = await by.addUser('event@example.test', { externalId: 'e' });
  const { json: group } = await ok(by.call('POST', 'Groups', { displayName: 'Events', members: [{ value: id }] }));
  await ok(setActive(by, id, false));
  await ok(setActive(by, id, false));
  await ok(setActive(by, id, true));
  await ok(by.patch(`Users/${id}`, { op: 'replace', path: 'displayName', value: 'E' }));
  await ok(by.patch(`Groups/${group.id}`, { op: 'add', path: 'members', value: [{ value: id }] }));
  await ok(by.call('DELETE', `Users/${id}`));
  await ok(by.call('DELETE', `Groups/${group.id}`));
  const admin = new Provider(app, at.organization, at.auth);
  expect((await admin.call('DELETE', `Users/${id}`)).status).toBe(403);
  const events = (await listEvents(app, at.organization)).slice(before);
  const login = 'event@example.test';
  expect(events.map(({ action, object, outcome }) => `${action} ${object} ${outcome}`)).toEqual([
    `user.create ${login} done`,
    `member.provision ${login} done`,
    `member.add ${login} done`,
    'team.create Events done',
    'team.provision Events done',
    'team.add Events done',
    `user.deactivate ${login} done`,
    `member.remove ${login} done`,
    `user.reactivate ${login} done`,
    `member.add ${login} done`,
    `member.provision ${login} done`,
    `user.deactivate ${login} done`,
    `member.remove ${login} done`,
    'team.delete Events done',
    `member.provision ${at.organization} refused`,
  ]);
  expect(events[0]).toMatchObject({ sign_in: 'service-token', user_id: null, granted_by: 'token' });
});
