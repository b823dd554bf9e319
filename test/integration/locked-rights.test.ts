import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { browserOf } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { type Person, person, team } from '../support/grants.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { command } from '../support/procedures.ts';
import { listRoutes } from '../support/routes.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { makeKey } from '../support/test-issuer.ts';

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;
const O = '/api/orgs/:organization';

/** A stack, and an admin of its organization who calls. */
interface Scene {
  readonly stack: TestStack;
  readonly caller: Person;
  readonly mine: TestStack;
  readonly policies: PolicyCalls;
}

/** The rest of a call: what replaces parameters of the path, and the body. */
interface Call {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: object;
}

let revoker: pg.Client;
// Before the app's own, which drops the database.
afterAll(() => revoker.end());
const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });
beforeAll(async () => {
  revoker = new pg.Client({ connectionString: app.database.ownerUrl });
  await revoker.connect();
});
const details = { __type: 'PermissionDescriptorAllow', permissions: ['stack:read'] };
const emptyBody = async (): Promise<Call> => ({ body: {} });
const published = async ({ policies }: Scene): Promise<void> => policies.publish({ name: 'pack' });
const inPack = { parameters: { pack: 'pack', versionTag: '1.0.0' } };
const member = async (scene: Scene): Promise<string> => (await person(app, scene.stack.organization, 'member')).login;

/** The caller becomes a site admin. Returns the name of their organization. */
async function operating({ caller, stack }: Scene): Promise<string> {
  await query(app, 'update users set site_admin = true where id = $1', [caller.userId]);
  return stack.organization;
}

/** Another organization invites the caller. */
async function invited({ caller }: Scene): Promise<Call> {
  const { auth, organization } = await createStack(app);
  const body = { login: caller.login, role: 'viewer' };
  await ok(app.call('POST', `/api/orgs/${organization}/invitations`, { auth, body }));
  return { parameters: { organization } };
}

const commit = 'c'.repeat(40);
const lockWaitRule = { kind: 'lock-wait', settings: { seconds: 60 } };

/** Prepares a call of each route that changes something because of a role or a permission. */
const changes: Record<string, (scene: Scene) => Promise<Call>> = {
  'POST /api/stacks/:organization/:project': async () => ({ body: { stackName: 'new' } }),
  [`DELETE ${S}`]: async () => ({}),
  [`POST ${S}/rename`]: async () => ({ body: { newName: 'renamed' } }),
  [`PATCH ${S}/tags`]: async () => ({ body: { a: 'b' } }),
  [`POST ${S}/tags`]: async () => ({ body: { name: 'a', value: 'b' } }),
  [`PATCH ${S}/tags/:tag`]: async (scene) => ({ ...(await tagged(scene)), body: { value: 'c' } }),
  [`DELETE ${S}/tags/:tag`]: (scene) => tagged(scene),
  [`POST ${S}/import`]: async () => ({ body: deployment(2) }),
  [`POST ${S}/update`]: emptyBody,
  [`POST ${S}/preview`]: emptyBody,
  [`POST ${S}/refresh`]: emptyBody,
  [`POST ${S}/destroy`]: emptyBody,
  [`POST ${S}/begin-update`]: async () => ({ body: { updateKind: 'update', program: {} } }),
  [`POST ${U}`]: async ({ stack }) => {
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    return { parameters: { updateId: json.updateID }, body: {} };
  },
  [`POST ${U}/cancel`]: async ({ stack }) => ({ parameters: { updateId: (await startUpdate(app, stack)).id } }),
  [`POST ${U}/drain`]: async ({ stack }) => ({
    parameters: { updateId: (await startUpdate(app, stack, { journal: true })).id },
    body: {},
  }),
  [`POST ${S}/approvals`]: async () => ({ body: { commit } }),
  [`POST ${S}/approvals/:approvalId`]: async ({ stack: { auth, path } }) => {
    const { json } = await ok(app.call('POST', `${path}/approvals`, { auth, body: { commit } }));
    return { parameters: { approvalId: json.id }, body: { reason: 'reviewed' } };
  },
  [`DELETE ${S}/approvals/:approvalId`]: async ({ stack: { auth, path } }) => {
    const { json } = await ok(app.call('POST', `${path}/approvals`, { auth, body: { commit } }));
    return { parameters: { approvalId: json.id } };
  },
  [`PUT ${S}/legal-hold`]: async () => ({ body: { reason: 'Case 7' } }),
  [`DELETE ${S}/legal-hold`]: async ({ caller, stack: { path } }) => {
    await ok(app.call('PUT', `${path}/legal-hold`, { auth: caller.auth, body: { reason: 'Case 7' } }));
    return {};
  },
  [`PUT ${S}/versions/:stackVersion/pin`]: imported,
  [`DELETE ${S}/versions/:stackVersion/pin`]: async (scene) => {
    const call = await imported(scene);
    await ok(app.call('PUT', `${scene.stack.path}/versions/1/pin`, { auth: scene.caller.auth }));
    return call;
  },
  [`POST ${O}/policypacks`]: async () => ({ body: { name: 'pack', versionTag: '1.0.0', policies: [] } }),
  [`POST ${O}/policypacks/:pack/versions/:versionTag/complete`]: async ({ policies }) => {
    await ok(policies.upload(await ok(policies.begin())));
    return inPack;
  },
  [`DELETE ${O}/policypacks/:pack`]: async (scene) => published(scene).then(() => inPack),
  [`DELETE ${O}/policypacks/:pack/versions/:versionTag`]: async (scene) => published(scene).then(() => inPack),
  [`POST ${O}/policygroups`]: async () => ({ body: { name: 'group' } }),
  [`PATCH ${O}/policygroups/:group`]: async (scene) => {
    await published(scene);
    return { parameters: { group: 'default-policy-group' }, body: { addPolicyPack: { name: 'pack' } } };
  },
  [`PATCH ${O}/policygroups/:group/batch`]: async (scene) => {
    await published(scene);
    return { parameters: { group: 'default-policy-group' }, body: [{ addPolicyPack: { name: 'pack' } }] };
  },
  [`DELETE ${O}/policygroups/:group`]: async ({ policies }) => {
    await ok(policies.call('POST', 'policygroups', { name: 'group' }));
    return { parameters: { group: 'group' } };
  },
  [`POST ${O}/members/:login`]: async (scene) => {
    const { login } = await person(app, `${await operating(scene)}-other`, 'member');
    return { parameters: { login }, body: { role: 'viewer' } };
  },
  [`PATCH ${O}/members/:login`]: async (scene) => ({
    parameters: { login: await member(scene) },
    body: { role: 'viewer' },
  }),
  [`DELETE ${O}/members/:login`]: async (scene) => ({ parameters: { login: await member(scene) } }),
  [`POST ${O}/invitations`]: async () => ({ body: { login: 'somebody', role: 'viewer' } }),
  [`DELETE ${O}/invitations/:login`]: async ({ caller, stack }) => {
    const body = { login: 'somebody', role: 'viewer' };
    await ok(app.call('POST', `/api/orgs/${stack.organization}/invitations`, { auth: caller.auth, body }));
    return { parameters: { login: 'somebody' } };
  },
  'POST /api/user/invitations/:organization/accept': invited,
  'DELETE /api/user/invitations/:organization': invited,
  'DELETE /api/user/organizations/:organization': async () => ({}),
  'POST /api/operator/organizations': async (scene) => ({ body: { name: `${await operating(scene)}-new` } }),
  'DELETE /api/operator/organizations/:name': async (scene) => {
    const name = `${await operating(scene)}-gone`;
    await ok(app.call('POST', '/api/operator/organizations', { auth: scene.caller.auth, body: { name } }));
    return { parameters: { name } };
  },
  'PUT /api/operator/organizations/:name/quota': async (scene) => ({
    parameters: { name: await operating(scene) },
    body: { stacks: 500 },
  }),
  'POST /api/operator/users': async (scene) => ({ body: { login: `${await operating(scene)}-new` } }),
  'PATCH /api/operator/users/:login': async (scene) => {
    await operating(scene);
    return { parameters: { login: await member(scene) }, body: { siteAdmin: true } };
  },
  [`POST ${O}/teams/pulumi`]: async () => ({ body: { name: 'red' } }),
  [`PATCH ${O}/teams/:team`]: async () => ({ body: { newDisplayName: 'Blue' } }),
  [`DELETE ${O}/teams/:team`]: async () => ({}),
  [`POST ${O}/teams/:team/roles/:role`]: async () => ({ parameters: { role: 'member' } }),
  [`DELETE ${O}/teams/:team/roles/:role`]: async ({ caller, stack }) => {
    const path = `${O.replace(':organization', stack.organization)}/teams/blue/roles/member`;
    await ok(app.call('POST', path, { auth: caller.auth }));
    return { parameters: { role: 'member' } };
  },
  [`POST ${O}/roles`]: async () => ({ body: { name: 'role', details } }),
  [`PATCH ${O}/roles/:role`]: async (scene) => ({ ...(await madeRole(scene)), body: { name: 'other' } }),
  [`DELETE ${O}/roles/:role`]: async (scene) => madeRole(scene),
  [`POST ${O}/grants`]: async () => ({ body: { effect: 'allow', permissions: ['read'], team: 'blue' } }),
  [`PATCH ${O}/grants`]: async () => ({
    body: { add: [{ effect: 'allow', permissions: ['read'], team: 'blue' }] },
  }),
  [`DELETE ${O}/grants/:grant`]: async ({ caller, stack }) => {
    const body = { effect: 'allow', permissions: ['read'], team: 'blue' };
    const path = `${O.replace(':organization', stack.organization)}/grants`;
    return { parameters: { grant: (await ok(app.call('POST', path, { auth: caller.auth, body }))).json.id } };
  },
  [`PATCH ${O}/managed-objects`]: async () => ({ body: { remove: [{ kind: 'Team', name: 'blue' }] } }),
  [`PATCH ${O}/access-policy`]: async () => ({ body: { decryptByRole: false } }),
  [`POST ${O}/deleted-stacks/:deletedStackId/restore`]: async (scene) => ({ ...(await deletedStack(scene)), body: {} }),
  [`DELETE ${O}/deleted-stacks/:deletedStackId`]: (scene) => deletedStack(scene),
  [`POST ${O}/update-rules`]: async () => ({ body: lockWaitRule }),
  [`PUT ${O}/update-rules/:ruleId`]: async ({ caller, stack }) => {
    const path = `${O.replace(':organization', stack.organization)}/update-rules`;
    const { json } = await ok(app.call('POST', path, { auth: caller.auth, body: lockWaitRule }));
    return { parameters: { ruleId: json.id }, body: { ...lockWaitRule, note: 'changed' } };
  },
  [`DELETE ${O}/update-rules/:ruleId`]: async ({ caller, stack }) => {
    const path = `${O.replace(':organization', stack.organization)}/update-rules`;
    const { json } = await ok(app.call('POST', path, { auth: caller.auth, body: lockWaitRule }));
    return { parameters: { ruleId: json.id } };
  },
  [`POST ${O}/oidc/issuers`]: async () => ({ body: { name: 'ci', url: 'https://ci.example' } }),
  [`PATCH ${O}/oidc/issuers/:issuerId`]: async (scene) => ({ ...(await registered(scene)), body: { name: 'other' } }),
  [`DELETE ${O}/oidc/issuers/:issuerId`]: async (scene) => registered(scene),
  [`PATCH ${O}/auth/policies/:policyId`]: async (scene) => ({ ...(await registered(scene)), body: { policies: [] } }),
  ...hookChanges(O),
  ...hookChanges(S),
  ...tokenChanges('/api/user/tokens'),
  ...tokenChanges(`${O}/tokens`),
  ...tokenChanges(`${O}/teams/:team/tokens`),
};

async function tagged({ stack }: Scene): Promise<Call> {
  await ok(app.call('POST', `${stack.path}/tags`, { auth: stack.auth, body: { name: 'a', value: 'b' } }));
  return { parameters: { tag: 'a' } };
}

async function deletedStack({ caller, stack: { path } }: Scene): Promise<Call> {
  const { json } = await ok(app.call('GET', path, { auth: caller.auth }));
  await ok(app.call('DELETE', path, { auth: caller.auth }));
  return { parameters: { deletedStackId: json.id } };
}

async function imported({ caller, stack: { path } }: Scene): Promise<Call> {
  await ok(app.call('POST', `${path}/import`, { auth: caller.auth, body: deployment(1) }));
  return { parameters: { stackVersion: '1' } };
}

async function madeRole({ caller, stack }: Scene): Promise<Call> {
  const path = `${O.replace(':organization', stack.organization)}/roles`;
  const { json } = await ok(app.call('POST', path, { auth: caller.auth, body: { name: 'role', details } }));
  return { parameters: { role: json.id } };
}

async function registered({ caller, stack }: Scene): Promise<Call> {
  const jwks = { keys: [(await makeKey('ES256', 'one')).jwk] };
  const body = { name: 'ci', url: 'https://ci.example', jwks };
  const path = O.replace(':organization', stack.organization);
  const { json } = await ok(app.call('POST', `${path}/oidc/issuers`, { auth: caller.auth, body }));
  return { parameters: { issuerId: json.id, policyId: json.id } };
}

function hookChanges(path: string): Record<string, (scene: Scene) => Promise<Call>> {
  const body = { displayName: 'chat', payloadUrl: 'https://203.0.113.1/hook' };
  const made = async ({ caller, stack }: Scene): Promise<Call> => {
    const owner = path === S ? stack.path : path.replace(':organization', stack.organization);
    const { json } = await ok(app.call('POST', `${owner}/hooks`, { auth: caller.auth, body }));
    return { parameters: { hook: json.name } };
  };
  return {
    [`POST ${path}/hooks`]: async () => ({ body }),
    [`PATCH ${path}/hooks/:hook`]: async (scene) => ({ ...(await made(scene)), body: { active: false } }),
    [`DELETE ${path}/hooks/:hook`]: made,
    [`POST ${path}/hooks/:hook/ping`]: made,
    [`POST ${path}/hooks/:hook/deliveries/:deliveryId/redeliver`]: async (scene) => {
      const call = await made(scene);
      const owner = path === S ? scene.stack.path : path.replace(':organization', scene.stack.organization);
      const ping = `${owner}/hooks/${call.parameters?.['hook']}/ping`;
      const { json } = await ok(app.call('POST', ping, { auth: scene.caller.auth }));
      return { parameters: { ...call.parameters, deliveryId: json.id } };
    },
  };
}

function tokenChanges(path: string): Record<string, (scene: Scene) => Promise<Call>> {
  const made = async ({ caller, stack }: Scene): Promise<Call> => {
    const owner = path.replace(':organization', stack.organization).replace(':team', 'blue');
    const { json } = await ok(app.call('POST', owner, { auth: caller.auth, body: { name: 'made' } }));
    return { parameters: { tokenId: json.id } };
  };
  return {
    [`POST ${path}`]: async () => ({ body: { name: 'new' } }),
    [`DELETE ${path}/:tokenId`]: made,
    [`POST ${path}/:tokenId/rotate`]: async (scene) => ({ ...(await made(scene)), body: { overlapSeconds: 0 } }),
  };
}

/** The same for changes of states by procedures, which pages call in a session. */
const pageChanges: Record<string, (scene: Scene) => Promise<object>> = {
  'versions.restore': async (scene) => {
    await imported(scene);
    return { version: 1, headVersion: 1 };
  },
  'stacks.repair': async ({ caller, stack: { path, project, stack } }) => {
    const resource = { urn: `urn:pulumi:${stack}::${project}::a:b:C::new`, custom: true, type: 'a:b:C' };
    const state = deployment(1) as { deployment: object };
    const body = {
      ...state,
      deployment: { ...state.deployment, pending_operations: [{ resource, type: 'deleting' }] },
    };
    await ok(app.call('POST', `${path}/import`, { auth: caller.auth, body }));
    return { headVersion: 1, repairs: [{ index: 0, urn: resource.urn, repair: { action: 'clear' } }] };
  },
  'queue.evict': async ({ caller, stack: { organization, stack } }) => {
    const [row] = await query<{ placeId: string }>(
      app,
      `insert into update_queue_waiters (stack_id, token_id, kept_until)
       select s.id, $3, now() + interval '1 hour' from stacks s join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id where o.name = $1 and s.name = $2 returning id as "placeId"`,
      [organization, stack, caller.tokenId],
    );
    return { placeId: row?.placeId };
  },
  'embeds.create': async () => ({}),
  'embeds.revoke': (scene) => madeBy(scene, 'embeds.create'),
  // Of somebody else, which admins may do.
  'views.remove': async (scene) => {
    const author = await person(app, scene.stack.organization, 'member');
    return madeBy({ ...scene, caller: author }, 'views.create', view);
  },
  'embeds.createOfStack': async () => badge,
  'embeds.revokeOfStack': (scene) => madeBy(scene, 'embeds.createOfStack', badge),
};

/** Makes what the change is about by another procedure. Returns the input with its id. */
async function madeBy({ caller, stack }: Scene, procedure: string, input: object = {}): Promise<{ id: string }> {
  const { organization, project, stack: name } = stack;
  const made = await command(app, caller.token, procedure, { organization, project, stack: name, ...input });
  expect(made.error).toBeNull();
  return { id: made.data.id };
}
const badge = { kind: 'badge' };
const view = { name: 'theirs', isShared: true, viewed: { page: 'ci', search: {} } };

/** They change nothing that a right allows: calls by leases, which end with the rights, ciphertexts, records of reads, id tokens. */
const others = [
  /\/oauth\/token$/,
  /\/(complete|renew_lease|checkpoint\w*|journalentries|events\/batch)$/,
  /\/(batch-)?(encrypt|decrypt)$/,
  /\/log-(batch-)?decryption$/,
];

const ways: Record<string, { readonly sql: string; readonly of: (caller: Person) => readonly string[] }> = {
  'the token is revoked': {
    sql: 'update api_tokens set revoked_at = now() where id = $1',
    of: ({ tokenId }) => [tokenId],
  },
  'the caller becomes a viewer': {
    sql: `update memberships set role = 'viewer' where user_id = $1 and organization_id = $2`,
    of: ({ organizationId, userId }) => [userId, organizationId],
  },
};

type Work = (tx: Queryable) => Promise<unknown>;
type Run = (work: Work) => Promise<unknown>;

/** Statements that change something outside a transaction; here they run in one, in which they can be held. */
const writesAtOnce = /updates\.start \*\//;

/** Replaces how transactions run until it is disposed of. */
function runTransactions(by: (run: Run, work: Work) => Promise<unknown>): Disposable {
  const { db } = app.context as unknown as { db: Queryable & { inTransaction: Run; one: Queryable['one'] } };
  const { inTransaction, one } = db;
  db.inTransaction = (work) => by(inTransaction, work);
  db.one = ((query: Parameters<Queryable['one']>[0]) =>
    writesAtOnce.test(query.sql) ? by(inTransaction, (tx) => tx.one(query)) : one(query)) as Queryable['one'];
  return {
    [Symbol.dispose]: () => {
      db.inTransaction = inTransaction;
      db.one = one;
    },
  };
}

async function prepare(route: string): Promise<{ scene: Scene; send: () => ReturnType<typeof app.call> }> {
  const stack = await createStack(app);
  const caller = await person(app, stack.organization, 'admin');
  await team(app, caller.organizationId, 'blue', []);
  const mine = { ...stack, auth: caller.auth };
  const scene = { stack, caller, mine, policies: new PolicyCalls(app, mine) };
  const input = await pageChanges[route]?.(scene);
  if (input) {
    const browser = await browserOf(app, caller.login);
    const { organization, project, stack: name } = stack;
    const place = { organization, project, stack: name };
    return { scene, send: () => browser.postJson(`/trpc/${route}`, { ...place, ...input }) };
  }
  const { body, parameters = {} } = await (changes[route] as (scene: Scene) => Promise<Call>)(scene);
  const [method, pattern] = route.split(' ') as [string, string];
  const values: Record<string, string> = { ...stack, kind: 'update', team: 'blue', ...parameters };
  const url = pattern.replace(/\(\^[^/]*\)(?=\/|$)/, '').replace(/:(\w+)/g, (_, name: string) => values[name] ?? name);
  const suffix = method === 'DELETE' && pattern === S ? '?force=true' : '';
  return {
    scene,
    send: () => app.call(method, `${url}${suffix}`, { auth: caller.auth, ...(body === undefined ? {} : { body }) }),
  };
}

const recorded = ({ userId }: Person) =>
  query(app, `select action from audit_events where user_id = $1 and outcome = 'done'`, [userId]);

test('every route that changes something is in the table', () => {
  const routes = listRoutes(app.app).filter(
    (route) =>
      !/^(GET|HEAD|OPTIONS) /.test(route) && route.includes(' /api/') && !others.some((each) => each.test(route)),
  );
  expect(routes.filter((route) => !/ .*\/complete$/.test(route) || route in changes).sort()).toEqual(
    Object.keys(changes)
      .filter((route) => !others.some((each) => each.test(route)))
      .sort(),
  );
});

describe.each([...Object.keys(changes), ...Object.keys(pageChanges)])('%s', (route) => {
  const possible = Object.entries(ways).filter(([name]) =>
    name === 'the token is revoked' ? !(route in pageChanges) : !/\/(user|operator)\//.test(route),
  );

  test('changes nothing when the right to it is taken away during the call', async () => {
    const [, { of, sql }] = possible.at(-1) as (typeof possible)[number];
    const { scene, send } = await prepare(route);
    const before = await recorded(scene.caller);
    let isTaken = false;
    using _transactions = runTransactions(async (run, work) => {
      if (!isTaken) await revoker.query(sql, [...of(scene.caller)]);
      isTaken = true;
      return run(work);
    });
    const { status } = await send();
    expect(isTaken).toBe(true);
    expect([401, 403, 404]).toContain(status);
    expect(await recorded(scene.caller)).toEqual(before);
  });

  test('is committed before a revocation that comes later', async () => {
    const { scene, send } = await prepare(route);
    const waited = new Set<string>();
    using _transactions = runTransactions((run, work) =>
      run(async (tx) => {
        const result = await work(tx);
        for (const [name, { of, sql }] of possible) {
          await revoker.query(`begin; set local lock_timeout = '20ms'`);
          await revoker.query(sql, [...of(scene.caller)]).catch(({ code }: pg.DatabaseError) => {
            if (code === '55P03') waited.add(name);
          });
          await revoker.query('rollback');
        }
        return result;
      }),
    );
    await ok(send());
    expect([...waited].sort()).toEqual(possible.map(([name]) => name).sort());
  });
});
