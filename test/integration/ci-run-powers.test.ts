import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { query } from '../support/database.ts';
import { setPolicies, signIn, type Trusting, trust } from '../support/exchange.ts';
import { grant, type Person, person, team } from '../support/grants.ts';
import { pages } from '../support/page-routes.ts';
import { queryPath, resultOf } from '../support/procedures.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { ok } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { TestIssuer } from '../support/test-issuer.ts';

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;
const O = '/api/orgs/:organization';

/** What a CI run may change, and why it has to. The walks fail for a route or procedure that is neither here nor refused. */
const changedByRuns: Record<string, string> = {
  'POST /api/stacks/:organization/:project': 'pipelines create the stacks that they update',
  [`DELETE ${S}`]: 'pipelines remove the stacks of closed pull requests; people restore what was removed',
  [`POST ${S}/rename`]: 'only where no rule and no grant stops or begins to apply',
  [`PATCH ${S}/tags`]: 'only tags by which neither rules nor grants select stacks',
  [`POST ${S}/tags`]: 'only tags by which neither rules nor grants select stacks',
  [`PATCH ${S}/tags/:tag`]: 'only tags by which neither rules nor grants select stacks',
  [`DELETE ${S}/tags/:tag`]: 'only tags by which neither rules nor grants select stacks',
  [`POST ${S}/import`]: 'as an update',
  [`POST ${S}/encrypt`]: 'changes nothing',
  [`POST ${S}/decrypt`]: 'changes nothing',
  [`POST ${S}/batch-encrypt`]: 'changes nothing',
  [`POST ${S}/batch-decrypt`]: 'changes nothing',
  [`POST ${S}/decrypt/log-decryption`]: 'changes nothing',
  [`POST ${S}/decrypt/log-batch-decryption`]: 'changes nothing',
  [`POST ${S}/update`]: 'updates',
  [`POST ${S}/preview`]: 'updates',
  [`POST ${S}/refresh`]: 'updates',
  [`POST ${S}/destroy`]: 'updates',
  [`POST ${S}/begin-update`]: 'updates',
  [`POST ${U}`]: 'updates',
  [`POST ${U}/cancel`]: 'whoever may update the stack ends its updates',
  [`POST ${U}/drain`]: 'whoever may update the stack ends its updates',
  [`POST ${S}/approvals`]: 'asks a person',
  [`DELETE ${S}/approvals/:approvalId`]: 'only what it has asked for itself',
  [`POST ${O}/policypacks`]: 'a version that nothing runs until a person enables it',
  [`POST ${O}/policypacks/:pack/versions/:tag/complete`]: 'a version that nothing runs until a person enables it',
  'updates.cancel': 'whoever may update the stack ends its updates',
  'updates.drain': 'whoever may update the stack ends its updates',
  'queue.evict': 'whoever may update the stack ends its updates',
  'stacks.setTag': 'only tags by which neither rules nor grants select stacks',
  'stacks.removeTag': 'only tags by which neither rules nor grants select stacks',
  'stacks.repair': 'as an import',
  'versions.restore': 'as an import',
  'secrets.reveal': 'changes nothing',
  'approvals.ask': 'asks a person',
  'approvals.withdraw': 'only what it has asked for itself',
};

/** Calls without a caller: leases, people in a browser, sign-ins, signed addresses, and procedures, which are walked by themselves. */
const otherwise =
  /\/(complete|renew_lease|checkpoint\w*|journalentries|events\/batch)$|^\w+ \/(trpc|policy-packs|scim)\/|\/oauth\/token$/;

let database: TestDatabase;
let issuer: TestIssuer;
let app: TestApp;
let trusting: Trusting;
let member: Person;
/** Authorizations of CI runs. */
const runs: Record<string, string> = {};

beforeAll(async () => {
  issuer = await TestIssuer.start();
  await issuer.addKey('ES256');
  database = await createTestDatabase();
  app = await createTestApp({ database, overrides: { outgoing: issuer.outgoing() } });
  trusting = await trust(app, issuer, 'acme', []);
  member = await person(app, 'acme', 'member');
  const boss = await person(app, 'acme', 'admin');
  await query(app, 'update users set site_admin = true where id = $1', [boss.userId]);
  const teamId = await team(app, boss.organizationId, 'blue', [boss.userId]);
  await grant(app, boss.organizationId, { teamId }, 'allow', ['admin', 'decrypt', 'manage']);
  const allow = (name: string, more: object) => ({
    ...{ decision: 'allow', tokenType: 'organization', rules: { sub: `repo:acme/${name}` } },
    ...more,
  });
  const scopes = [{ permissions: ['admin', 'decrypt', 'manage'], stacks: '*/*' }];
  await setPolicies(app, { ...trusting, auth: boss.auth }, [
    allow('admin', { authorizedPermissions: ['admin'] }),
    allow('person', { tokenType: 'personal', userLogin: boss.login }),
    allow('team', { tokenType: 'team', teamName: 'blue' }),
    allow('service', { tokenType: 'service', scopes }),
  ]);
  const as = (name: string, scope: string) => signIn(app, trusting, { sub: `repo:acme/${name}` }, { scope });
  runs['with the role admin'] = await as('admin', 'admin');
  runs['as a person'] = await as('person', `user:${boss.login}`);
  runs['of a team'] = await as('team', 'team:blue');
  runs['of a service'] = await as('service', '');
  await ok(app.call('POST', '/api/stacks/acme/web', { auth: trusting.auth, body: { stackName: 'dev' } }));
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

function call(route: string, auth: string) {
  const [method, pattern] = route.split(' ') as [string, string];
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    .replace(':organization', 'acme')
    .replace(':project', 'web')
    .replace(':stackVersion', '999')
    .replace(':stack', route === `DELETE ${S}` ? 'none' : 'dev')
    .replace(/:\w+/g, '00000000-0000-4000-8000-000000000000');
  if (method === 'GET' || method === 'DELETE') return app.call(method, url, { auth });
  // The stack keeps its name.
  const body = pattern.endsWith('/rename') ? { newName: 'dev' } : bodySampleOf(pattern);
  return app.call(method, url, { auth, body });
}

// No CI run has the permission to manage a stack.
const refusal = /^(A CI run |This needs the permission manage )/;
const isRefused = ({ status, text }: { status: number; text: string }): boolean =>
  status === 403 && refusal.test(JSON.parse(text).message);

describe('a CI run, whatever its token may do,', () => {
  test('changes only the necessary parts by REST', async () => {
    const wrong: object[] = [];
    for (const route of listRoutes(app.app)) {
      const [method, path] = route.split(' ') as [string, string];
      const isChange = !['GET', 'HEAD'].includes(method) && path.startsWith('/api/') && !(route in pages);
      if (!isChange || (otherwise.test(route) && !(route in changedByRuns))) continue;
      for (const [name, auth] of Object.entries(runs)) {
        const answer = await call(route, auth);
        const is = isRefused(answer) ? 'refused' : answer.status === 401 ? 'nobody' : 'let in';
        // Less power is refused for its own reason.
        const isOfOperators = path.startsWith('/api/operator/');
        const isLess = (name !== 'with the role admin' || isOfOperators) && [403, 404].includes(answer.status);
        if (route in changedByRuns ? is === 'refused' : is === 'let in' && !isLess)
          wrong.push({ route, name, is, status: answer.status, text: answer.text.slice(0, 200) });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('reads nothing that only admins of the organization read', async () => {
    const wrong: object[] = [];
    let ofAdmins = 0;
    for (const route of listRoutes(app.app).filter((each) => each.startsWith(`GET ${O}`))) {
      if ((await call(route, member.auth)).status !== 403) continue;
      ofAdmins++;
      const answer = await call(route, runs['with the role admin'] as string);
      if (!isRefused(answer)) wrong.push({ route, status: answer.status, text: answer.text.slice(0, 200) });
    }
    expect(wrong).toEqual([]);
    expect(ofAdmins).toBeGreaterThan(15);
  });

  test('is refused by procedures in the same way', async () => {
    const wrong: object[] = [];
    const procedures = Object.entries(
      appRouter._def.procedures as unknown as Record<string, { _def: { type: string; meta: ProcedureMeta } }>,
    );
    for (const [name, { _def }] of procedures) {
      const { access, audit } = _def.meta;
      const isManaging =
        access?.kind === 'operator' || (access?.kind === 'organization' && access.permission === 'manage');
      if (_def.type === 'subscription' || (!isManaging && audit === undefined)) continue;
      for (const [who, auth] of Object.entries(runs)) {
        const at = { organization: 'acme', project: 'web', stack: 'dev' };
        const answer =
          _def.type === 'mutation'
            ? await app.call('POST', `/trpc/${name}`, { auth, accept: null, body: at })
            : await app.call('GET', queryPath(name, at), { auth, accept: null });
        const { error, status } = resultOf(answer);
        const is = status === 403 && refusal.test(error?.message ?? '');
        const isLess = (who !== 'with the role admin' || access?.kind === 'operator') && status === 403;
        if (name in changedByRuns ? is : !is && !isLess) wrong.push({ name, who, status, error });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('learns what to use instead, and the refusal is in the audit log', async () => {
    const auth = runs['with the role admin'] as string;
    const { json } = await app.call('PATCH', '/api/orgs/acme/members/eve', { auth, body: { role: 'admin' } });
    expect(json.message).toBe(
      'A CI run cannot manage its organization, whatever the role of its token: use the token of an admin that was not issued for an id token, the dashboard, or holdfast admin',
    );
    const [event] = await query<{ outcome: string }>(
      app,
      `select outcome from audit_events where action = 'member.role' and sign_in = 'id-token'`,
    );
    expect(event).toEqual({ outcome: 'refused' });
  });

  test('creates stacks, but gives no team a grant with them', async () => {
    const auth = runs['with the role admin'] as string;
    const create = (stackName: string, more: object = {}) =>
      app.call('POST', '/api/stacks/acme/web', { auth, body: { stackName, ...more } });
    await ok(create('review-1'));
    const refused = await create('review-2', { teams: ['blue'] });
    expect(refused).toMatchObject({ status: 403, json: { message: expect.stringMatching(refusal) } });
    expect((await app.call('GET', '/api/stacks/acme/web/review-2', { auth })).status).toBe(404);
    await ok(app.call('DELETE', '/api/stacks/acme/web/review-1', { auth }));
  });

  test('neither breaks the glass nor changes tags by which rules and grants select stacks', async () => {
    const rule = { kind: 'freeze', tag: { name: 'env', value: 'prod' }, settings: {}, note: 'holidays' };
    const tags = { env: 'prod' };
    await ok(app.call('POST', '/api/stacks/acme/web', { auth: trusting.auth, body: { stackName: 'live', tags } }));
    await ok(app.call('POST', '/api/orgs/acme/update-rules', { auth: trusting.auth, body: rule }));
    for (const name of ['with the role admin', 'as a person', 'of a service']) {
      const auth = runs[name] as string;
      const metadata = { message: 'break-glass: it is urgent', environment: {} };
      const body = { name: 'web', runtime: 'yaml', main: '', description: '', options: {}, config: {}, metadata };
      const update = await app.call('POST', '/api/stacks/acme/web/live/update', { auth, body });
      expect(update).toMatchObject({ status: 409, json: { message: expect.stringContaining('CI runs cannot') } });
      for (const [method, path, body] of [
        ['PATCH', 'tags', { env: 'dev' }],
        ['POST', 'tags', { name: 'env', value: 'dev' }],
        ['PATCH', 'tags/env', { value: 'dev' }],
        ['DELETE', 'tags/env', undefined],
      ] as const) {
        const changed = await app.call(method, `/api/stacks/acme/web/live/${path}`, {
          auth,
          ...(body ? { body } : {}),
        });
        expect(changed).toMatchObject({ status: 403, json: { message: expect.stringContaining('"env"') } });
      }
    }
  });

  test('publishes versions of policy packs, which a person enables', async () => {
    const auth = runs['with the role admin'] as string;
    const pack = { name: 'guardrails', displayName: 'g', versionTag: '1.0.0', policies: [] };
    await ok(app.call('POST', '/api/orgs/acme/policypacks', { auth, body: pack }));
    const enable = { addPolicyPack: { name: 'guardrails' } };
    for (const [method, path, body] of [
      ['PATCH', 'policygroups/default-policy-group', enable],
      ['DELETE', 'policypacks/guardrails', undefined],
    ] as const)
      expect(await app.call(method, `/api/orgs/acme/${path}`, { auth, ...(body ? { body } : {}) })).toMatchObject({
        status: 403,
        json: { message: expect.stringMatching(refusal) },
      });
  });
});
