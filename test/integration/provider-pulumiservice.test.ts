import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { createStack, ok } from '../support/state.ts';
import { cliAccept, testApp } from '../support/test-app.ts';

/**
 * The calls of Pulumi's own provider `pulumiservice`, in its order and with its bodies (provider/pkg/pulumiapi and provider/pkg/resources of
 * pulumi/pulumi-pulumiservice at dc76a018): all that this server has, and how it refuses the others.
 */

const app = testApp();
/** What the provider accepts: resources of its module `api` ask for JSON. */
const accepts = [cliAccept, 'application/json'];
const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read', 'stack:preview', 'stack:write'] };

async function scene(accept = cliAccept) {
  const stack = await createStack(app);
  const { auth, organization, path, project, stack: name } = stack;
  const call = async (method: string, to: string, body?: object) => {
    const headers = { 'x-pulumi-source': 'provider' };
    const response = await ok(app.call(method, to, { auth, accept, ...(body ? { body } : {}), headers }));
    return response.text === '' ? null : response.json;
  };
  return { auth, call, organization, orgs: `/api/orgs/${organization}`, path, project, stack: name };
}

test('Stack, StackTag and StackTags are created, read, changed and deleted', async () => {
  const { auth, call, organization } = await scene();
  const projectPath = `/api/stacks/${organization}/made`;
  const path = `${projectPath}/by-provider`;
  await call('POST', projectPath, { stackName: 'by-provider' });
  await call('POST', `${path}/tags`, { name: 'team:owner', value: 'ada' });
  await call('POST', `${path}/tags`, { name: 'tier', value: '1' });
  await call('POST', `${path}/tags`, { name: 'tier', value: '2' });
  expect((await call('GET', path)).tags).toMatchObject({ 'team:owner': 'ada', tier: '2' });
  // The module `api` changes a value by another call.
  const owner = `${path}/tags/${encodeURIComponent('team:owner')}`;
  await call('PATCH', owner, { name: 'team:owner', value: 'bob' });
  expect((await call('GET', path)).tags).toMatchObject({ 'team:owner': 'bob', tier: '2' });
  for (const [tag, body, status] of [
    ['tier', { name: 'team:owner', value: 'eve' }, 400],
    ['tier', { name: 'tier', value: 'c'.repeat(257) }, 400],
    ['none', { name: 'none', value: '1' }, 404],
    ['toString', { name: 'toString', value: '1' }, 404],
  ] as const)
    expect((await app.call('PATCH', `${path}/tags/${tag}`, { auth, body })).status).toBe(status);
  expect((await call('GET', path)).tags).toMatchObject({ 'team:owner': 'bob', tier: '2' });
  await call('DELETE', owner);
  // Again, after a response that did not arrive.
  await call('DELETE', owner);
  expect((await call('GET', path)).tags).not.toHaveProperty('team:owner');
  await call('POST', `${path}/import`, {
    version: 3,
    deployment: {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      resources: [{ urn: 'urn:pulumi:by-provider::made::a:b:C::c', custom: true, id: 'c', type: 'a:b:C' }],
    },
  });
  await expect(call('DELETE', path)).rejects.toThrow(/resources/);
  await call('DELETE', `${path}?forceDestroy=true`);
});

test('only the provider may accept JSON', async () => {
  const { auth } = await scene();
  const statuses = async (accept: string) => {
    const found: number[] = [];
    for (const source of ['provider', 'other', null])
      found.push(
        (
          await app.call('GET', '/api/user', {
            auth,
            accept,
            headers: source === null ? {} : { 'x-pulumi-source': source },
          })
        ).status,
      );
    return found;
  };
  expect(await statuses('application/json')).toEqual([200, 415, 415]);
  expect(await statuses('application/json;v="application/vnd.service+8"')).toEqual([200, 415, 415]);
  for (const accept of ['text/html', 'application/json+x']) expect(await statuses(accept)).toEqual([415, 415, 415]);
});

test('tags of a provider obey the rules for tags', async () => {
  const { auth, call, path } = await scene();
  for (const body of [
    { name: 'a b', value: 'c' },
    { name: 'a'.repeat(41), value: 'c' },
    { name: 'a', value: 'c'.repeat(257) },
    { name: 'a' },
  ])
    expect((await app.call('POST', `${path}/tags`, { auth, body })).status).toBe(400);
  for (let at = 0; at < 200; at++) await call('POST', `${path}/tags`, { name: `t${at}`, value: 'v' });
  expect((await app.call('POST', `${path}/tags`, { auth, body: { name: 'more', value: 'v' } })).status).toBe(400);
  await call('DELETE', `${path}/tags/t0`);
  await call('POST', `${path}/tags`, { name: 'more', value: 'v' });
});

test.each(accepts)(
  'Team, TeamStackPermission and the tokens are created, read, changed and deleted (%s)',
  async (accept) => {
    const { call, organization, orgs, project, stack } = await scene(accept);
    const login = (await call('GET', '/api/user')).githubLogin;
    const team = { organization, teamType: 'pulumi', name: 'blue', displayName: 'Blue', description: 'd' };
    await call('POST', `${orgs}/teams/pulumi`, team);
    await call('PATCH', `${orgs}/teams/blue`, { newDisplayName: 'Bluer', newDescription: '' });
    await call('PATCH', `${orgs}/teams/blue`, { memberAction: 'add', member: login });
    for (const permission of [101, 103])
      await call('PATCH', `${orgs}/teams/blue`, {
        addStackPermission: { projectName: project, stackName: stack, permission },
      });
    expect(await call('GET', `${orgs}/teams/blue`)).toMatchObject({
      kind: 'pulumi',
      displayName: 'Bluer',
      members: [{ githubLogin: login }],
      stacks: [{ projectName: project, stackName: stack, permission: 103 }],
    });
    await call('PATCH', `${orgs}/teams/blue`, { removeStack: { projectName: project, stackName: stack } });
    expect((await call('GET', `${orgs}/teams/blue`)).stacks).toEqual([]);
    // After a replacement, the provider removes a permission that it has replaced.
    await call('PATCH', `${orgs}/teams/blue`, { removeStack: { projectName: project, stackName: stack } });
    for (const [path, body] of [
      ['/api/user/tokens', { description: 'of a user' }],
      [`${orgs}/tokens`, { name: 'ci', description: 'of an organization', admin: false }],
      [`${orgs}/teams/blue/tokens`, { name: 'team-ci', description: 'of a team' }],
    ] as const) {
      const { id, tokenValue } = await call('POST', path, body);
      expect(tokenValue).toMatch(/^hf-/);
      expect((await call('GET', path)).tokens).toContainEqual(expect.objectContaining({ id, ...body }));
      await call('DELETE', `${path}/${id}`);
      expect((await call('GET', path)).tokens).not.toContainEqual(expect.objectContaining({ id }));
    }
    await call('PATCH', `${orgs}/teams/blue`, { memberAction: 'remove', member: login });
    await call('DELETE', `${orgs}/teams/blue`);
  },
);

test('a token gets no more permissions than those of the role that it is created with', async () => {
  const { auth, call, orgs } = await scene();
  await call('POST', `${orgs}/teams/pulumi`, { name: 'blue' });
  const role = { name: 'reader', uxPurpose: 'role', resourceType: 'global', details };
  const { id } = await call('POST', `${orgs}/roles`, role);
  const paths = ['/api/user/tokens', `${orgs}/tokens`, `${orgs}/teams/blue/tokens`];
  const create = (path: string, body: object) =>
    app.call('POST', path, { auth, body: { name: 'ci', description: 'd', ...body } });
  const refused: [path: string, body: object][] = [
    ...paths.map((path): [string, object] => [path, { admin: false, roleID: id }]),
    [`${orgs}/tokens`, { roleID: 'viewer' }],
    [`${orgs}/tokens`, { roleID: 'member', admin: true }],
    [`${orgs}/tokens`, { roleID: 'member', service: true }],
    [`${orgs}/teams/blue/tokens`, { roleID: 'member' }],
  ];
  for (const [path, body] of refused)
    expect({ path, body, ...(await create(path, body)) }).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(/`scopes` limits a token/) },
    });
  for (const path of paths.slice(1)) expect((await call('GET', path)).tokens).toEqual([]);
  for (const roleID of ['member', 'admin']) {
    await ok(create(`${orgs}/tokens`, { name: roleID, admin: false, roleID }));
    expect((await call('GET', `${orgs}/tokens`)).tokens).toContainEqual(
      expect.objectContaining({ name: roleID, admin: roleID === 'admin' }),
    );
  }
  await ok(create(`${orgs}/tokens`, { roleID: null }));
});

test.each(
  accepts.flatMap((accept) => [
    ['organization', accept],
    ['stack', accept],
  ]),
)('a Webhook of the %s is created, read, changed and deleted (%s)', async (of, accept) => {
  const { call, organization, orgs, path, project, stack } = await scene(accept);
  const hooks = `${of === 'stack' ? path : orgs}/hooks`;
  const owner = of === 'stack' ? { projectName: project, stackName: stack } : {};
  const body = {
    organizationName: organization,
    ...owner,
    displayName: 'Deployments',
    payloadUrl: 'https://hooks.example.com/a',
    secret: 'hunter2',
    active: true,
    format: 'raw',
    filters: ['update_succeeded'],
  };
  const { name } = await call('POST', hooks, body);
  expect(await call('PATCH', `${hooks}/${name}`, { ...body, name, active: false })).toMatchObject({ active: false });
  const {
    secret: _,
    organizationName: _organization,
    projectName: _project,
    stackName: _stack,
    ...shown
  } = body as typeof body & {
    projectName?: string;
    stackName?: string;
  };
  expect(await call('GET', `${hooks}/${name}`)).toMatchObject({ ...shown, name, active: false, hasSecret: true });
  expect(await call('GET', hooks)).toMatchObject([{ name }]);
  await call('DELETE', `${hooks}/${name}`);
  expect(await call('GET', hooks)).toEqual([]);
});

test.each(accepts)('an OidcIssuer and its policies are created, read, changed and deleted (%s)', async (accept) => {
  const { auth, call, orgs } = await scene(accept);
  const issuers = `${orgs}/oidc/issuers`;
  const { id } = await call('POST', issuers, { name: 'github', url: 'https://token.actions.githubusercontent.com' });
  await call('PATCH', `${issuers}/${id}`, { name: 'GitHub', maxExpiration: 3600 });
  expect(await call('GET', `${issuers}/${id}`)).toMatchObject({ id, name: 'GitHub', maxExpiration: 3600 });
  const policy = await call('GET', `${orgs}/auth/policies/oidcissuers/${id}`);
  const definition = {
    decision: 'allow',
    tokenType: 'organization',
    authorizedPermissions: ['standard'],
    rules: { aud: 'urn:pulumi:org:acme', sub: 'repo:acme/web:*' },
  };
  const changed = await call('PATCH', `${orgs}/auth/policies/${policy.id}`, { policies: [definition] });
  // Read again into a map of texts.
  const { rules } = definition;
  expect(changed).toMatchObject({
    id: policy.id,
    policies: [{ decision: 'allow', tokenType: 'organization', authorizedPermissions: ['standard'], rules }],
  });
  expect((await call('GET', `${orgs}/auth/policies/oidcissuers/${id}`)).version).toBeGreaterThan(policy.version);
  await call('DELETE', `${issuers}/${id}`);
  expect((await app.call('GET', `${issuers}/${id}`, { auth })).status).toBe(404);
});

test('an OidcIssuer whose policies have parts that the provider does not know can be read, and written back unchanged', async () => {
  const { auth, call, orgs } = await scene();
  const issuer = { name: 'github', url: 'https://token.actions.githubusercontent.com' };
  const { id } = await call('POST', `${orgs}/oidc/issuers`, issuer);
  const path = `${orgs}/auth/policies/oidcissuers/${id}`;
  const read = async () => (await ok(app.call('GET', path, { auth }))).json.policies;
  const set = (policies: readonly object[]) =>
    ok(app.call('PATCH', `${orgs}/auth/policies/${id}`, { auth, body: { policies } }));
  const allow = { decision: 'allow', tokenType: 'organization' };
  const rules = { sub: ['repo:acme/a:*', 'repo:acme/b:*'], ref: ['main', 'next'] };
  await set([{ ...allow, rules, scopes: [{ permissions: ['write'], stacks: 'web/*' }], maxExpiration: 60 }]);
  const before = await read();
  expect(before).toMatchObject([{ rules }]);

  const { policies } = await call('GET', path);
  expect(policies.map((policy: { rules: object }) => policy.rules)).toEqual(
    rules.ref.flatMap((ref) => rules.sub.map((sub) => ({ sub, ref }))),
  );
  const known = policies.map(({ decision, tokenType, authorizedPermissions, rules }: Record<string, unknown>) => ({
    ...{ decision, tokenType, authorizedPermissions, rules },
  }));
  const denial = { decision: 'deny', tokenType: 'organization', authorizedPermissions: [], rules: { sub: 'repo:b/*' } };
  const changed = await call('PATCH', `${orgs}/auth/policies/${id}`, { policies: [denial, ...known] });
  expect(changed.policies.slice(1)).toEqual(policies);
  // The same one, so its tokens stay valid.
  expect((await read()).slice(1)).toEqual(before);

  // More than 64 KiB as the provider writes them.
  const long = Array.from({ length: 10 }, (_, at) => `${at}`.padEnd(400, 'x'));
  await set([{ ...allow, rules: { sub: long, ref: long } }]);
  const present = await read();
  const split = (await call('GET', path)).policies.map(({ id: _, ...policy }: { id: string }) => policy);
  expect(split).toHaveLength(100);
  await call('PATCH', `${orgs}/auth/policies/${id}`, { policies: split });
  expect(await read()).toEqual(present);
  const other = split.map((policy: object) => ({ ...policy, authorizedPermissions: ['admin'] }));
  const headers = { 'x-pulumi-source': 'provider' };
  expect(
    await app.call('PATCH', `${orgs}/auth/policies/${id}`, { auth, headers, body: { policies: other } }),
  ).toMatchObject({ status: 400, json: { message: expect.stringMatching(/65536 characters/) } });

  const many = Array.from({ length: 11 }, (_, at) => `p${at}`);
  await set([{ ...allow, rules: { sub: many, ref: many } }]);
  expect(await app.call('GET', path, { auth, headers })).toMatchObject({
    status: 409,
    json: { message: expect.stringMatching(/several patterns for a claim/) },
  });
});

test.each(accepts)('a PolicyGroup and its PolicyPacks are created, read, changed and deleted (%s)', async (accept) => {
  const { auth, call, organization, orgs, path, project, stack } = await scene(accept);
  const policies = new PolicyCalls(app, { auth, organization, path, project, stack });
  for (const tag of ['1.0.0', '2.0.0']) await policies.publish({ tag });
  expect((await call('GET', `${orgs}/policypacks`)).policyPacks).toMatchObject([
    { name: 'pack', versions: [1, 2], versionTags: ['1.0.0', '2.0.0'] },
  ]);
  const policy = expect.objectContaining({ name: 'no-buckets', enforcementLevel: 'mandatory' });
  for (const [below, version, versionTag] of [
    ['latest', 2, '2.0.0'],
    ['versions/1', 1, '1.0.0'],
  ] as const)
    expect(await call('GET', `${orgs}/policypacks/pack/${below}`)).toEqual({
      ...{ name: 'pack', displayName: 'A pack', version, versionTag, applied: false, policies: [policy] },
    });
  expect((await app.call('GET', `${orgs}/policypacks/none/latest`, { auth })).status).toBe(404);
  const group = `${orgs}/policygroups/production`;
  const kind = { entityType: 'stacks', mode: 'preventative' };
  await call('POST', `${orgs}/policygroups`, { name: 'production', ...kind });
  // As the provider sends them: with the numbers and names of its own type, empty or not.
  const pack = { name: 'pack', displayName: '', version: 0, versionTag: '1.0.0' };
  const config = { 'no-buckets': { enforcementLevel: 'advisory', allowed: [] } };
  const reference = { name: stack, routingProject: project };
  await call('PATCH', `${group}/batch`, [{ addStack: reference }, { addPolicyPack: { ...pack, config } }]);
  const shown = { displayName: 'A pack', name: 'pack' };
  const made = {
    name: 'production',
    ...kind,
    stacks: [reference],
    accounts: [],
    appliedPolicyPacks: [{ ...shown, versionTag: '1.0.0', config }],
  };
  expect(await call('GET', group)).toMatchObject(made);

  // All of them, or none.
  const broken = [{ removeStack: reference }, { removePolicyPack: pack }, { addStack: { ...reference, name: 'none' } }];
  await expect(call('PATCH', `${group}/batch`, broken)).rejects.toThrow(/no stack proj\/none/);
  expect(await call('GET', group)).toMatchObject(made);
  // In their order.
  await call('PATCH', `${group}/batch`, [
    { removeStack: reference },
    { addStack: reference },
    { removePolicyPack: { ...pack, ...shown, version: 1 } },
    { addPolicyPack: { ...pack, versionTag: '2.0.0' } },
    { addStack: reference },
    { removeStack: reference },
  ]);
  expect(await call('GET', group)).toMatchObject({ stacks: [], appliedPolicyPacks: [{ versionTag: '2.0.0' }] });
  // One by one, as it changes a group.
  for (const change of [{ addStack: reference }, { removePolicyPack: { ...pack, versionTag: '2.0.0' } }])
    await call('PATCH', `${group}/batch`, [change]);
  expect(await call('GET', group)).toMatchObject({ stacks: [reference], appliedPolicyPacks: [] });
  const [event] = await query<{ details: string }>(
    app,
    `select details from audit_events where action = 'policy-group.change' and object = $1 and details like '%changes%'`,
    [`${organization}/production`],
  );
  expect(JSON.parse(event?.details ?? '{}').changes).toHaveLength(2);
  for (const [body, why] of [
    [[], /fewer|items/],
    [[{ addInsightsAccount: { name: 'aws' } }], /Insights accounts are another product/],
    [Array.from({ length: 1_001 }, () => ({ addPolicyPack: pack })), /at most 10000 and 1000 are accepted/],
  ] as const)
    expect(await app.call('PATCH', `${group}/batch`, { auth, body })).toMatchObject({
      status: 400,
      json: { message: expect.stringMatching(why) },
    });
  // What each request replaces is written once: a batch of many requests does not hold the organization's groups for long.
  const replacement = { newName: 'other', stacks: [], policyPacks: [] };
  const many = [
    { removeStack: reference },
    { addPolicyPack: pack },
    ...Array.from({ length: 500 }, () => replacement),
    { addStack: reference, policyPacks: [{ ...pack, versionTag: '2.0.0' }], newName: 'production' },
    { removeStack: reference },
    { addStack: reference },
  ];
  const sent = await sentStatements(
    () => call('PATCH', `${group}/batch`, many),
    /^policyGroups\.(?:rename|removeStacks|addStacks|clearPacks|setPacks)$/,
  );
  expect(sent.map((name) => name.replace('policyGroups.', ''))).toEqual([
    'removeStacks',
    'addStacks',
    'clearPacks',
    'setPacks',
    'rename',
  ]);
  expect(await call('GET', group)).toMatchObject({
    stacks: [reference],
    appliedPolicyPacks: [{ versionTag: '2.0.0' }],
  });
  await call('DELETE', group);
  for (const tag of ['1.0.0', '2.0.0']) await call('DELETE', `${orgs}/policypacks/pack/versions/${tag}`);
  expect((await call('GET', `${orgs}/policypacks`)).policyPacks).toEqual([]);
});

test('a PolicyPack of a PolicyGroup has its tag, even if that is a number', async () => {
  const { auth, call, organization, orgs, path, project, stack } = await scene();
  const policies = new PolicyCalls(app, { auth, organization, path, project, stack });
  for (const tag of ['1.0.0', '7']) await policies.publish({ tag });
  const group = `${orgs}/policygroups/production`;
  await call('POST', `${orgs}/policygroups`, { name: 'production', entityType: 'stacks', mode: 'preventative' });
  const pack = { name: 'pack', displayName: '', version: 0, versionTag: '7' };
  await call('PATCH', `${group}/batch`, [{ addPolicyPack: pack }]);
  const [applied] = (await call('GET', group)).appliedPolicyPacks;
  expect(applied).toMatchObject({ name: 'pack', versionTag: '7' });
  // CLIs until 3.260 compare it with what they read from `pack@7`.
  const [ofCli] = (await ok(app.call('GET', group, { auth }))).json.appliedPolicyPacks;
  expect(ofCli).toEqual({ name: 'pack', displayName: 'A pack', version: 7, config: {} });
  await call('PATCH', `${group}/batch`, [{ removePolicyPack: applied }]);
  expect((await call('GET', group)).appliedPolicyPacks).toEqual([]);
});

test('an OrganizationMember is added, adopted, read, changed and removed', async () => {
  const { auth, call, organization, orgs } = await scene();
  const { login } = await person(app, `${organization}-other`, 'viewer');
  const member = `${orgs}/members/${login}`;
  const add = (body: object) => app.call('POST', member, { auth, body });
  const find = async () => {
    const members: { user: { githubLogin: string } }[] = [];
    for (const type of ['backend', 'frontend'])
      members.push(...(await call('GET', `${orgs}/members?type=${type}`)).members);
    return members.find(({ user }) => user.githubLogin === login);
  };
  // Nobody becomes a member of an organization among several without consent, but by a site admin.
  expect(await add({ role: 'member' })).toMatchObject({
    status: 403,
    json: { message: expect.stringMatching(/several organizations: invite the user/) },
  });
  await query(app, `update users set site_admin = true where login = $1`, [
    (await call('GET', '/api/user')).githubLogin,
  ]);
  expect(await add({ role: 'billing-manager' })).toMatchObject({
    status: 400,
    json: { message: expect.stringMatching(/viewer, member or admin/) },
  });
  expect(await app.call('POST', `${orgs}/members/no-such-user`, { auth, body: { role: 'member' } })).toMatchObject({
    status: 404,
    json: { message: expect.stringMatching(/no user/) },
  });
  expect(await call('POST', member, { role: 'member' })).toMatchObject({
    role: 'member',
    user: { githubLogin: login },
  });
  // The provider adopts a member, and gives them the role that it looks up.
  expect((await add({ role: 'member' })).status).toBe(409);
  const { roles } = await call('GET', `${orgs}/roles?uxPurpose=role`);
  const idOf = (name: string) =>
    roles.find((role: { defaultIdentifier: string }) => role.defaultIdentifier === name)?.id;
  await call('PATCH', member, { fgaRoleId: idOf('admin') });
  expect(await find()).toMatchObject({ role: 'admin', fgaRole: { id: idOf('admin'), name: 'admin' } });
  const { id } = await call('POST', `${orgs}/roles`, {
    name: 'deployer',
    uxPurpose: 'role',
    resourceType: 'global',
    details,
  });
  expect(await app.call('PATCH', member, { auth, body: { fgaRoleId: id } })).toMatchObject({
    status: 400,
    json: { message: expect.stringMatching(/Grants give other roles to members/) },
  });
  await call('DELETE', member);
  expect(await find()).toBeUndefined();
  await query(app, 'update users set deactivated_at = now() where login = $1', [login]);
  // Not 409, which the provider takes for a member.
  expect(await add({ role: 'member' })).toMatchObject({
    status: 400,
    json: { message: expect.stringMatching(/is deactivated/) },
  });
});

test('the provider tells members apart by `name`, although people may share a display name', async () => {
  const { auth, call, organization, orgs } = await scene();
  const people = [await person(app, organization, 'member'), await person(app, organization, 'member')];
  const logins = people.map(({ login }) => login);
  await query(app, `update users set display_name = 'Ada Lovelace' where login = any($1)`, [logins]);
  const namesake = await person(app, organization, 'member');
  await query(app, `update users set login = $1, display_name = 'Ada Lovelace' where login = $2`, [
    organization,
    namesake.login,
  ]);
  const path = `${orgs}/members`;
  type Members = { members: { user: { name: string; githubLogin: string } }[] };
  const namesOf = ({ members }: Members) =>
    [...logins, organization].map((login) => members.find(({ user }) => user.githubLogin === login)?.user.name);
  // It skips the member whose name is that of the organization.
  expect(namesOf(await call('GET', path))).toEqual([...logins, `@${organization}`]);
  expect(namesOf((await ok(app.call('GET', path, { auth }))).json)).toEqual(Array(3).fill('Ada Lovelace'));
});

test('an OrganizationRole and its TeamRoleAssignment are created, read, changed and deleted', async () => {
  const { auth, call, orgs } = await scene();
  const { stack: groups } = await call('GET', `${orgs}/roles/scopes`);
  const scopes = groups.flatMap((group: { scopes: { name: string }[] }) => group.scopes.map(({ name }) => name));
  expect(scopes).toContain('stack:outputs');
  await call('POST', `${orgs}/teams/pulumi`, { name: 'blue' });
  const base = { resourceType: 'global', uxPurpose: 'role' };
  const role = await call('POST', `${orgs}/roles`, { name: 'deployer', description: 'd', ...base, details });
  expect(role).toMatchObject({ name: 'deployer', ...base, details, version: 1, defaultIdentifier: '' });
  const all = { ...details, permissions: scopes };
  const changed = await call('PATCH', `${orgs}/roles/${role.id}`, { name: 'operator', description: 'e', details: all });
  expect(changed).toMatchObject({ id: role.id, name: 'operator', details: all });
  expect(changed.version).toBeGreaterThan(role.version);
  const assignment = `${orgs}/teams/blue/roles/${role.id}`;
  await call('POST', assignment);
  expect((await call('GET', `${orgs}/teams/blue/roles`)).roles).toMatchObject([{ id: role.id, name: 'operator' }]);
  // Still assigned: the provider then tries again with force.
  expect((await app.call('DELETE', `${orgs}/roles/${role.id}`, { auth })).status).toBe(409);
  await call('DELETE', assignment);
  expect((await app.call('DELETE', assignment, { auth })).status).toBe(404);
  await call('POST', assignment);
  await call('DELETE', `${orgs}/roles/${role.id}?force=true`);
  expect((await call('GET', `${orgs}/teams/blue/roles`)).roles).toEqual([]);
  expect((await app.call('GET', `${orgs}/roles/${role.id}`, { auth })).status).toBe(404);
  const subNode = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
  for (const [wrong, why] of [
    [
      { details: { __type: 'PermissionDescriptorCondition', condition: {}, subNode } },
      /no "PermissionDescriptorCondition"/,
    ],
    [{ details: { ...details, permissions: ['environment:open'] } }, /no permission "environment:open"/],
    [{ details, resourceType: 'stack' }, /Omit resourceType/],
    [{ details, uxPurpose: 'policy' }, /no other purpose/],
  ] as const)
    expect(await app.call('POST', `${orgs}/roles`, { auth, body: { name: 'wrong', ...base, ...wrong } })).toMatchObject(
      {
        status: 400,
        json: { message: expect.stringMatching(why) },
      },
    );
});

test('each other call of the provider is refused with the reason', async () => {
  const { auth, orgs, organization, path } = await scene();
  await ok(app.call('POST', `${orgs}/teams/pulumi`, { auth, body: { name: 'blue' } }));
  const environment = { projectName: 'p', envName: 'e', permission: 'read' };
  const noSuch = /another product of Pulumi, which this server does not provide|This server /;
  const calls: [method: string, path: string, status: number, why: RegExp, body?: object][] = [
    // AgentPool, ApprovalRule, DeploymentSettings, the schedules, Environment, InsightsAccount, TemplateSource.
    ['POST', `${orgs}/agent-pools`, 404, /Pulumi Deployments/, { name: 'pool' }],
    ['POST', `/api/change-gates/${organization}`, 404, /POST \/api\/orgs\/ORG\/update-rules/, {}],
    ['GET', `/api/change-gates/${organization}/id`, 404, noSuch],
    ...['settings', 'schedules', 'drift/schedules', 'ttl/schedules'].map((part): [string, string, number, RegExp] => [
      'GET',
      `${path}/deployments/${part}`,
      404,
      /from your own CI/,
    ]),
    ['GET', `/api/esc/environments/${organization}/p/e/metadata`, 404, /Pulumi ESC/],
    ['GET', `/api/esc/environments/${organization}/p/e/hooks`, 404, /Pulumi ESC/],
    ['POST', `/api/esc/environments/${organization}/p/e/schedules`, 404, /Pulumi ESC/, {}],
    ['POST', `/api/preview/insights/${organization}/accounts/aws`, 404, /Pulumi Insights/, {}],
    ['POST', `${orgs}/templates/sources`, 404, /no templates of its own/, {}],
    // The registry of policy packs.
    ['GET', `${orgs}/registry/policypacks/pack?tag=1.0.0`, 404, /call about policies/],
    ['POST', '/api/registry/policypacks', 404, /call about policies/, { orgLogin: organization }],
    // Resources of the module `api` that have no equal among the others.
    ['POST', `${orgs}/auditlogs/export/config`, 404, /exports it/, {}],
    ['POST', `/api/user/organizations/${organization}/default`, 404, /set-default/],
    ['PUT', `${orgs}/neo/usage-cap`, 404, /Pulumi Neo/, {}],
    ['PATCH', `${orgs}/saml`, 404, /OpenID Connect/, {}],
    ['POST', `${orgs}/services`, 404, /catalog of services/, {}],
    // TeamEnvironmentPermission, a Team of GitHub, groups that this server does not have.
    ['PATCH', `${orgs}/teams/blue`, 400, /Pulumi ESC/, { addEnvironmentPermission: environment }],
    ['PATCH', `${orgs}/teams/blue`, 400, /Pulumi ESC/, { removeEnvironment: { projectName: 'p', envName: 'e' } }],
    ['POST', `${orgs}/teams/github`, 404, /does not import teams from GitHub/, { githubTeamID: 1 }],
    ['POST', `${orgs}/policygroups`, 400, /preventative/, { name: 'a', entityType: 'stacks', mode: 'audit' }],
    ['POST', `${orgs}/policygroups`, 400, /Insights/, { name: 'a', entityType: 'accounts', mode: 'preventative' }],
  ];
  const wrong: object[] = [];
  for (const [method, to, status, why, body] of calls) {
    const answer = await app.call(method, to, { auth, ...(body ? { body } : {}) });
    if (answer.status !== status || !why.test(answer.json?.message)) wrong.push({ method, to, answer: answer.text });
  }
  expect(wrong).toEqual([]);
});
