import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createTokenRepository } from '../../src/shared/identity/token-repository.ts';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from '../support/database.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestResponse, testApp } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

const app = testApp();

interface Made {
  readonly id: string;
  readonly auth: string;
  readonly token: string;
  readonly expires: number;
}

/** Path in the organization, and body. */
type Call = readonly [string, object];

async function make(auth: string, path: string, body: object): Promise<Made> {
  const { json } = await ok(app.call('POST', path, { auth, body }));
  return { id: json.id, token: json.tokenValue, auth: `token ${json.tokenValue}`, expires: json.expires };
}

const get = (auth: string, path: string): Promise<TestResponse> => app.call('GET', path, { auth });
const status = async (auth: string, method: string, path: string, body?: object): Promise<number> =>
  (await app.call(method, path, { auth, ...(body ? { body } : {}) })).status;
const addStack = (stack: TestStack, project: string, stackName: string) =>
  ok(app.call('POST', `/api/stacks/${stack.organization}/${project}`, { auth: stack.auth, body: { stackName } }));
const orgTokens = (stack: TestStack) => `/api/orgs/${stack.organization}/tokens`;

describe('a personal token', () => {
  test('is shown once, listed, and revoked; it has our format and its name is not used twice', async () => {
    const stack = await createStack(app);
    const made = await make(stack.auth, '/api/user/tokens', { name: 'ci', description: 'of ci' });
    expect(made.token).toMatch(/^hf-[0-9A-Za-z]{49}$/);
    const listed = await ok(get(made.auth, '/api/user/tokens'));
    expect(listed.json.tokens).toHaveLength(2);
    expect(listed.json.tokens[1]).toMatchObject({
      id: made.id,
      name: 'ci',
      description: 'of ci',
      expires: 0,
      scopes: null,
    });
    expect(listed.text).not.toContain(made.token);
    expect(await status(stack.auth, 'DELETE', `/api/user/tokens/${made.id}`)).toBe(204);
    expect(await status(made.auth, 'GET', '/api/user')).toBe(401);
    const again = await app.call('POST', '/api/user/tokens', { auth: stack.auth, body: { name: 'ci' } });
    expect([again.status, again.json.message]).toEqual([409, expect.stringContaining('"ci"')]);
  });

  test('with scopes does what they say and no more, and cannot make tokens, organizations or itself a site admin', async () => {
    const stack = await createStack(app);
    await addStack(stack, 'web', 'prod');
    const scopes = [
      { permissions: ['write'], stacks: `${stack.organization}/proj/*` },
      { permissions: ['read'], stacks: 'none/*' },
    ];
    const made = await make(stack.auth, '/api/user/tokens', { scopes });
    await query(app, 'update users set site_admin = true where id = (select user_id from api_tokens where id = $1)', [
      made.id,
    ]);
    expect(await status(made.auth, 'POST', `${stack.path}/update`, {})).toBe(200);
    expect(await status(made.auth, 'DELETE', stack.path)).toBe(403);
    expect(await status(made.auth, 'GET', `/api/stacks/${stack.organization}/web/prod`)).toBe(404);
    expect((await ok(get(made.auth, '/api/user/stacks'))).json.stacks).toHaveLength(1);
    for (const [method, path, body] of [
      ['POST', '/api/user/tokens', {}],
      ['GET', '/api/user/tokens', undefined],
      ['POST', orgTokens(stack), { name: 'x' }],
    ] as const)
      expect(await status(made.auth, method, path, body)).toBe(403);
    expect(await status(made.auth, 'POST', '/api/stacks/new-organization/p', { stackName: 'dev' })).toBe(404);
    expect((await ok(get(made.auth, '/api/user'))).json.siteAdmin).toBe(false);
  });

  test.each([
    [{ scopes: [{ permissions: ['output'], stacks: '*/*' }] }, /outputs/],
    [{ scopes: [{ permissions: [], stacks: '*/*' }] }, /permission/],
    [{ scopes: [{ permissions: ['read'], stacks: 'web' }] }, /project\/stack/],
    [{ scopes: [{ permissions: ['read'], stacks: 'a/b/c/d' }] }, /project\/stack/],
    [{ scopes: [{ permissions: ['read'], stacks: 'web/pr%' }] }, /pattern/],
    [{ name: '-' }, /name/],
    [{ expires: 1 }, /past/],
  ])('is refused with %j', async (body, message) => {
    const stack = await createStack(app);
    const refused = await app.call('POST', '/api/user/tokens', { auth: stack.auth, body });
    expect([refused.status, refused.json.message]).toEqual([400, expect.stringMatching(message)]);
  });
});

describe('a token of an organization', () => {
  test('outlives the user who made it, and may do there what its role may', async () => {
    const stack = await createStack(app);
    const elsewhere = await createStack(app);
    const admin = await person(app, stack.organization, 'admin');
    const made = await make(admin.auth, orgTokens(stack), { name: 'ci' });
    await query(app, 'delete from users where id = $1', [admin.userId]);
    const me = (await ok(get(made.auth, '/api/user'))).json;
    expect(me).toMatchObject({
      githubLogin: 'organization:ci',
      organizations: [{ githubLogin: stack.organization }],
      tokenInfo: { name: 'ci', organization: stack.organization },
    });
    expect((await ok(get(made.auth, '/api/user/stacks'))).json.stacks).toHaveLength(1);
    expect(await status(made.auth, 'DELETE', stack.path)).toBe(403);
    expect(await status(made.auth, 'GET', elsewhere.path)).toBe(404);
    expect(await status(made.auth, 'GET', '/api/user/tokens')).toBe(403);
    expect(await status(made.auth, 'POST', `${stack.path}/import`, {})).toBe(400);
    const update = await startUpdate(app, { ...stack, auth: made.auth }, { journal: true });
    await ok(append(app, update, creation(1, 'r0', stack)));
    expect(await status(stack.auth, 'DELETE', `${orgTokens(stack)}/${made.id}`)).toBe(204);
    const late = await append(app, update, creation(2, 'r1', stack));
    expect([late.status, late.json.message]).toEqual([403, expect.stringMatching(/token .* was revoked/)]);
  });

  test('for a service does nothing but what its scopes and grants say', async () => {
    const stack = await createStack(app);
    await addStack(stack, 'web', 'prod');
    const { organizationId } = await person(app, stack.organization, 'viewer');
    const made = await make(stack.auth, orgTokens(stack), { name: 'bot', service: true });
    expect((await ok(get(made.auth, '/api/user/stacks'))).json.stacks).toEqual([]);
    await grant(app, organizationId, { tokenId: made.id }, 'allow', ['write'], { stacks: 'web/*' });
    expect(await status(made.auth, 'POST', `/api/stacks/${stack.organization}/web/prod/update`, {})).toBe(200);
    expect(await status(made.auth, 'POST', `${stack.path}/update`, {})).toBe(404);
  });

  test('can be made by admins only', async () => {
    const stack = await createStack(app);
    const member = await person(app, stack.organization, 'member');
    expect(await status(member.auth, 'POST', orgTokens(stack), { name: 'ci' })).toBe(403);
    expect(await status(stack.auth, 'POST', orgTokens(stack), {})).toBe(400);
  });
});

test('a token of a team has the rights of the team; admins of the team create and revoke it', async () => {
  const stack = await createStack(app);
  const [lead, other] = [
    await person(app, stack.organization, 'viewer'),
    await person(app, stack.organization, 'viewer'),
  ];
  const blue = await team(app, lead.organizationId, 'blue', [lead.userId, other.userId]);
  await query(app, 'update team_members set is_admin = true where user_id = $1', [lead.userId]);
  const path = `/api/orgs/${stack.organization}/teams/blue/tokens`;
  expect(await status(other.auth, 'POST', path, { name: 'ci' })).toBe(403);
  const made = await make(lead.auth, path, { name: 'ci' });
  expect((await ok(get(made.auth, '/api/user'))).json.tokenInfo).toEqual({
    name: 'ci',
    organization: stack.organization,
    team: 'blue',
  });
  expect(await status(made.auth, 'POST', `${stack.path}/update`, {})).toBe(404);
  await grant(app, lead.organizationId, { teamId: blue }, 'allow', ['write']);
  expect(await status(made.auth, 'POST', `${stack.path}/update`, {})).toBe(200);
  expect(await status(lead.auth, 'DELETE', `${path}/${made.id}`)).toBe(204);
  expect(await status(made.auth, 'GET', '/api/user')).toBe(401);
});

describe('rotation', () => {
  test('keeps the token with its leases, and the secret before for the overlap', async () => {
    const stack = await createStack(app);
    const scopes = [{ permissions: ['write'], stacks: '*/*' }];
    const made = await make(stack.auth, '/api/user/tokens', { name: 'ci', scopes });
    const update = await startUpdate(app, { ...stack, auth: made.auth }, { journal: true });
    const { json } = await ok(
      app.call('POST', `/api/user/tokens/${made.id}/rotate`, { auth: stack.auth, body: { overlapSeconds: 60 } }),
    );
    expect(json).toMatchObject({ id: made.id, expires: 0, previousExpires: expect.any(Number) });
    for (const auth of [made.auth, `token ${json.tokenValue}`]) {
      expect(await status(auth, 'GET', stack.path)).toBe(200);
      expect(await status(auth, 'DELETE', stack.path)).toBe(403);
    }
    await ok(append(app, update, creation(1, 'r0', stack)));
    await query(app, `update api_tokens set previous_until = now() where id = $1`, [made.id]);
    expect(await status(made.auth, 'GET', stack.path)).toBe(401);
    await using replica = await createTestApp({ database: app.database, dataDir: app.dataDir });
    expect((await replica.call('GET', stack.path, { auth: `token ${json.tokenValue}` })).status).toBe(200);
    expect((await ok(get(stack.auth, '/api/user/tokens'))).json.tokens[1]).toMatchObject({
      name: 'ci',
      previousExpires: 0,
    });
  });

  test('that is repeated after a lost response replaces only the secret that nobody got', async () => {
    const stack = await createStack(app);
    const made = await make(stack.auth, '/api/user/tokens', { name: 'ci' });
    const rotate = async (overlapSeconds: number): Promise<string> =>
      (await ok(app.call('POST', `/api/user/tokens/${made.id}/rotate`, { auth: stack.auth, body: { overlapSeconds } })))
        .json.tokenValue;
    const valid = async (...secrets: string[]) => {
      const statuses = secrets.map((secret) => status(`token ${secret}`, 'GET', '/api/user'));
      return (await Promise.all(statuses)).map((each) => each === 200);
    };
    const lost = await rotate(600);
    const got = await rotate(600);
    expect(await valid(made.token, lost, got)).toEqual([true, false, true]);
    // One that is no repetition.
    await query(app, `update api_tokens set rotated_at = rotated_at - interval '61 seconds' where id = $1`, [made.id]);
    const next = await rotate(600);
    expect(await valid(made.token, got, next)).toEqual([false, true, true]);
    const last = await rotate(0);
    expect(await valid(got, next, last)).toEqual([false, false, true]);
  });

  test('by another user is no repetition', async () => {
    const stack = await createStack(app);
    const path = `/api/orgs/${stack.organization}/tokens`;
    const made = await make(stack.auth, path, { name: 'ci' });
    const other = await person(app, stack.organization, 'admin');
    const rotate = async (auth: string): Promise<string> =>
      (await ok(app.call('POST', `${path}/${made.id}/rotate`, { auth, body: { overlapSeconds: 600 } }))).json
        .tokenValue;
    const first = await rotate(stack.auth);
    const second = await rotate(other.auth);
    const secrets = [made.token, first, second];
    const statuses = secrets.map((secret) => status(`token ${secret}`, 'GET', '/api/user'));
    expect(await Promise.all(statuses)).toEqual([401, 200, 200]);
  });

  test('without an overlap ends the leases, too', async () => {
    const stack = await createStack(app);
    const made = await make(stack.auth, '/api/user/tokens', {});
    const update = await startUpdate(app, { ...stack, auth: made.auth }, { journal: true });
    await ok(app.call('POST', `/api/user/tokens/${made.id}/rotate`, { auth: stack.auth, body: { overlapSeconds: 0 } }));
    expect(await status(made.auth, 'GET', stack.path)).toBe(401);
    expect((await append(app, update, creation(1, 'r0', stack))).status).toBe(403);
  });
});

test('a replaced secret lives no longer than it would have without the rotation', async () => {
  const stack = await createStack(app);
  const ends = Math.floor(Date.now() / 1000) + 600;
  const rotate = async (id: string, overlapSeconds: number): Promise<{ previousExpires: number }> =>
    (await ok(app.call('POST', `/api/user/tokens/${id}/rotate`, { auth: stack.auth, body: { overlapSeconds } }))).json;
  const [short, long] = [
    await make(stack.auth, '/api/user/tokens', { expires: ends }),
    await make(stack.auth, '/api/user/tokens', {}),
  ];
  expect((await rotate(short.id, 3600)).previousExpires).toBe(ends);
  // Nor longer than the limit of an organization.
  const days = 86_400;
  const soon = Math.ceil(Date.now() / 1000) + days + 60;
  expect((await rotate(long.id, 20 * days)).previousExpires).toBeGreaterThan(soon);
  const organization = await app.context.identity.findOrganization(stack.organization);
  await createTokenRepository(app.context.db).setMaxSeconds(organization?.id as string, days);
  const { tokens } = (await ok(get(stack.auth, '/api/user/tokens'))).json;
  const { previousExpires } = tokens.find(({ id }: { id: string }) => id === long.id);
  expect([previousExpires > 0, previousExpires < soon]).toEqual([true, true]);
});

test('the longest life of tokens is shown before it is set, holds for all tokens of members, and for new ones', async () => {
  const stack = await createStack(app);
  const member = await person(app, stack.organization, 'member');
  const tokens = createTokenRepository(app.context.db);
  const [old, young] = [
    await make(member.auth, '/api/user/tokens', {}),
    await make(stack.auth, orgTokens(stack), { name: 'ci' }),
  ];
  await query(app, `update api_tokens set created_at = now() - interval '10 days' where id = $1`, [old.id]);
  const update = await startUpdate(app, { ...stack, auth: old.auth }, { journal: true });
  const days = 86_400;
  const affected = await tokens.listAffected(member.organizationId, 7 * days);
  expect(affected.filter(({ ends }) => ends).map(({ id }) => id)).toEqual([old.id]);
  expect(affected.map(({ id }) => id)).toContain(young.id);
  expect(await status(old.auth, 'GET', stack.path)).toBe(200);
  await tokens.setMaxSeconds(member.organizationId, 7 * days);
  expect(await status(old.auth, 'GET', stack.path)).toBe(401);
  expect((await append(app, update, creation(1, 'r0', stack))).status).toBe(403);
  expect(await status(young.auth, 'GET', stack.path)).toBe(200);
  const soon = Math.floor(Date.now() / 1000) + 7 * days + 60;
  const later = await make(member.auth, '/api/user/tokens', { expires: soon + 30 * days });
  expect(later.expires).toBeGreaterThan(0);
  expect(later.expires).toBeLessThan(soon);
  const outsider = await createStack(app);
  const theirs = await make(outsider.auth, '/api/user/tokens', {});
  await query(
    app,
    `insert into memberships (organization_id, user_id, role)
    select $1, user_id, 'viewer' from api_tokens where id = $2`,
    [member.organizationId, theirs.id],
  );
  const [row] = await query<{ limited: boolean }>(
    app,
    'select expires_at is not null as limited from api_tokens where id = $1',
    [theirs.id],
  );
  expect(row).toEqual({ limited: true });
});

test('no sequence of grants gives a token more rights than its owner', async () => {
  const stack = await createStack(app);
  for (const [project, name] of [
    ['proj', 'prod'],
    ['web', 'dev'],
  ] as const)
    await addStack(stack, project, name);
  const member: Person = await person(app, stack.organization, 'viewer');
  const blue = await team(app, member.organizationId, 'blue', []);
  const make4 = async (body: object) => [
    await make(member.auth, '/api/user/tokens', body),
    await make(stack.auth, orgTokens(stack), { ...body, name: `t${Math.random()}` }),
    await make(stack.auth, `/api/orgs/${stack.organization}/teams/blue/tokens`, { ...body, name: `t${Math.random()}` }),
  ];
  const owners = await make4({});
  const scoped = await make4({ scopes: [{ permissions: ['admin', 'decrypt', 'manage'], stacks: '*/dev' }] });
  const pairs = owners.map((owner, at) => ({ owner: owner.id, token: scoped[at]?.id as string }));
  const subjects = [{ userId: member.userId }, { teamId: blue }, ...scoped.map(({ id }) => ({ tokenId: id }))];
  const names = fc.subarray(['read', 'preview', 'write', 'admin', 'decrypt', 'manage'] as const, { minLength: 1 });
  const base = `/api/orgs/${stack.organization}`;
  const asAdmin = (method: string, path: string, body?: object) =>
    ok(app.call(method, `${base}${path}`, { auth: stack.auth, ...(body ? { body } : {}) }));
  const details = (permissions: readonly string[]) => ({ __type: 'PermissionDescriptorAllow', permissions });
  const role = (await asAdmin('POST', '/roles', { name: 'role', details: details(['read']) })).json.id as string;
  const named = [{ user: member.login }, { team: 'blue' }, ...scoped.map(({ id }) => ({ token: id }))];
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('grant' as const),
      subject: fc.constantFrom(...subjects),
      effect: fc.constantFrom('allow' as const, 'deny' as const),
      names,
      stacks: fc.constantFrom('*/*', 'proj/*', '*/dev'),
    }),
    fc.record({
      kind: fc.constant('call' as const),
      call: fc.oneof(
        fc
          .tuple(fc.constantFrom(...named), names)
          .map(([to, permissions]): Call => ['/grants', { effect: 'allow', permissions, ...to }]),
        fc.constantFrom(...named).map((to): Call => ['/grants', { effect: 'allow', role, ...to }]),
        fc.constantFrom(role, 'viewer', 'admin').map((id): Call => [`/teams/blue/roles/${id}`, {}]),
        names.map((permissions): Call => [`/roles/${role}`, { details: details(permissions) }]),
      ),
    }),
    fc.record({
      kind: fc.constant('sql' as const),
      text: fc.constantFrom(
        `update memberships set role = 'member' where user_id = '${member.userId}'`,
        `update memberships set role = 'viewer' where user_id = '${member.userId}'`,
        `insert into team_members (team_id, user_id) values ('${blue}', '${member.userId}') on conflict do nothing`,
        `delete from team_members where team_id = '${blue}'`,
        `delete from grants where organization_id = '${member.organizationId}' and effect = 'deny'`,
        `update organization_access set default_permissions = 1 where organization_id = '${member.organizationId}'`,
        `update organization_access set default_permissions = null where organization_id = '${member.organizationId}'`,
      ),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), async (steps) => {
      await query(app, 'delete from grants where organization_id = $1', [member.organizationId]);
      for (const each of steps) {
        if (each.kind === 'sql') await query(app, each.text);
        else if (each.kind === 'call')
          await asAdmin(each.call[0].startsWith('/roles/') ? 'PATCH' : 'POST', ...each.call);
        else await grant(app, member.organizationId, each.subject, each.effect, each.names, { stacks: each.stacks });
      }
      const more = await query(
        app,
        `select o.owner, o.token, s.id from unnest($1::uuid[], $2::uuid[]) as o (owner, token), stacks s join projects p on p.id = s.project_id
         where p.organization_id = $3 and token_permissions(o.token, s.id) & ~token_permissions(o.owner, s.id) <> 0`,
        [pairs.map(({ owner }) => owner), pairs.map(({ token }) => token), member.organizationId],
      );
      expect(more).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

test('a secret with a typing error is refused without a look-up', async () => {
  const stack = await createStack(app);
  const made = await make(stack.auth, '/api/user/tokens', {});
  const wrong = made.token.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  expect(hashToken(wrong)).not.toEqual(hashToken(made.token));
  expect(await status(`token ${wrong}`, 'GET', '/api/user')).toBe(401);
});
