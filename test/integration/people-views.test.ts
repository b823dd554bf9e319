import { beforeAll, expect, test } from '@jest/globals';
import { appRouter } from '../../src/api/router.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { resolvedDocument } from '../support/openapi.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { queryPath } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let stack: TestStack;
let updateId: string;

/** Who asks, and whose addresses they may see; null: everybody's. */
const callers: Record<string, { readonly auth: string; readonly knows: readonly string[] | null }> = {};
let everybody: readonly string[];

beforeAll(async () => {
  stack = await createStack(app);
  const { organization } = stack;
  const [admin, viewer, member] = (await Promise.all(
    (['admin', 'viewer', 'member'] as const).map((role) => person(app, organization, role)),
  )) as [Person, Person, Person];
  await query(app, `update users set email = login || '@people.example', display_name = 'Name of ' || login`);
  everybody = (await query<{ email: string }>(app, 'select email from users')).map(({ email }) => email);
  const blue = await team(app, admin.organizationId, 'blue', [viewer.userId, member.userId]);
  await grant(app, admin.organizationId, { userId: member.userId }, 'allow', ['write']);
  await grant(app, admin.organizationId, { teamId: blue }, 'allow', ['write']);
  const make = async (path: string, body: object) => {
    const { json } = await ok(app.call('POST', path, { auth: admin.auth, body }));
    return { auth: `token ${json.tokenValue}`, id: json.id as string };
  };
  const tokens = `/api/orgs/${organization}/tokens`;
  const service = await make(tokens, { name: 'one-stack', service: true });
  await grant(app, admin.organizationId, { tokenId: service.id }, 'allow', ['read', 'write', 'manage'], {
    stacks: `${stack.project}/${stack.stack}`,
  });
  const scopes = [{ permissions: ['read', 'manage'], stacks: '*/*' }];
  const add = (name: string, auth: string, knows: readonly string[] | null) => {
    callers[name] = { auth, knows };
  };
  add('admin', admin.auth, null);
  add('token of the organization as admin', (await make(tokens, { name: 'a', admin: true })).auth, null);
  add('viewer', viewer.auth, [`${viewer.login}@people.example`]);
  add('member', member.auth, [`${member.login}@people.example`]);
  const narrow = await make('/api/user/tokens', { name: 'narrow', scopes });
  add('token of an admin with scopes', narrow.auth, [`${admin.login}@people.example`]);
  add('service of one stack', service.auth, []);
  add('token of the organization', (await make(tokens, { name: 'm' })).auth, []);
  add('token of a team', (await make(`/api/orgs/${organization}/teams/blue/tokens`, { name: 't' })).auth, []);
  updateId = (await startUpdate(app, stack)).id;
});

/** Calls as everybody, and returns which addresses each saw that they may not know. Names of those who saw any go to `seen`. */
async function leaks(name: string, url: string, seen: Set<string>): Promise<object[]> {
  const found: object[] = [];
  for (const [caller, { auth, knows }] of Object.entries(callers)) {
    const { text } = await app.call('GET', url, { auth, ...(url.startsWith('/trpc') ? { accept: null } : {}) });
    const shown = everybody.filter((email) => text.includes(email));
    if (shown.length > 0 && caller === 'admin') seen.add(name);
    const wrong = knows === null ? [] : shown.filter((email) => !knows.includes(email));
    if (wrong.length > 0) found.push({ name, caller, wrong });
  }
  return found;
}

const listing = [
  'GET /api/orgs/:organization/members',
  'GET /api/orgs/:organization/teams',
  'GET /api/orgs/:organization/teams/:team',
  'GET /api/stacks/:organization/:project/:stack/collaborators',
];

test('no route shows an address but to admins of the organization and to the person', async () => {
  const values: Record<string, string> = {
    ...{ organization: stack.organization, project: stack.project, stack: stack.stack, team: 'blue' },
    ...{ stackVersion: '1', updateId, version: '1', role: 'viewer', group: 'default-policy-group' },
  };
  const seen = new Set<string>();
  const found: object[] = [];
  for (const route of listRoutes(app.app)) {
    const [method, pattern] = route.split(' ') as [string, string];
    if (method !== 'GET' || !pattern.startsWith('/api/')) continue;
    const url = pattern.replace(/:kind\(.*\)\//, 'update/').replace(/:(\w+)/g, (_all, name) => values[name] ?? 'none');
    found.push(...(await leaks(route, url, seen)));
  }
  expect(found).toEqual([]);
  // The walk sees addresses where they are.
  expect([...seen].sort()).toEqual([...listing, 'GET /api/user'].sort());
});

test('every response that has an address by its schema is one of those', async () => {
  const { paths } = await resolvedDocument(app);
  const found: string[] = [];
  for (const [path, methods] of Object.entries<Record<string, { responses?: object }>>(paths))
    for (const [method, { responses = {} }] of Object.entries(methods))
      if (/"(\w*email\w*|emails)":/i.test(JSON.stringify(responses)))
        found.push(`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
  expect(found.filter((route) => !/^\w+ \/scim\//.test(route)).sort()).toEqual(
    // Admins alone create teams and add members. SCIM is called by the identity provider of the organization alone.
    [
      ...[...listing, 'GET /api/user', 'POST /api/orgs/:organization/teams/pulumi'],
      'POST /api/orgs/:organization/members/:login',
      // Of site admins alone.
      ...['GET /api/operator/users', 'POST /api/operator/users', 'GET /api/operator/users/:login'],
    ].sort(),
  );
});

test('no procedure shows an address but to admins of the organization and to the person', async () => {
  const { organization, project, stack: name } = stack;
  const seen = new Set<string>();
  const found: object[] = [];
  const queries = Object.entries(appRouter._def.procedures as unknown as Record<string, { _def: { type: string } }>)
    .filter(([, { _def }]) => _def.type === 'query')
    .map(([procedure]) => procedure);
  for (const procedure of queries) {
    const { input = {}, needs } = procedureTable[procedure] as (typeof procedureTable)[string];
    const place = ['user', 'owner', 'operator'].includes(needs) ? {} : { organization, project, stack: name };
    const rest = typeof input === 'function' ? input(place) : input;
    found.push(...(await leaks(procedure, queryPath(procedure, { ...place, ...rest }), seen)));
  }
  expect(found).toEqual([]);
  expect([...seen]).toEqual(['members.list']);
});

test('machines without the management of the organization list no members', async () => {
  const { organization } = stack;
  for (const [caller, { auth, knows }] of Object.entries(callers)) {
    const isMachine = knows !== null && !['viewer', 'member'].includes(caller);
    const call = (url: string) => app.call('GET', url, { auth });
    const members = await call(`/api/orgs/${organization}/members`);
    const procedures = ['members.list', 'teams.members'].map((name) =>
      app.call('GET', queryPath(name, { organization, team: name === 'teams.members' ? 'blue' : undefined }), {
        auth,
        accept: null,
      }),
    );
    const statuses = [members.status, ...(await Promise.all(procedures)).map(({ status }) => status)];
    expect([caller, statuses]).toEqual([caller, isMachine ? [403, 403, 403] : [200, 200, 200]]);
    const { teams } = (await ok(call(`/api/orgs/${organization}/teams`))).json;
    expect([caller, teams.map((each: { members: [] }) => each.members.length)]).toEqual([caller, [isMachine ? 0 : 2]]);
  }
});

test('nor do they through the access to a stack, which names tokens without access to it to admins of the organization only', async () => {
  const { organization, project, stack: name } = stack;
  const [row] = await query<{ id: string }>(
    app,
    `select id from api_tokens where organization_id = (select id from organizations where name = $1) and name = 'one-stack'`,
    [organization],
  );
  const serviceId = row?.id as string;
  const [personal] = await query<{ id: string }>(app, `select t.id from api_tokens t where t.name = 'narrow'`);
  // A token without any rights on the stack, whose name nobody needs.
  const admin = callers['admin']?.auth as string;
  const made = await ok(
    app.call('POST', `/api/orgs/${organization}/tokens`, {
      auth: admin,
      body: { name: 'secret-project', service: true, scopes: [{ permissions: ['read'], stacks: 'other/*' }] },
    }),
  );
  const member = callers['member']?.auth as string;
  await query(
    app,
    `insert into grants (organization_id, effect, permissions, project_pattern, stack_pattern, user_id)
     select o.id, 'allow', 33, '*', '*', u.id from organizations o, users u where o.name = $1 and u.login like 'member-%'`,
    [organization],
  );
  const place = { organization, project, stack: name };
  const names = async (auth: string, suffix: string) => {
    const { json, status } = await app.call('GET', `${stack.path}/access${suffix}`, { auth });
    return status === 200 ? json.holders.map((holder: { token: { name: string } }) => holder.token.name) : status;
  };
  for (const [caller, auth, isPerson] of [
    ['service', callers['service of one stack']?.auth as string, false],
    ['scoped', callers['token of an admin with scopes']?.auth as string, false],
    ['member', member, true],
    ['admin', admin, true],
  ] as const) {
    const status = isPerson ? 200 : 403;
    const lists = [
      await app.call('GET', `${stack.path}/access`, { auth }),
      await app.call('GET', `${stack.path}/collaborators`, { auth }),
      await app.call('GET', queryPath('access.list', { ...place, holders: 'users' }), { auth, accept: null }),
    ];
    expect([caller, lists.map((each) => each.status)]).toEqual([caller, [status, status, status]]);
    const tokens = await names(auth, '?holders=tokens');
    expect([caller, tokens.includes('one-stack'), tokens.includes('secret-project')]).toEqual([
      caller,
      true,
      caller === 'admin',
    ]);
    expect(await names(auth, `?token=${made.json.id}`)).toEqual(caller === 'admin' ? ['secret-project'] : []);
    expect(await names(auth, `?token=${serviceId}`)).toEqual(['one-stack']);
    // Of somebody; or the one's own.
    expect(await names(auth, `?token=${personal?.id}`)).toEqual(caller === 'service' ? [] : ['narrow']);
  }
});
