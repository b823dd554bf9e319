import { beforeAll, describe, expect, test } from '@jest/globals';
import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { hookRoutes } from '../support/hook-routes.ts';
import { pages } from '../support/page-routes.ts';
import { listRoutes, procedureRoutes } from '../support/routes.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';

const O = '/api/orgs/:organization';
const P = '/scim/v2/:organization';
const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

/** Who may call each route. The first test fails for a route that is missing here. */
const expected: Record<
  string,
  'public' | 'user' | 'own' | 'operator' | 'viewer' | 'member' | 'admin' | 'provider' | 'lease'
> = {
  'GET /healthz': 'public',
  'GET /healthz/stream': 'public',
  'GET /readyz': 'public',
  'GET /metrics': 'public',
  'GET /api/capabilities': 'public',
  'GET /api/cli/version': 'public',
  'GET /api/openapi.json': 'public',
  'GET /api/openapi/pulumi-spec.json': 'public',
  'GET /api/embeds/badge.svg': 'public',
  'GET /api/embeds/updates.atom': 'public',
  'PUT /policy-packs/:versionId': 'public',
  'GET /policy-packs/:versionId': 'public',
  'GET /api/orgs/:organization/policypacks': 'viewer',
  'GET /api/orgs/:organization/delivery': 'viewer',
  'GET /api/orgs/:organization/search/resources': 'viewer',
  'GET /api/orgs/:organization/search/resourcesv2': 'viewer',
  'POST /api/orgs/:organization/policypacks': 'admin',
  'GET /api/orgs/:organization/policypacks/:pack/latest': 'viewer',
  'GET /api/orgs/:organization/policypacks/:pack/versions/:versionTag': 'viewer',
  'DELETE /api/orgs/:organization/policypacks/:pack': 'admin',
  'DELETE /api/orgs/:organization/policypacks/:pack/versions/:versionTag': 'admin',
  'POST /api/orgs/:organization/policypacks/:pack/versions/:versionTag/complete': 'admin',
  'GET /api/orgs/:organization/policypacks/:pack/versions/:versionTag/schema': 'viewer',
  'GET /api/orgs/:organization/policygroups': 'viewer',
  'POST /api/orgs/:organization/policygroups': 'admin',
  'GET /api/orgs/:organization/policygroups/:group': 'viewer',
  'PATCH /api/orgs/:organization/policygroups/:group': 'admin',
  'PATCH /api/orgs/:organization/policygroups/:group/batch': 'admin',
  'DELETE /api/orgs/:organization/policygroups/:group': 'admin',
  'GET /api/user': 'user',
  'GET /api/user/organizations/default': 'user',
  'GET /api/user/stacks': 'user',
  'GET /api/user/tokens': 'user',
  'POST /api/user/tokens': 'user',
  'DELETE /api/user/tokens/:tokenId': 'own',
  'POST /api/user/tokens/:tokenId/rotate': 'own',
  'GET /api/user/invitations': 'user',
  'POST /api/user/invitations/:organization/accept': 'own',
  'DELETE /api/user/invitations/:organization': 'own',
  'DELETE /api/user/organizations/:organization': 'own',
  [`GET ${O}/invitations`]: 'admin',
  [`POST ${O}/invitations`]: 'admin',
  [`DELETE ${O}/invitations/:login`]: 'admin',
  [`GET ${O}/members`]: 'viewer',
  [`POST ${O}/members/:login`]: 'admin',
  [`PATCH ${O}/members/:login`]: 'admin',
  [`DELETE ${O}/members/:login`]: 'admin',
  [`GET ${O}/tokens`]: 'admin',
  [`POST ${O}/tokens`]: 'admin',
  [`DELETE ${O}/tokens/:tokenId`]: 'admin',
  [`POST ${O}/tokens/:tokenId/rotate`]: 'admin',
  [`GET ${O}/teams/:team/tokens`]: 'admin',
  [`POST ${O}/teams/:team/tokens`]: 'admin',
  [`DELETE ${O}/teams/:team/tokens/:tokenId`]: 'admin',
  [`POST ${O}/teams/:team/tokens/:tokenId/rotate`]: 'admin',
  'GET /api/operator/organizations': 'operator',
  'POST /api/operator/organizations': 'operator',
  'DELETE /api/operator/organizations/:name': 'operator',
  'GET /api/operator/organizations/:name/quota': 'operator',
  'PUT /api/operator/organizations/:name/quota': 'operator',
  'GET /api/operator/users': 'operator',
  'POST /api/operator/users': 'operator',
  'GET /api/operator/users/:login': 'operator',
  'PATCH /api/operator/users/:login': 'operator',
  'GET /api/registry/packages': 'user',
  'GET /api/registry/templates': 'user',
  'GET /api/preview/registry/packages': 'user',
  'GET /api/preview/registry/templates': 'user',
  'POST /api/stacks/:organization/:project': 'member',
  'HEAD /api/stacks/:organization/:project': 'viewer',
  [`GET ${S}`]: 'viewer',
  [`DELETE ${S}`]: 'admin',
  [`POST ${S}/rename`]: 'member',
  [`PATCH ${S}/tags`]: 'member',
  [`POST ${S}/tags`]: 'member',
  [`PATCH ${S}/tags/:tag`]: 'member',
  [`DELETE ${S}/tags/:tag`]: 'member',
  [`GET ${S}/policypacks`]: 'viewer',
  [`GET ${S}/export`]: 'viewer',
  [`GET ${S}/export/:stackVersion`]: 'viewer',
  [`POST ${S}/import`]: 'member',
  [`POST ${S}/encrypt`]: 'member',
  [`POST ${S}/decrypt`]: 'viewer',
  [`POST ${S}/batch-encrypt`]: 'member',
  [`POST ${S}/batch-decrypt`]: 'viewer',
  [`POST ${S}/decrypt/log-decryption`]: 'viewer',
  [`POST ${S}/decrypt/log-batch-decryption`]: 'viewer',
  [`POST ${S}/update`]: 'member',
  [`POST ${S}/preview`]: 'member',
  [`POST ${S}/refresh`]: 'member',
  [`POST ${S}/destroy`]: 'member',
  [`POST ${S}/begin-update`]: 'member',
  [`GET ${S}/approvals`]: 'viewer',
  [`POST ${S}/approvals`]: 'member',
  [`POST ${S}/approvals/:approvalId`]: 'admin',
  [`DELETE ${S}/approvals/:approvalId`]: 'member',
  [`GET ${S}/updates`]: 'viewer',
  [`GET ${S}/updates/latest`]: 'viewer',
  [`GET ${S}/updates/latest/previews`]: 'viewer',
  'POST /api/oauth/token': 'public',
  [`GET ${O}/access-policy`]: 'admin',
  [`PATCH ${O}/access-policy`]: 'admin',
  [`GET ${O}/deleted-stacks`]: 'admin',
  [`POST ${O}/deleted-stacks/:deletedStackId/restore`]: 'admin',
  [`DELETE ${O}/deleted-stacks/:deletedStackId`]: 'admin',
  [`GET ${O}/update-rules`]: 'admin',
  [`POST ${O}/update-rules`]: 'admin',
  [`GET ${O}/update-rules/estimate`]: 'admin',
  [`GET ${O}/update-rules/:ruleId`]: 'admin',
  [`PUT ${O}/update-rules/:ruleId`]: 'admin',
  [`DELETE ${O}/update-rules/:ruleId`]: 'admin',
  ...Object.fromEntries([O, S].flatMap((scope) => hookRoutes(scope)).map((route) => [route, 'admin' as const])),
  [`GET ${O}/stack-hooks`]: 'admin',
  [`GET ${S}/legal-hold`]: 'viewer',
  [`PUT ${S}/legal-hold`]: 'admin',
  [`DELETE ${S}/legal-hold`]: 'admin',
  [`PUT ${S}/versions/:stackVersion/pin`]: 'member',
  [`DELETE ${S}/versions/:stackVersion/pin`]: 'member',
  [`GET ${S}/drift/status`]: 'viewer',
  [`GET ${S}/drift/runs`]: 'viewer',
  [`GET ${O}/oidc/issuers`]: 'admin',
  [`POST ${O}/oidc/issuers`]: 'admin',
  [`GET ${O}/oidc/issuers/:issuerId`]: 'admin',
  [`PATCH ${O}/oidc/issuers/:issuerId`]: 'admin',
  [`DELETE ${O}/oidc/issuers/:issuerId`]: 'admin',
  [`GET ${O}/auth/policies/oidcissuers/:issuerId`]: 'admin',
  [`PATCH ${O}/auth/policies/:policyId`]: 'admin',
  [`GET ${O}/teams`]: 'viewer',
  [`POST ${O}/teams/pulumi`]: 'admin',
  [`GET ${O}/teams/:team`]: 'viewer',
  // Of an existing team: its admins, too.
  [`PATCH ${O}/teams/:team`]: 'viewer',
  [`DELETE ${O}/teams/:team`]: 'admin',
  [`GET ${O}/teams/:team/roles`]: 'admin',
  [`POST ${O}/teams/:team/roles/:role`]: 'admin',
  [`DELETE ${O}/teams/:team/roles/:role`]: 'admin',
  [`GET ${O}/roles`]: 'viewer',
  [`POST ${O}/roles`]: 'admin',
  [`GET ${O}/roles/scopes`]: 'viewer',
  [`GET ${O}/roles/:role`]: 'viewer',
  [`PATCH ${O}/roles/:role`]: 'admin',
  [`DELETE ${O}/roles/:role`]: 'admin',
  [`GET ${O}/managed-objects`]: 'admin',
  [`PATCH ${O}/managed-objects`]: 'admin',
  [`GET ${O}/grants`]: 'admin',
  [`POST ${O}/grants`]: 'admin',
  [`PATCH ${O}/grants`]: 'admin',
  [`DELETE ${O}/grants/:grant`]: 'admin',
  [`GET ${S}/access`]: 'admin',
  [`GET ${S}/teams`]: 'viewer',
  [`GET ${S}/collaborators`]: 'admin',
  'GET /api/orgs/:organization/auditlogs': 'admin',
  'GET /api/orgs/:organization/auditlogs/export': 'admin',
  'GET /api/orgs/:organization/auditlogs/v2': 'admin',
  'GET /api/orgs/:organization/auditlogs/v2/export': 'admin',
  ...Object.fromEntries(
    [
      ...['ServiceProviderConfig', 'ResourceTypes', 'Schemas', 'Users', 'Groups'].map((name) => `GET ${P}/${name}`),
      ...['Users', 'Groups'].flatMap((name) => [
        `POST ${P}/${name}`,
        ...['GET', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${P}/${name}/:id`),
      ]),
    ].map((route) => [route, 'provider' as const]),
  ),
  [`POST ${U}`]: 'member',
  [`GET ${U}`]: 'viewer',
  [`GET ${U}/events`]: 'viewer',
  [`POST ${U}/cancel`]: 'member',
  [`POST ${U}/drain`]: 'member',
  [`GET ${U}/statistics`]: 'viewer',
  [`POST ${U}/complete`]: 'lease',
  [`POST ${U}/renew_lease`]: 'lease',
  [`PATCH ${U}/checkpoint`]: 'lease',
  [`PATCH ${U}/checkpointverbatim`]: 'lease',
  [`PATCH ${U}/checkpointdelta`]: 'lease',
  [`PATCH ${U}/journalentries`]: 'lease',
  [`POST ${U}/events/batch`]: 'lease',
};

const bodies: Record<string, object> = {
  [`POST ${O}/invitations`]: { login: 'nobody', role: 'viewer' },
  'POST /api/stacks/:organization/:project': { stackName: 'dev' },
  'POST /api/orgs/:organization/policypacks': { name: '/' },
  'POST /api/operator/organizations': { name: '/' },
  'POST /api/operator/users': { login: '/' },
  'POST /api/orgs/:organization/policygroups': { name: '/' },
  [`POST ${S}/rename`]: { newName: 'x/y' },
  [`PATCH ${S}/tags`]: {},
  [`POST ${S}/tags`]: { name: 'a', value: 'b' },
  [`PATCH ${S}/tags/:tag`]: { value: 'b' },
  [`POST ${S}/import`]: {},
  [`POST ${S}/encrypt`]: { plaintext: 'QQ==' },
  [`POST ${S}/decrypt`]: { ciphertext: 'QQ==' },
  [`POST ${S}/batch-encrypt`]: { plaintexts: [] },
  [`POST ${S}/batch-decrypt`]: { ciphertexts: [] },
  [`POST ${S}/begin-update`]: { updateKind: 'update', program: {} },
  [`POST ${U}/complete`]: { status: 'succeeded' },
  [`PATCH ${O}/members/:login`]: { role: 'viewer' },
};

const app = testApp();
let own: TestStack;
let updateId: string;
let lease: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  own = await createStack(app);
  const update = await startUpdate(app, own);
  updateId = update.id;
  lease = update.lease;
  for (const role of ['viewer', 'member', 'admin'] as const)
    tokens[role] = `token ${await app.createUser(own.organization, role)}`;
  tokens['outsider'] = `token ${await app.createUser('elsewhere', 'admin')}`;
});

const guarded = (kind: string) => Object.keys(expected).filter((route) => expected[route] === kind);
const organizational = ['viewer', 'member', 'admin'].flatMap(guarded);
const ofProviders = guarded('provider');

function request(
  route: string,
  auth: string | undefined,
  ids: { update?: string; organization?: string } = {},
): Promise<TestResponse> {
  const [method, pattern] = route.split(' ') as [string, string];
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    // Nobody is to leave.
    .replace('/user/organizations/:organization', '/user/organizations/none')
    .replace(':organization', ids.organization ?? own.organization)
    .replace(':name', own.organization)
    .replace(':project', own.project)
    .replace(':stackVersion', '999')
    .replace(':stack', own.stack)
    .replace(':updateId', ids.update ?? updateId)
    .replace(':login', 'nobody')
    .replace(':team', 'nobody')
    .replace(':role', 'nobody')
    .replace(':grant', 'nobody')
    .replace(':id', '00000000-0000-4000-8000-000000000000')
    .replace(':tokenId', '00000000-0000-4000-8000-000000000000');
  const body = method === 'GET' || method === 'HEAD' || method === 'DELETE' ? undefined : (bodies[route] ?? {});
  return app.call(method, url, { ...(auth === undefined ? {} : { auth }), ...(body ? { body } : {}) });
}

/** Returns the status after checking that the body repeats it: the CLI trusts the body, and SCIM requires it. */
function statusOf(route: string, response: TestResponse): number {
  if (response.status >= 400 && !route.startsWith('HEAD')) {
    const text = expect.stringMatching(/./);
    if (route.includes(P)) expect(response.json).toMatchObject({ status: String(response.status), detail: text });
    else expect(response.json).toEqual({ code: response.status, message: text });
  }
  return response.status;
}

test('the table of expectations matches the registered routes', () => {
  const routes = listRoutes(app.app);
  // Pages and procedures have tests of their own.
  const known = new Set([...Object.keys(expected), ...Object.keys(pages), ...procedureRoutes]);
  const automaticHeads = new Set(
    [...known].filter((route) => route.startsWith('GET ')).map((route) => route.replace('GET', 'HEAD')),
  );
  expect(routes.filter((route) => !known.has(route) && !automaticHeads.has(route))).toEqual([]);
  expect([...known].filter((route) => !routes.includes(route))).toEqual([]);
});

describe('without a valid token', () => {
  const routes = Object.keys(expected).filter((route) => expected[route] !== 'public');

  test.each(routes)('%s returns 401', async (route) => {
    for (const auth of [undefined, 'token', 'token ', 'Basic abc', `token ${'x'.repeat(40)}`]) {
      const status = statusOf(route, await request(route, auth));
      expect({ auth, status }).toEqual({ auth, status: 401 });
    }
  });

  test('a revoked or expired token gets 401 at once', async () => {
    for (const change of ['revoked_at = now()', `expires_at = now() - interval '1 second'`]) {
      const token = await app.createUser(own.organization, 'admin');
      expect((await request(`GET ${S}`, `token ${token}`)).status).toBe(200);
      await query(app, `update api_tokens set ${change} where token_hash = $1`, [hashToken(token)]);
      expect(statusOf(`GET ${S}`, await request(`GET ${S}`, `token ${token}`))).toBe(401);
    }
  });

  test.each([...organizational, ...ofProviders, ...['user', 'own', 'operator'].flatMap(guarded)])(
    '%s rejects a lease as API token with 401',
    async (route) => {
      expect(statusOf(route, await request(route, lease))).toBe(401);
      expect(statusOf(route, await request(route, lease.replace('update-token', 'token')))).toBe(401);
    },
  );

  test.each(guarded('lease'))('%s rejects an API token as lease', async (route) => {
    const admin = tokens['admin'] as string;
    expect(statusOf(route, await request(route, admin))).toBe(401);
    expect(statusOf(route, await request(route, admin.replace('token', 'update-token')))).toBe(403);
  });
});

describe('for browsers', () => {
  const headers = {
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  };
  /** They are embedded in pages of others, and read often. */
  const embeds: Readonly<Record<string, object>> = {
    'GET /api/embeds/badge.svg': {
      'cache-control': 'public, max-age=60',
      'cross-origin-resource-policy': 'cross-origin',
    },
    'GET /api/embeds/updates.atom': { 'cache-control': 'private, max-age=60' },
  };

  test.each([...Object.keys(expected), 'GET /api/none', 'OPTIONS /api/user', 'GET /%zz'])(
    '%s allows nothing',
    async (route) => {
      for (const auth of [undefined, tokens['viewer']]) {
        const response = await request(route, auth);
        expect({ auth, ...response.headers }).toMatchObject({ auth, ...headers, ...embeds[route] });
        expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    },
  );

  test('another site may not call the API', async () => {
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) {
      const preflight = await app.call('OPTIONS', own.path, {
        headers: {
          origin: 'https://elsewhere.example',
          'access-control-request-method': method,
          'access-control-request-headers': 'authorization',
        },
      });
      expect(preflight.status).toBe(404);
      expect(JSON.stringify(preflight.headers)).not.toContain('access-control');
    }
    const simple = await app.call('GET', own.path, {
      auth: tokens['viewer'] as string,
      headers: { origin: 'https://elsewhere.example' },
    });
    expect(JSON.stringify(simple.headers)).not.toContain('access-control');
  });
});

describe('with a token', () => {
  test.each(organizational)('%s requires its role', async (route) => {
    const order = ['viewer', 'member', 'admin'];
    const needed = order.indexOf(expected[route] as string);
    for (const [rank, role] of order.entries()) {
      if (rank >= needed) continue;
      expect({ role, status: statusOf(route, await request(route, tokens[role])) }).toEqual({ role, status: 403 });
    }
    // The running update makes sure that an authorized write is rejected later. It must not be cancelled here.
    const ids = route.endsWith('/cancel') ? { update: '00000000-0000-4000-8000-000000000000' } : {};
    const least = statusOf(route, await request(route, tokens[order[needed] as string], ids));
    expect([401, 403]).not.toContain(least);
  });

  test.each(ofProviders)('%s is refused to every member', async (route) => {
    for (const role of ['viewer', 'member', 'admin'])
      expect({ role, status: statusOf(route, await request(route, tokens[role])) }).toEqual({ role, status: 403 });
  });

  test.each([...organizational, ...ofProviders])(
    '%s does not tell an outsider whether the organization exists',
    async (route) => {
      const there = await request(route, tokens['outsider']);
      expect(statusOf(route, there)).toBe(404);
      const absent = await request(route, tokens['outsider'], { organization: 'no-such-organization' });
      expect(absent.text.replaceAll('no-such-organization', own.organization)).toBe(there.text);
    },
  );

  test.each(guarded('operator'))(
    '%s is refused to all but site admins, whether or not its object exists',
    async (route) => {
      for (const role of ['viewer', 'member', 'admin', 'outsider'])
        expect({ role, status: statusOf(route, await request(route, tokens[role])) }).toEqual({ role, status: 403 });
      const token = await app.createUser(own.organization, 'viewer', `operator-${guarded('operator').indexOf(route)}`);
      await query(app, `update users set site_admin = true where login like 'operator-%'`);
      // The organization has stacks, so it is not deleted.
      expect([401, 403]).not.toContain(statusOf(route, await request(route, `token ${token}`)));
      const scoped = { scopes: [{ permissions: ['read'], stacks: '*/*' }] };
      const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: `token ${token}`, body: scoped }));
      expect(statusOf(route, await request(route, `token ${json.tokenValue}`))).toBe(403);
    },
  );

  test.each(guarded('user'))('%s is open to any user', async (route) => {
    expect(statusOf(route, await request(route, tokens['outsider']))).toBe(200);
  });

  test.each(guarded('own'))('%s finds nothing that belongs to others', async (route) => {
    const theirs = await query<{ id: string }>(app, 'select id from api_tokens where token_hash = $1', [
      hashToken((tokens['member'] as string).replace('token ', '')),
    ]);
    const [method, pattern] = route.split(' ') as [string, string];
    // Somebody else is invited there.
    const inviting = await createStack(app);
    const other = await person(app, (await createStack(app)).organization, 'member');
    const invitations = `/api/orgs/${inviting.organization}/invitations`;
    await ok(app.call('POST', invitations, { auth: inviting.auth, body: { login: other.login, role: 'viewer' } }));
    for (const id of [theirs[0]?.id as string, 'x']) {
      const path = pattern.replace(':tokenId', id).replace(':organization', inviting.organization);
      expect(path).not.toContain(':');
      const response = await app.call(method, path, {
        auth: tokens['viewer'] as string,
        ...(method === 'POST' ? { body: {} } : {}),
      });
      expect(statusOf(route, response)).toBe(404);
    }
  });

  test('the scheme may be Bearer or token, in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'Token', 'TOKEN']) {
      const auth = (tokens['viewer'] as string).replace('token', scheme);
      expect((await request(`GET ${S}`, auth)).status).toBe(200);
    }
  });
});

describe('a lease', () => {
  test.each(guarded('lease'))('%s returns 403 for one of another update, or an unknown one', async (route) => {
    const other = await createStack(app);
    const foreign = await startUpdate(app, other);
    expect(statusOf(route, await request(route, foreign.lease))).toBe(403);
    expect(statusOf(route, await request(route, `update-token lease-${'x'.repeat(43)}`))).toBe(403);
    for (const update of ['nonsense', '00000000-0000-4000-8000-000000000000'])
      expect(statusOf(route, await request(route, lease, { update }))).toBe(403);
  });

  test.each(guarded('lease'))(
    '%s returns 403 after it has expired, or its update was cancelled or completed',
    async (route) => {
      for (const end of ['expire', 'cancel', 'complete'] as const) {
        const stack = await createStack(app);
        const update = await startUpdate(app, stack);
        if (end === 'expire') await query(app, 'update updates set expires_at = now() where id = $1', [update.id]);
        if (end === 'cancel') await ok(app.call('POST', `${update.path}/cancel`, { auth: stack.auth }));
        if (end === 'complete')
          await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'failed' } }));
        const [method, pattern] = route.split(' ') as [string, string];
        const response = await app.call(method, pattern.replace(U, update.path), {
          auth: update.lease,
          body: { ...deployment(1), status: 'succeeded', entries: [], events: [] },
        });
        expect({ end, status: statusOf(route, response) }).toEqual({ end, status: 403 });
      }
    },
  );
});
