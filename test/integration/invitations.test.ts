import { beforeAll, expect, test } from '@jest/globals';
import { deleteEndedSignIns } from '../../src/workers/identity/delete-sign-ins.ts';
import { listEvents } from '../support/audit.ts';
import { browserOf } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { type Person, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let organization: string;
let admin: Person;

beforeAll(async () => {
  ({ organization } = await createStack(app));
  admin = await person(app, organization, 'admin');
});

const stranger = () => person(app, `${organization}-other`, 'member');
const change = (by: Person, procedure: string, input: object) =>
  command(app, by.token, procedure, { organization, ...input });
const invite = (login: string, role = 'viewer', by = admin) => change(by, 'members.invite', { login, role });
const listed = async (by = admin) => (await ask(app, by.token, 'members.invitations', { organization })).data.items;
const own = async (of: Person) => (await ask(app, of.token, 'me.invitations')).data.items;
const isMember = async (who: Person) => (await ask(app, who.token, 'members.list', { organization })).error === null;
const answer = (who: Person, procedure: string, to = organization) =>
  command(app, who.token, procedure, { organization: to });
const lastEvent = async () => (await listEvents(app, organization)).at(-1);

test('where there is one organization its admins add members; with a second one only site admins do, and nobody learns who exists', async () => {
  const add = (login: string, by = admin) => change(by, 'members.add', { login, role: 'viewer' });
  const mayAdd = async (by = admin) => (await ask(app, by.token, 'me.get')).data.mayAddMembers;
  await query(app, `insert into users (login) values ('first'), ('second'), ('third')`);
  expect(await query(app, 'select 1 from organizations')).toHaveLength(1);
  expect(await mayAdd()).toBe(true);
  expect((await add('first')).error).toBeNull();
  await person(app, `${organization}-other`, 'member');
  expect(await mayAdd()).toBe(false);
  const refused = await add('second');
  expect(refused).toMatchObject({ status: 403, error: { message: expect.stringContaining('invite the user') } });
  expect(await add('no-such-user')).toEqual(refused);
  const operator = await person(app, organization, 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [operator.userId]);
  expect(await mayAdd(operator)).toBe(true);
  expect((await add('second', operator)).error).toBeNull();
});

test('a person accepts an invitation, by tRPC, REST or the account page, and is a member only then', async () => {
  const byProcedure = await stranger();
  expect((await invite(byProcedure.login, 'member')).error).toBeNull();
  expect(await listed()).toMatchObject([{ login: byProcedure.login, role: 'member', invitedBy: admin.login }]);
  expect(await isMember(byProcedure)).toBe(false);
  expect((await ask(app, byProcedure.token, 'me.get')).data.invitations).toBe(1);
  expect(await own(byProcedure)).toMatchObject([{ organization, role: 'member', invitedBy: admin.login }]);
  expect((await answer(byProcedure, 'me.accept')).error).toBeNull();
  expect(await isMember(byProcedure)).toBe(true);
  expect(await lastEvent()).toMatchObject({
    ...{ action: 'member.accept', login: byProcedure.login, object: byProcedure.login },
    details: { role: 'member', invitedBy: admin.login },
  });
  expect(await listed()).toEqual([]);
  expect(await answer(byProcedure, 'me.accept')).toMatchObject({ status: 404 });
  expect(await invite(byProcedure.login)).toMatchObject({ status: 409 });

  const byRest = await stranger();
  const rest = (method: string, url: string, by: Person, body?: object) =>
    app.call(method, url, { auth: by.auth, ...(body === undefined ? {} : { body }) });
  const invitations = `/api/orgs/${organization}/invitations`;
  expect((await rest('POST', invitations, admin, { login: byRest.login, role: 'admin' })).status).toBe(204);
  expect((await ok(rest('GET', invitations, admin))).json.invitations).toMatchObject([{ login: byRest.login }]);
  const [shown] = (await ok(rest('GET', '/api/user/invitations', byRest))).json.invitations;
  expect(shown).toMatchObject({ organization, role: 'admin', invitedBy: admin.login });
  expect(shown.expires - shown.created).toBe(14 * 86_400);
  expect((await rest('POST', `/api/user/invitations/${organization}/accept`, byRest)).status).toBe(204);
  expect(await isMember(byRest)).toBe(true);

  const byPage = await stranger();
  await invite(byPage.login);
  const browser = await browserOf(app, byPage.login);
  expect((await browser.get('/account')).text).toContain(`${organization}, as viewer`);
  expect((await browser.post('/account/invitations/accept', { organization })).status).toBe(303);
  expect(await isMember(byPage)).toBe(true);
  expect((await browser.post('/account/leave', { organization })).status).toBe(303);
  expect(await isMember(byPage)).toBe(false);
  await invite(byPage.login);
  expect((await browser.post('/account/invitations/decline', { organization })).status).toBe(303);
  expect((await browser.get('/account')).text).not.toContain('Invitations');
});

test('a user whom the identity provider of the organization has suspended is no member by an invitation', async () => {
  const who = await stranger();
  await invite(who.login);
  await query(
    app,
    `insert into scim_users (organization_id, user_id, suspended_role) select id, $2, 'admin' from organizations where name = $1`,
    [organization, who.userId],
  );
  expect(await answer(who, 'me.accept')).toMatchObject({
    status: 409,
    error: { message: expect.stringContaining('suspended') },
  });
  expect(await isMember(who)).toBe(false);
  await query(app, 'update scim_users set suspended_role = null where user_id = $1', [who.userId]);
  expect((await answer(who, 'me.accept')).error).toBeNull();
});

test('a user who declines reveals only that to the organization', async () => {
  const who = await stranger();
  await invite(who.login);
  expect((await answer(who, 'me.decline')).error).toBeNull();
  expect(await lastEvent()).toMatchObject({
    ...{ action: 'member.decline', login: who.login, address: '', user_agent: '', token_id: null, token_name: '' },
  });
  expect(await isMember(who)).toBe(false);
  expect(await answer(who, 'me.accept')).toMatchObject({ status: 404 });
});

test('an invitation for an unknown login looks like any other, and does not apply to a user who gets the login later', async () => {
  const login = `nobody-${Math.random().toString(36).slice(2)}`;
  const known = await stranger();
  const gone = await stranger();
  await query(app, 'update users set deactivated_at = now() where id = $1', [gone.userId]);
  const answers = [];
  for (const each of [login, known.login, gone.login]) {
    answers.push(await invite(each));
    const rest = { auth: admin.auth, body: { login: each, role: 'viewer' } };
    answers.push((await app.call('POST', `/api/orgs/${organization}/invitations`, rest)).status);
  }
  expect(answers).toEqual([answers[0], 204, answers[0], 204, answers[0], 204]);
  const shown = (await listed()).map(
    ({ login: _login, at: _at, until: _until, ...rest }: Record<string, unknown>) => rest,
  );
  expect(shown).toEqual([shown[0], shown[0], shown[0]]);
  const late = await app.createUser(`${organization}-late`, 'member', login);
  expect((await ask(app, late, 'me.invitations')).data.items).toEqual([]);
  expect(await command(app, late, 'me.accept', { organization })).toMatchObject({ status: 404 });
  for (const each of [login, known.login, gone.login])
    expect((await change(admin, 'members.withdraw', { login: each })).error).toBeNull();
  expect(await lastEvent()).toMatchObject({ action: 'member.withdraw', object: gone.login });
  expect(await change(admin, 'members.withdraw', { login })).toMatchObject({ status: 404 });
  expect(await own(known)).toEqual([]);
  expect(await invite('not a login')).toMatchObject({ status: 400 });
});

test('an invitation ends after 14 days, with the rights of its author, and with a membership by other means', async () => {
  const who = await stranger();
  await invite(who.login);
  await query(app, `update invitations set expires_at = expires_at - interval '14 days'`);
  expect([await listed(), await own(who)]).toEqual([[], []]);
  expect(await answer(who, 'me.accept')).toMatchObject({ status: 404 });
  await deleteEndedSignIns(app.context);
  expect(await query(app, 'select 1 from invitations')).toEqual([]);

  for (const end of [
    (by: Person) => change(admin, 'members.setRole', { login: by.login, role: 'member' }),
    (by: Person) => change(admin, 'members.remove', { login: by.login }),
    (by: Person) => query(app, 'update users set deactivated_at = now() where id = $1', [by.userId]),
  ]) {
    const other = await person(app, organization, 'admin');
    expect((await invite(who.login, 'admin', other)).error).toBeNull();
    expect(await own(who)).toHaveLength(1);
    await end(other);
    expect(await own(who)).toEqual([]);
  }
  await invite(who.login);
  await query(app, `insert into memberships (organization_id, user_id, role) values ($1, $2, 'viewer')`, [
    admin.organizationId,
    who.userId,
  ]);
  expect(await query(app, 'select 1 from invitations')).toEqual([]);
});

test('at most 100 invitations of an organization are open', async () => {
  await query(
    app,
    `insert into invitations (organization_id, login, role, invited_by_name, expires_at)
     select $1, 'many-' || n, 'viewer', 'x', now() + interval '1 day' from generate_series(1, 100) n`,
    [admin.organizationId],
  );
  expect(await invite('one-more')).toMatchObject({ status: 409, error: { message: expect.stringContaining('100') } });
  expect((await invite('many-7', 'admin')).error).toBeNull();
  await query(app, `delete from invitations where login like 'many-%'`);
});

test('only admins invite, and only the person answers or leaves: no token with scopes, of an organization or a run', async () => {
  const member = await person(app, organization, 'member');
  for (const [procedure, input] of [
    ['members.invite', { login: 'x', role: 'viewer' }],
    ['members.withdraw', { login: 'x' }],
  ] as const)
    expect(await change(member, procedure, input)).toMatchObject({ status: 403 });
  expect(await ask(app, member.token, 'members.invitations', { organization })).toMatchObject({ status: 403 });
  const who = await stranger();
  await invite(who.login);
  expect(await answer(member, 'me.accept')).toMatchObject({ status: 404 });
  const make = async (url: string, auth: string, body: object) =>
    (await ok(app.call('POST', url, { auth, body }))).json.tokenValue as string;
  const scopes = [{ permissions: ['read'], stacks: '*/*' }];
  for (const token of [
    await make('/api/user/tokens', who.auth, { name: 'narrow', scopes }),
    await make(`/api/orgs/${organization}/tokens`, admin.auth, { name: 'bot', admin: true }),
  ])
    for (const procedure of ['me.accept', 'me.decline', 'me.leave'])
      expect(await command(app, token, procedure, { organization })).toMatchObject({ status: 403 });
  expect((await own(who)).length).toBe(1);
});

test('a member can leave their own organization, but not as the last admin', async () => {
  const member = await person(app, organization, 'member');
  expect((await answer(member, 'me.leave')).error).toBeNull();
  expect(await lastEvent()).toMatchObject({ action: 'member.leave', login: member.login, object: member.login });
  expect(await isMember(member)).toBe(false);
  const unknown = await answer(member, 'me.leave', 'no-such-organization');
  expect(await answer(member, 'me.leave')).toMatchObject({ status: 404, error: { kind: unknown.error?.kind } });
  const alone = await person(app, `${organization}-alone`, 'admin');
  expect(await answer(alone, 'me.leave', `${organization}-alone`)).toMatchObject({
    ...{ status: 409, error: { message: expect.stringContaining('last admin') } },
  });
  const leave = () => app.call('DELETE', `/api/user/organizations/${organization}-alone`, { auth: alone.auth });
  expect((await leave()).status).toBe(409);
  const browser = await browserOf(app, alone.login);
  expect(await browser.post('/account/leave', { organization: `${organization}-alone` })).toMatchObject({
    status: 409,
  });
  await person(app, `${organization}-alone`, 'admin');
  expect((await leave()).status).toBe(204);
});
