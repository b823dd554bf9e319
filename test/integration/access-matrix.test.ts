import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  allowedBy,
  deniedBy,
  type Grantable,
  grantable,
  hasPermission,
  noPermissions,
  type PermissionSet,
  permits,
} from '../../src/shared/access/permissions.ts';
import { rolePermissions } from '../../src/shared/access/roles.ts';
import { grant, person, team } from '../support/grants.ts';
import { hookRoutes } from '../support/hook-routes.ts';
import { pages } from '../support/page-routes.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

/** What each route needs. The first test fails for a route of a stack that is missing here. */
const needed: Record<string, Grantable> = {
  [`GET ${S}`]: 'outputs',
  [`DELETE ${S}`]: 'admin',
  [`POST ${S}/rename`]: 'write',
  [`PATCH ${S}/tags`]: 'write',
  [`POST ${S}/tags`]: 'write',
  [`PATCH ${S}/tags/:tag`]: 'write',
  [`DELETE ${S}/tags/:tag`]: 'write',
  [`GET ${S}/policypacks`]: 'read',
  [`GET ${S}/teams`]: 'read',
  [`GET ${S}/access`]: 'manage',
  [`GET ${S}/collaborators`]: 'manage',
  [`GET ${S}/export`]: 'outputs',
  [`GET ${S}/export/:stackVersion`]: 'read',
  'GET /trpc/states/:organization/:project/:stack/:stackVersion': 'read',
  [`POST ${S}/import`]: 'write',
  [`POST ${S}/encrypt`]: 'preview',
  [`POST ${S}/decrypt`]: 'decrypt',
  [`POST ${S}/batch-encrypt`]: 'preview',
  [`POST ${S}/batch-decrypt`]: 'decrypt',
  [`POST ${S}/decrypt/log-decryption`]: 'decrypt',
  [`POST ${S}/decrypt/log-batch-decryption`]: 'decrypt',
  [`POST ${S}/update`]: 'write',
  [`POST ${S}/preview`]: 'preview',
  [`POST ${S}/refresh`]: 'write',
  [`POST ${S}/destroy`]: 'write',
  [`POST ${S}/begin-update`]: 'write',
  [`GET ${S}/approvals`]: 'read',
  [`POST ${S}/approvals`]: 'write',
  [`POST ${S}/approvals/:approvalId`]: 'admin',
  [`DELETE ${S}/approvals/:approvalId`]: 'write',
  ...Object.fromEntries(hookRoutes(S).map((route) => [route, 'admin' as const])),
  [`GET ${S}/legal-hold`]: 'read',
  [`PUT ${S}/legal-hold`]: 'manage',
  [`DELETE ${S}/legal-hold`]: 'manage',
  [`PUT ${S}/versions/:stackVersion/pin`]: 'write',
  [`DELETE ${S}/versions/:stackVersion/pin`]: 'write',
  [`GET ${S}/drift/status`]: 'read',
  [`GET ${S}/drift/runs`]: 'read',
  [`GET ${S}/updates`]: 'read',
  [`GET ${S}/updates/latest`]: 'read',
  [`GET ${S}/updates/latest/previews`]: 'read',
  // Of an update that is no preview.
  [`POST ${U}`]: 'write',
  [`GET ${U}`]: 'read',
  [`GET ${U}/events`]: 'read',
  [`POST ${U}/cancel`]: 'write',
  [`POST ${U}/drain`]: 'write',
  [`GET ${U}/statistics`]: 'read',
};
const elsewherePaths = /^(HEAD|\w+ \/(api|scim|trpc|policy-packs|healthz|readyz|metrics|admin)(\/|$))/;

const byLease = /\/(complete|renew_lease|checkpoint\w*|journalentries|events\/batch)$/;

const app = testApp();
let stack: TestStack;
let updateId: string;
let elsewhere: TestStack;

/** Somebody, and what they may do with the stack. */
interface Subject {
  readonly auth: string;
  readonly held: PermissionSet;
}
const subjects: Record<string, Subject> = {};

beforeAll(async () => {
  stack = await createStack(app);
  elsewhere = await createStack(app);
  const { organization } = stack;
  // The new name of a rename, too.
  const at = { stacks: `${stack.project}/*` };
  for (const role of ['viewer', 'member', 'admin'] as const)
    subjects[`role ${role}`] = { auth: (await person(app, organization, role)).auth, held: rolePermissions[role] };
  for (const name of grantable) {
    const denied = await person(app, organization, 'admin');
    await grant(app, denied.organizationId, { userId: denied.userId }, 'deny', [name], at);
    subjects[`admin without ${name}`] = { auth: denied.auth, held: rolePermissions.admin & ~deniedBy([name]) };
  }
  const other = await person(app, organization, 'viewer');
  await grant(app, other.organizationId, { userId: other.userId }, 'allow', ['admin'], { stacks: 'other/*' });
  subjects['viewer with grants on other stacks'] = { auth: other.auth, held: rolePermissions.viewer };
  const blue = await team(app, other.organizationId, 'blue', []);
  await grant(app, other.organizationId, { teamId: blue }, 'allow', ['write'], at);
  const asOwner = async (path: string, body: object) =>
    (await ok(app.call('POST', `/api/orgs/${organization}${path}`, { auth: stack.auth, body }))).json;
  const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:write'] };
  const own = { id: (await asOwner('/roles', { name: 'own', details })).id as string, held: allowedBy(['write']) };
  for (const { held, id } of [own, { id: 'admin', held: rolePermissions.admin }]) {
    const { auth, login } = await person(app, organization, 'viewer');
    await asOwner('/grants', { effect: 'allow', role: id, user: login, ...at });
    // Of stacks, not of the organization.
    subjects[`viewer with the role ${id} by a grant`] = { auth, held: rolePermissions.viewer | held };
  }
  const tokens = `/api/orgs/${organization}/tokens`;
  const make = async (path: string, body: object) => {
    const { json } = await ok(app.call('POST', path, { auth: stack.auth, body }));
    return { auth: `token ${json.tokenValue}`, id: json.id as string };
  };
  for (const name of grantable) {
    const { auth } = await make('/api/user/tokens', { scopes: [{ permissions: [name], stacks: '*/*' }] });
    subjects[`admin's token for ${name}`] = { auth, held: allowedBy([name]) };
    const service = await make(tokens, { name: `s-${name}`, service: true });
    await grant(app, other.organizationId, { tokenId: service.id }, 'allow', [name], at);
    subjects[`service with ${name}`] = { auth: service.auth, held: allowedBy([name]) };
  }
  const secretOutputs = {
    name: 's-secret',
    service: true,
    scopes: [{ permissions: ['outputs', 'decrypt'], stacks: '*/*' }],
  };
  subjects['service with secret outputs'] = {
    ...(await make(tokens, secretOutputs)),
    held: allowedBy(['outputs', 'decrypt']),
  };
  subjects['service without anything'] = { ...(await make(tokens, { name: 's', service: true })), held: noPermissions };
  subjects['identity provider'] = { auth: await provisioningToken(app, organization), held: noPermissions };
  subjects['organization'] = { ...(await make(tokens, { name: 'o' })), held: rolePermissions.member };
  subjects['organization as admin'] = {
    ...(await make(tokens, { name: 'a', admin: true })),
    held: rolePermissions.admin,
  };
  subjects['team'] = {
    ...(await make(`/api/orgs/${organization}/teams/blue/tokens`, { name: 't' })),
    held: allowedBy(['write']),
  };
  updateId = (await startUpdate(app, stack)).id;
});

function request(
  route: string,
  auth: string,
  stack: TestStack,
  { update, body }: { readonly update?: string; readonly body?: object } = {},
) {
  const [method, pattern] = route.split(' ') as [string, string];
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    .replace(':organization', stack.organization)
    .replace(':project', stack.project)
    .replace(':stackVersion', '999')
    .replace(':stack', stack.stack)
    .replace(':updateId', update ?? updateId);
  const hasBody = method !== 'GET' && method !== 'DELETE';
  return app.call(method, url, {
    auth,
    ...(hasBody ? { body: body ?? bodySampleOf(pattern) } : {}),
  });
}

test('every route of a stack is in the table', () => {
  const routes = listRoutes(app.app).filter(
    (route) => route.includes('/:stack') && !route.startsWith('HEAD') && !byLease.test(route),
  );
  expect(routes.sort()).toEqual(Object.keys(needed).sort());
});

test('every page is in its table, and only people who are signed in see those that are not public', async () => {
  const routes = listRoutes(app.app).filter((route) => !elsewherePaths.test(route));
  expect(routes.sort()).toEqual(Object.keys(pages).sort());
  const wrong: object[] = [];
  for (const [route, access] of Object.entries(pages)) {
    const [method, url] = route.split(' ') as [string, string];
    const fields = { login: 'nobody', password: 'none', session: 'none', present: '', next: '' };
    const form = {
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams(fields).toString(),
    };
    // A token is no session, whatever it may do.
    for (const auth of [undefined, subjects['role admin']?.auth, 'token nonsense']) {
      const answer = await app.call(method, url, { ...(method === 'POST' ? form : {}), ...(auth ? { auth } : {}) });
      const isRefused = answer.status === 401 && /not signed in/.test(answer.text);
      if (isRefused !== (access === 'session')) wrong.push({ route, auth, status: answer.status, text: answer.text });
    }
  }
  expect(wrong).toEqual([]);
});

/** These list people, which scoped tokens and tokens of services may not, whatever they may do with the stack. */
const listsPeople: readonly string[] = [`GET ${S}/access`, `GET ${S}/collaborators`];

/** The answers to all subjects that differ from what the permission says. */
async function wrongAnswers(route: string, permission: Grantable, body?: object): Promise<object[]> {
  const wrong: object[] = [];
  for (const [name, { auth, held }] of Object.entries(subjects)) {
    const isMachine = /^service |token for /.test(name);
    const may = permits(held, permission) && !(isMachine && listsPeople.includes(route));
    // The running update makes sure that permitted changes are refused later; it must not be cancelled.
    const ids = may && route.endsWith('/cancel') ? { update: '00000000-0000-4000-8000-000000000000' } : {};
    const { status, text } = await request(route, auth, stack, { ...ids, ...(body ? { body } : {}) });
    const isRight = may
      ? ![401, 403].includes(status) && !/stack .*not found/i.test(text)
      : status === (hasPermission(held, 'read') ? 403 : 404);
    if (!isRight) wrong.push({ name, may, status, text });
  }
  return wrong;
}

test('a call that creates and starts a preview needs preview, whoever calls', async () => {
  const body = { updateKind: 'preview', program: { options: { dryRun: true } } };
  expect(await wrongAnswers(`POST ${S}/begin-update`, 'preview', body)).toEqual([]);
});

describe.each(Object.keys(needed))('%s', (route) => {
  const permission = needed[route] as Grantable;

  test(`needs ${permission}, whoever calls`, async () => {
    expect(await wrongAnswers(route, permission)).toEqual([]);
  });

  test('finds nothing in another organization', async () => {
    for (const { auth } of Object.values(subjects)) expect((await request(route, auth, elsewhere)).status).toBe(404);
  });
});

/** The pattern of a route of an organization, of these. */
function patternOf(route: string, routes: readonly string[]): string {
  const [method, path] = route.split(' ') as [string, string];
  const found = routes.find((each) => {
    const [of, pattern] = each.split(' ') as [string, string];
    return (
      of === method &&
      new RegExp(`^${pattern.replace('/api/orgs/:organization', '').replace(/:\w+/g, '[^/]+')}$`).test(path)
    );
  });
  return found ?? route;
}

test('organizations are managed by their admins only, with tokens that have no scopes', async () => {
  const read = [
    'GET /members',
    'GET /policypacks',
    'GET /policypacks/none/latest',
    'GET /policypacks/none/versions/1',
    'GET /policypacks/none/versions/1/schema',
    'GET /delivery',
    'GET /search/resources',
    'GET /search/resourcesv2',
    'GET /policygroups',
    'GET /policygroups/default-policy-group',
    'GET /teams',
    'GET /teams/blue',
    'GET /roles',
    'GET /roles/viewer',
    'GET /roles/scopes',
  ];
  const managed = [
    'GET /auditlogs',
    'GET /invitations',
    'POST /invitations',
    'DELETE /invitations/nobody',
    'GET /auditlogs/export',
    'GET /auditlogs/v2',
    'GET /auditlogs/v2/export',
    'GET /tokens',
    'DELETE /tokens/none',
    'POST /tokens/none/rotate',
    'GET /teams/blue/tokens',
    'POST /teams/blue/tokens',
    'DELETE /teams/blue/tokens/none',
    'POST /teams/blue/tokens/none/rotate',
    'GET /update-rules/estimate',
    'GET /hooks',
    'GET /stack-hooks',
    'GET /hooks/none',
    'GET /hooks/none/deliveries',
    'PATCH /hooks/none',
    'DELETE /hooks/none',
    'POST /hooks',
    'POST /hooks/none/ping',
    'POST /hooks/none/deliveries/none/redeliver',
    'GET /oidc/issuers',
    'GET /oidc/issuers/none',
    'GET /auth/policies/oidcissuers/none',
    'PATCH /oidc/issuers/none',
    'PATCH /auth/policies/none',
    'DELETE /oidc/issuers/none',
    'GET /deleted-stacks',
    'POST /deleted-stacks/none/restore',
    'DELETE /deleted-stacks/none',
    'GET /update-rules',
    'GET /update-rules/none',
    'PUT /update-rules/none',
    'DELETE /update-rules/none',
    'GET /access-policy',
    'PATCH /access-policy',
    'PATCH /teams/blue',
    'DELETE /teams/none',
    'GET /teams/blue/roles',
    'POST /teams/blue/roles/none',
    'DELETE /teams/blue/roles/none',
    'POST /roles',
    'PATCH /roles/none',
    'DELETE /roles/none',
    'GET /managed-objects',
    'PATCH /managed-objects',
    'GET /grants',
    'POST /grants',
    'PATCH /grants',
    'DELETE /grants/none',
    'POST /teams/pulumi',
    'POST /members/nobody',
    'PATCH /members/nobody',
    'DELETE /members/nobody',
    'POST /tokens',
  ];
  const policies = [
    'POST /oidc/issuers',
    'POST /update-rules',
    'POST /policypacks',
    'DELETE /policypacks/none',
    'DELETE /policypacks/none/versions/1',
    'POST /policypacks/none/versions/1/complete',
    'POST /policygroups',
    'PATCH /policygroups/none',
    'PATCH /policygroups/none/batch',
    'DELETE /policygroups/none',
  ];
  const registered = listRoutes(app.app).filter((route) => /^(?!HEAD).* \/api\/orgs\/:organization\//.test(route));
  const given = [...read, ...managed, ...policies].map((route) => patternOf(route, registered));
  expect(given.sort()).toEqual(registered.sort());
  for (const [name, { auth }] of Object.entries(subjects)) {
    // People see each other; machines and tokens with scopes do not.
    const isPerson = /^(role|viewer with|admin without) /.test(name);
    const isAdmin = /^(role admin|admin without .*|organization as admin)$/.test(name);
    for (const route of [...read, ...managed, ...policies]) {
      const [method, path] = route.split(' ') as [string, string];
      const changes = path === '/access-policy' ? { decryptByRole: true } : { role: 'viewer', policies: [] };
      const isNamed = policies.includes(route) || method === 'PUT' || path === '/teams/pulumi';
      const body = method === 'PATCH' ? changes : isNamed ? { name: '/', url: '/', kind: '/', settings: {} } : {};
      const call = (organization: string) =>
        app.call(method, `/api/orgs/${organization}${path}`, {
          auth,
          ...(method === 'GET' || method === 'DELETE' ? {} : { body }),
        });
      const allowed =
        isAdmin || (path === '/members' ? isPerson : read.includes(route) && name !== 'identity provider');
      const [{ status }, there] = await Promise.all([call(stack.organization), call(elsewhere.organization)]);
      expect({ name, route, refused: status === 403 }).toEqual({ name, route, refused: !allowed });
      expect(there.status).toBe(404);
    }
  }
});

const scimPath = '/scim/v2/:organization';

test('identity providers are the only ones who provision members and teams, in their organization', async () => {
  const routes = listRoutes(app.app).filter((route) => route.includes('/scim/') && !route.startsWith('HEAD'));
  const resources = ['Users', 'Groups'].flatMap((name) => [
    ...['GET', 'POST'].map((method) => `${method} ${scimPath}/${name}`),
    ...['GET', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${scimPath}/${name}/:id`),
  ]);
  const discovery = ['ServiceProviderConfig', 'ResourceTypes', 'Schemas'].map((name) => `GET ${scimPath}/${name}`);
  expect(routes.sort()).toEqual([...resources, ...discovery].sort());
  for (const route of routes) {
    const [method, pattern] = route.split(' ') as [string, string];
    const call = (auth: string, organization: string) =>
      app.call(
        method,
        pattern.replace(':organization', organization).replace(':id', '00000000-0000-4000-8000-000000000000'),
        {
          auth,
          ...(['GET', 'DELETE'].includes(method) ? {} : { body: {} }),
        },
      );
    for (const [name, { auth }] of Object.entries(subjects)) {
      const { status } = await call(auth, stack.organization);
      expect({ name, route, refused: status === 403 }).toEqual({ name, route, refused: name !== 'identity provider' });
      expect((await call(auth, elsewhere.organization)).status).toBe(404);
    }
  }
});
