import { createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { JWTPayload } from 'jose';
import { createTokenRepository } from '../../src/shared/identity/token-repository.ts';
import { createIssuerRepository, type IssuerRow } from '../../src/shared/identity/trust/issuer-repository.ts';
import { replacePolicies } from '../../src/shared/identity/trust/replace-policies.ts';
import { parsePolicies } from '../../src/shared/identity/trust/trust-definitions.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { runAdminCommand } from '../support/admin.ts';
import { holdInserts, query } from '../support/database.ts';
import { exchange, setPolicies, signIn, type Trusting, trust } from '../support/exchange.ts';
import { person, team } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { ok, startUpdate } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { makeKey, signByHand, TestIssuer } from '../support/test-issuer.ts';

const sub = { sub: 'repo:acme/*' };
const allow = (more: object = {}) => ({ decision: 'allow', tokenType: 'organization', rules: sub, ...more });
const deny = (more: object = {}) => ({ decision: 'deny', tokenType: 'organization', rules: sub, ...more });

const algorithms = ['PS256', 'ES256', 'ES512', 'EdDSA', 'RS512'];
let database: TestDatabase;
let options: Parameters<typeof createTestApp>[0] & object;
let issuer: TestIssuer;
let app: TestApp;
/** Another replica. */
let other: TestApp;
const log: string[] = [];

beforeAll(async () => {
  issuer = await TestIssuer.start();
  for (const algorithm of [...algorithms, 'RS256']) await issuer.addKey(algorithm);
  database = await createTestDatabase();
  const settings = { invalidTokensPerMinute: 100_000 };
  options = { database, settings, overrides: { outgoing: issuer.outgoing() } };
  app = await createTestApp({ ...options, log: { write: (line) => void log.push(line) } });
  other = await createTestApp(options);
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

async function events(trusting: Trusting, type: string): Promise<Record<string, string>[]> {
  const path = `/api/orgs/${trusting.organization}/auditlogs/export?format=jsonl`;
  const { text } = await ok(app.call('GET', path, { auth: trusting.auth }));
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line)).filter((event) => JSON.stringify(event).includes(type));
}

const expectRefused = async (answer: Promise<{ status: number; json: Record<string, string> }>): Promise<void> => {
  const { json, status } = await answer;
  expect({ status, error: json['error'] }).toEqual({ status: 400, error: 'invalid_grant' });
  expect(json['error_description']).toMatch(/^The token was not accepted: it is not valid, or no policy/);
};

describe('an exchange', () => {
  test('issues a token that works for the stated time', async () => {
    const trusting = await trust(app, issuer, 'plain', [allow()]);
    const answer = await ok(exchange(app, 'plain', await issuer.sign('plain')));
    expect(answer.json).toEqual({
      access_token: expect.stringMatching(/^hf-[0-9A-Za-z]{49}$/),
      issued_token_type: 'urn:pulumi:token-type:access_token:organization',
      token_type: 'token',
      expires_in: 7200,
      scope: '',
    });
    expect(answer.headers['cache-control']).toBe('no-store');
    const auth = `token ${answer.json.access_token}`;
    const user = await ok(app.call('GET', '/api/user', { auth }));
    expect(user.json.tokenInfo).toEqual({
      name: expect.stringMatching(/^ci repo:acme\.web:ref:refs\.heads\.main 123456 [0-9a-f]{8}$/),
      organization: 'plain',
    });
    const { json } = await ok(app.call('GET', '/api/orgs/plain/tokens', { auth: trusting.auth }));
    expect(json.tokens).toMatchObject([{ kind: 'organization', admin: false, name: user.json.tokenInfo.name }]);
    expect(json.tokens[0].expires).toBeLessThanOrEqual(Date.now() / 1000 + 7200);
  });

  test('is answered to a JSON body, too, and for as long as was asked', async () => {
    await trust(app, issuer, 'asjson', [allow()]);
    const body = {
      audience: 'urn:pulumi:org:asjson',
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      requested_token_type: 'urn:pulumi:token-type:access_token:organization',
      subject_token: await issuer.sign('asjson'),
      expiration: 60,
    };
    expect((await ok(app.call('POST', '/api/oauth/token', { accept: null, body }))).json.expires_in).toBe(60);
  });

  test.each(algorithms)('accepts a token signed by %s', async (algorithm) => {
    const organization = `by-${algorithm.toLowerCase()}`;
    await trust(app, issuer, organization, [allow()]);
    const key = issuer.keys.find((each) => each.algorithm === algorithm);
    await ok(exchange(app, organization, await issuer.sign(organization, {}, key ? { key } : {})));
  });

  test('keeps claims that Postgres cannot store as they are', async () => {
    const trusting = await trust(app, issuer, 'odd', [allow()]);
    await signIn(app, trusting, { job: 'a\0b', ['\ud800']: ['x\udc00'], path: 'C:\\u0000' });
    const [row] = await query(app, `select claims from api_tokens where claims ? 'job'`);
    expect(row?.['claims']).toMatchObject({ job: 'a\ufffdb', '\ufffd': ['x\ufffd'], path: 'C:\\u0000' });
  });

  test('with given keys sends no request', async () => {
    const key = await makeKey('ES256', 'given');
    const jwks = { keys: [key.jwk] };
    const url = 'https://cluster.internal/issuer';
    await trust(app, issuer, 'given', [allow()], { url, jwks });
    await ok(exchange(app, 'given', await issuer.sign('given', { iss: url }, { key })));
    await expectRefused(exchange(app, 'given', await issuer.sign('given', { iss: url })));
  });
});

describe('an id token is refused', () => {
  const now = () => Math.floor(Date.now() / 1000);
  beforeAll(async () => {
    await trust(app, issuer, 'strict', [allow()]);
  });
  const cases: Record<string, () => JWTPayload> = {
    'that has expired': () => ({ iat: now() - 600, exp: now() - 120 }),
    'that is not valid yet': () => ({ nbf: now() + 120 }),
    'from the future': () => ({ iat: now() + 120, exp: now() + 300 }),
    'without an end': () => ({ exp: undefined }) as unknown as JWTPayload,
    'without a beginning': () => ({ iat: undefined }) as unknown as JWTPayload,
    'that lives for days': () => ({ exp: now() + 3 * 86_400 }),
    'without a subject': () => ({ sub: undefined }) as unknown as JWTPayload,
    'for somebody else': () => ({ aud: 'sts.amazonaws.com' }),
    'for another organization': () => ({ aud: 'urn:pulumi:org:strict2' }),
    'of another issuer': () => ({ iss: `${issuer.url}/` }),
    'that no policy is about': () => ({ sub: 'repo:other/web' }),
  };
  test.each(Object.keys(cases))('%s', async (name) => {
    await expectRefused(exchange(app, 'strict', await issuer.sign('strict', cases[name]?.())));
  });

  test('that is not signed, or by what everybody knows', async () => {
    const claims = issuer.claims('strict');
    const [key] = issuer.keys as [(typeof issuer.keys)[0]];
    const { kid } = key;
    const pem = createPublicKey({ key: key.jwk as never, format: 'jwk' });
    const secrets = [
      pem.export({ type: 'spki', format: 'pem' }) as string,
      pem.export({ type: 'spki', format: 'der' }),
      JSON.stringify(key.jwk),
    ];
    const tokens = [
      ...['none', 'None', 'NONE', ''].map((alg) => signByHand({ alg, kid }, claims, null)),
      signByHand({ alg: 'RS256', kid }, claims, null),
      ...secrets.map((secret) => signByHand({ alg: 'HS256', kid }, claims, secret)),
      ...secrets.map((secret) => signByHand({ alg: 'RS256', kid }, claims, secret)),
      signByHand({ alg: 1, kid }, claims, null),
      signByHand({ kid }, claims, null),
    ];
    for (const token of tokens) await expectRefused(exchange(app, 'strict', token));
  });

  test('that is signed by a foreign key, named like one of the issuer or embedded', async () => {
    const [{ kid }] = issuer.keys as [(typeof issuer.keys)[0]];
    const forged = await makeKey('RS256', kid);
    await expectRefused(exchange(app, 'strict', await issuer.sign('strict', {}, { key: forged })));
    const header = { jwk: forged.jwk, jku: 'https://evil.example/keys', x5u: 'https://evil.example/x' };
    await expectRefused(exchange(app, 'strict', await issuer.sign('strict', {}, { key: forged, header })));
    const unknown = await makeKey('RS256', 'never published');
    await expectRefused(exchange(app, 'strict', await issuer.sign('strict', {}, { key: unknown })));
  });

  test('that was changed, or is of another kind', async () => {
    const token = await issuer.sign('strict');
    const [header, , signature] = token.split('.');
    const claims = Buffer.from(JSON.stringify(issuer.claims('strict', { sub: 'repo:acme/other' }))).toString(
      'base64url',
    );
    await expectRefused(exchange(app, 'strict', `${header}.${claims}.${signature}`));
    await expectRefused(exchange(app, 'strict', await issuer.sign('strict', {}, { header: { typ: 'at+jwt' } })));
    for (const text of ['x', 'a.b.c', `${token}.x`, 'hf-0123', '..'])
      await expectRefused(exchange(app, 'strict', text));
  });

  test('by an organization that does not trust the issuer, like by one that does not exist', async () => {
    await app.createUser('trustless', 'admin');
    await expectRefused(exchange(app, 'trustless', await issuer.sign('trustless')));
    await expectRefused(exchange(app, 'nowhere', await issuer.sign('nowhere')));
  });

  test('and the log says why, without the token', async () => {
    const token = await issuer.sign('strict', { aud: 'elsewhere' });
    log.length = 0;
    await expectRefused(exchange(app, 'strict', token));
    const text = log.join('');
    expect(text).toContain('unexpected \\"aud\\" claim value');
    expect(text).not.toContain(token.split('.')[2]);
  });

  test('except for clocks that differ by less than a minute', async () => {
    await ok(exchange(app, 'strict', await issuer.sign('strict', { iat: now() - 400, exp: now() - 20 })));
    await ok(exchange(app, 'strict', await issuer.sign('strict', { iat: now() + 20, nbf: now() + 20 })));
  });
});

describe('a request is refused in the format of OAuth', () => {
  const call = (body: string, type = 'application/x-www-form-urlencoded') =>
    app.call('POST', '/api/oauth/token', { accept: null, body, headers: { 'content-type': type } });

  test.each([
    ['', 'invalid_request'],
    ['grant_type=refresh_token&refresh_token=x', 'unsupported_grant_type'],
    ['grant_type=a&grant_type=b', 'invalid_request'],
  ])('%j: %s', async (body, error) => {
    const { headers, json, status } = await call(body);
    expect({ status, error: json.error }).toEqual({ status: 400, error });
    expect(typeof json.error_description).toBe('string');
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('for parameters that are not right', async () => {
    const wrong: [Record<string, string>, string][] = [
      [{ audience: 'acme' }, 'invalid_request'],
      [{ subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
      [{ requested_token_type: 'urn:pulumi:token-type:access_token:runner' }, 'invalid_request'],
      [{ requested_token_type: 'urn:pulumi:token-type:access_token:team' }, 'invalid_scope'],
      [{ scope: 'everything' }, 'invalid_scope'],
      [{ scope: 'team:' }, 'invalid_scope'],
      [{ expiration: 'long' }, 'invalid_request'],
      [{ subject_token: 'x'.repeat(17_000) }, 'invalid_request'],
    ];
    for (const [more, error] of wrong) {
      const { json, status } = await exchange(app, 'strict', 'x.y.z', more);
      expect({ more: Object.keys(more), status, error: json.error }).toEqual({
        more: Object.keys(more),
        status: 400,
        error,
      });
    }
  });

  test('for bodies that are none', async () => {
    for (const [body, type] of [
      ['{', 'application/json'],
      ['[]', 'application/json'],
      ['{"grant_type":{}}', 'application/json'],
      ['<xml/>', 'text/xml'],
    ] as const)
      expect((await call(body, type)).json.error).toBe('invalid_request');
    const large = await call('x'.repeat(70_000));
    expect([large.status, large.json.error]).toEqual([413, 'invalid_request']);
  });
});

describe('what is given', () => {
  test('is what the policy says: admin, team, personal, service', async () => {
    const trusting = await trust(app, issuer, 'kinds', []);
    const blue = await person(app, 'kinds', 'member');
    await team(app, blue.organizationId, 'blue', []);
    await setPolicies(app, trusting, [
      allow({ rules: { sub: 'repo:acme/plain' } }),
      allow({ rules: { sub: 'repo:acme/admin' }, authorizedPermissions: ['admin'] }),
      allow({ rules: { sub: 'repo:acme/team' }, tokenType: 'team', teamName: 'blue' }),
      allow({
        rules: { sub: 'repo:acme/service' },
        tokenType: 'service',
        scopes: [{ permissions: ['preview'], stacks: 'web/*' }],
        maxExpiration: 600,
      }),
    ]);
    const asked = async (name: string, scope: string) =>
      exchange(app, 'kinds', await issuer.sign('kinds', { sub: `repo:acme/${name}` }), { scope });
    await expectRefused(asked('plain', 'admin'));
    await expectRefused(asked('plain', 'team:blue'));
    await expectRefused(asked('team', ''));
    await expectRefused(asked('team', 'team:red'));
    await expectRefused(asked('team', `user:${blue.login}`));
    const admin = await ok(asked('admin', 'admin'));
    expect(admin.json.scope).toBe('admin');
    await ok(asked('admin', ''));
    expect((await ok(asked('team', 'team:blue'))).json).toMatchObject({
      scope: 'team:blue',
      issued_token_type: 'urn:pulumi:token-type:access_token:team',
    });
    expect((await ok(asked('service', ''))).json.expires_in).toBe(600);
    const { json } = await ok(app.call('GET', '/api/orgs/kinds/tokens', { auth: trusting.auth }));
    const given = json.tokens.map(({ admin, kind, scopes }: Record<string, unknown>) => ({ admin, kind, scopes }));
    expect(given).toEqual([
      { admin: true, kind: 'organization', scopes: null },
      { admin: false, kind: 'organization', scopes: null },
      { admin: false, kind: 'service', scopes: [{ permissions: ['read', 'preview'], stacks: 'web/*' }] },
    ]);
  });

  test('is denied by a policy for any kind of token, and earlier tokens end', async () => {
    const trusting = await trust(app, issuer, 'denied', []);
    const ada = await person(app, 'denied', 'admin');
    await team(app, ada.organizationId, 'blue', []);
    const allowed = [
      allow({ authorizedPermissions: ['admin'] }),
      allow({ tokenType: 'team', teamName: 'blue' }),
      allow({ tokenType: 'personal', userLogin: ada.login }),
    ];
    const byAda = { ...trusting, auth: ada.auth };
    const scopes = ['', 'admin', 'team:blue', `user:${ada.login}`];
    const ask = async (scope: string) => exchange(app, 'denied', await issuer.sign('denied'), { scope });
    const tokenType = { organization: ['', 'admin'], team: ['team:blue'], personal: [`user:${ada.login}`] };
    for (const [denied, about] of [[undefined, scopes] as const, ...Object.entries(tokenType)]) {
      await setPolicies(app, byAda, allowed);
      const given = new Map<string, string>();
      for (const scope of scopes) given.set(scope, `token ${(await ok(ask(scope))).json.access_token}`);
      const { tokenType: _, ...denial } = deny();
      await setPolicies(app, byAda, [...allowed, denied === undefined ? denial : { ...denial, tokenType: denied }]);
      for (const scope of scopes) {
        const status = { ended: 401, asked: 400 };
        const isDenied = about.includes(scope);
        const { status: after } = await app.call('GET', '/api/user', { auth: given.get(scope) as string });
        expect({ denied, scope, after }).toEqual({ denied, scope, after: isDenied ? status.ended : 200 });
        expect({ denied, scope, status: (await ask(scope)).status }).toEqual({
          ...{ denied, scope, status: isDenied ? status.asked : 200 },
        });
      }
    }
  });

  test('cannot make what outlives it, even as admin', async () => {
    const trusting = await trust(app, issuer, 'bounded', [allow({ authorizedPermissions: ['admin'] })]);
    const auth = await signIn(app, trusting, {}, { scope: 'admin' });
    const calls = [
      ['POST', 'tokens', { name: 'mine' }],
      ['GET', 'tokens', undefined],
      ['POST', 'oidc/issuers', { name: 'mine', url: 'https://evil.example' }],
      ['PATCH', `oidc/issuers/${trusting.issuerId}`, { audience: 'mine' }],
      ['PATCH', `auth/policies/${trusting.issuerId}`, { policies: [] }],
      ['DELETE', `oidc/issuers/${trusting.issuerId}`, undefined],
    ] as const;
    for (const [method, path, body] of calls) {
      const { status } = await app.call(method, `/api/orgs/bounded/${path}`, { auth, ...(body ? { body } : {}) });
      expect({ method, path, status }).toEqual({ method, path, status: 403 });
    }
    await ok(app.call('GET', '/api/orgs/bounded/teams', { auth }));
    // Lists of people are for people.
    expect((await app.call('GET', '/api/orgs/bounded/members', { auth })).status).toBe(403);
  });

  test('is not rotated, by its admin or an operator: it would outlive its policy', async () => {
    const trusting = await trust(app, issuer, 'unrotated', [allow()]);
    const auth = await signIn(app, trusting);
    const { json } = await ok(app.call('GET', '/api/orgs/unrotated/tokens', { auth: trusting.auth }));
    const { id } = json.tokens[0] as { id: string };
    const refused = await app.call('POST', `/api/orgs/unrotated/tokens/${id}/rotate`, {
      auth: trusting.auth,
      body: {},
    });
    expect([refused.status, refused.json.message]).toEqual([403, expect.stringContaining('issued to a CI run')]);
    const { code, stderr } = await runAdminCommand(app, 'token', 'rotate', id);
    expect([code, stderr]).toEqual([1, expect.stringContaining('issued to a CI run')]);
    await ok(app.call('GET', '/api/user', { auth }));
  });

  test('for a user is valid in this organization only, and only that user can allow it', async () => {
    const trusting = await trust(app, issuer, 'personal', []);
    // Of which she is a member for longer.
    const { login } = await person(app, 'elsewhere', 'admin');
    const ada = { login, auth: `token ${await app.createUser('personal', 'admin', login)}` };
    const policy = allow({ tokenType: 'personal', userLogin: ada.login });
    const path = `/api/orgs/personal/auth/policies/${trusting.issuerId}`;
    const byOther = await app.call('PATCH', path, { auth: trusting.auth, body: { policies: [policy] } });
    expect([byOther.status, byOther.json.message]).toEqual([400, expect.stringMatching(/^Only .* or an operator/)]);
    await setPolicies(app, { ...trusting, auth: ada.auth }, [policy]);
    // The others leave it as it is.
    await setPolicies(app, trusting, [policy, allow()]);
    const auth = await signIn(app, trusting, {}, { scope: `user:${ada.login}` });
    const user = await ok(app.call('GET', '/api/user', { auth }));
    expect(user.json.githubLogin).toBe(ada.login);
    const stack = (organization: string) =>
      app.call('POST', `/api/stacks/${organization}/web`, { auth, body: { stackName: 'dev' } });
    await ok(stack('personal'));
    expect(user.json.organizations).toEqual([expect.objectContaining({ name: 'personal' })]);
    const unqualified = await ok(app.call('GET', '/api/user/organizations/default', { auth }));
    expect(unqualified.json.GitHubLogin).toBe('personal');
    const lists = ['policygroups', 'policypacks', 'teams', 'roles'];
    const statuses = (organization: string) =>
      Promise.all(
        lists.map(async (list) => (await app.call('GET', `/api/orgs/${organization}/${list}`, { auth })).status),
      );
    expect(await statuses('personal')).toEqual([200, 200, 200, 200]);
    expect(await statuses('elsewhere')).toEqual([404, 404, 404, 404]);
    const hidden = await stack('elsewhere');
    const missing = await stack('missing');
    expect([hidden.status, hidden.text.replaceAll('elsewhere', 'missing')]).toEqual([missing.status, missing.text]);
    const me = await ask(app, auth.replace('token ', ''), 'me.get');
    expect(me.data.organizations).toEqual([expect.objectContaining({ name: 'personal' })]);
    expect((await app.call('GET', '/api/user/tokens', { auth })).status).toBe(403);
    await ok(app.call('DELETE', `/api/orgs/personal/members/${ada.login}`, { auth: trusting.auth }));
    expect((await app.call('GET', '/api/stacks/personal/web/dev', { auth })).status).toBe(401);
    await expectRefused(exchange(app, 'personal', await issuer.sign('personal'), { scope: `user:${ada.login}` }));
  });

  test('for a user is revoked with the membership also if it is being given meanwhile', async () => {
    const trusting = await trust(app, issuer, 'leaving', []);
    const ada = await person(app, 'leaving', 'admin');
    await setPolicies(app, { ...trusting, auth: ada.auth }, [allow({ tokenType: 'personal', userLogin: ada.login })]);
    await using gate = await holdInserts(app, 'audit_events');
    const giving = signIn(app, trusting, {}, { scope: `user:${ada.login}` });
    await gate.reached(1);
    const removing = app.call('DELETE', `/api/orgs/leaving/members/${ada.login}`, { auth: trusting.auth });
    await Promise.race([gate.reached(2), removing]);
    await gate.release();
    const auth = await giving;
    await ok(removing);
    await app.createUser('leaving', 'admin', ada.login);
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
  });

  test('for a user is not given by keys or an audience that another admin chooses', async () => {
    const trusting = await trust(app, issuer, 'rekeyed', []);
    const ada = await person(app, 'rekeyed', 'admin');
    await setPolicies(app, { ...trusting, auth: ada.auth }, [allow({ tokenType: 'personal', userLogin: ada.login })]);
    const path = `/api/orgs/rekeyed/oidc/issuers/${trusting.issuerId}`;
    const key = await makeKey('ES256', 'own');
    const change = (auth: string, body: object) => app.call('PATCH', path, { auth, body });
    for (const body of [{ jwks: { keys: [key.jwk] } }, { audience: 'sts.amazonaws.com' }]) {
      const { json, status } = await change(trusting.auth, body);
      expect([status, json.message]).toEqual([409, expect.stringContaining(`lets CI act as "${ada.login}"`)]);
    }
    const scope = `user:${ada.login}`;
    await expectRefused(exchange(app, 'rekeyed', await issuer.sign('rekeyed', {}, { key }), { scope }));
    await ok(change(trusting.auth, { name: 'renamed', jwks: null, maxExpiration: 600 }));
    await ok(change(ada.auth, { jwks: { keys: [key.jwk] } }));
    await ok(exchange(app, 'rekeyed', await issuer.sign('rekeyed', {}, { key }), { scope }));
  });

  test('ends no later than the organization allows', async () => {
    const trusting = await trust(app, issuer, 'short', [allow({ maxExpiration: 86_400 })], { maxExpiration: 40_000 });
    const life = async () =>
      (await ok(exchange(app, 'short', await issuer.sign('short'), { expiration: '86400' }))).json.expires_in;
    expect(await life()).toBe(40_000);
    const { identity, db } = app.context;
    const organization = await identity.findOrganization(trusting.organization);
    await createTokenRepository(db).setMaxSeconds(organization?.id ?? '', 300);
    expect(await life()).toBeLessThanOrEqual(300);
  });
});

test('an organization has at most 10,000 tokens of CI runs; a list has the newest of them', async () => {
  const trusting = await trust(app, issuer, 'most', [allow({ maxExpiration: 600 })]);
  await signIn(app, trusting);
  // Issued by policies that are gone, and half of them ended a minute ago.
  await query(
    app,
    `insert into api_tokens (kind, organization_id, role, token_hash, name, policy_id, issued_in, expires_at)
     select 'organization', o.id, 'member', sha256(('most ' || n)::bytea), 'ci ' || n, gen_random_uuid(), o.id,
       now() + interval '1 minute' * (case when n % 2 = 0 then 1 else -1 end)
     from organizations o, generate_series(1, 9998) n where o.name = 'most'`,
  );
  await signIn(app, trusting);
  const expectTooMany = async () =>
    expect(await exchange(app, 'most', await issuer.sign('most'))).toMatchObject({
      ...{ status: 429, headers: { 'retry-after': '60' } },
    });
  await expectTooMany();
  await signIn(app, await trust(app, issuer, 'fewer', [allow()]));
  const { json } = await ok(app.call('GET', '/api/orgs/most/tokens', { auth: trusting.auth }));
  expect(json.tokens).toHaveLength(100);
  // Whichever way a token has ended, it counts for an hour.
  const revoke = (ago: string) =>
    query(app, `update api_tokens set revoked_at = now() - $1::interval where name = 'ci 1002'`, [ago]);
  await revoke('50 minutes');
  await expectTooMany();
  await revoke('2 hours');
  await signIn(app, trusting);
  await expectTooMany();
  await query(app, `update api_tokens set expires_at = expires_at - interval '1 hour' where name like 'ci ___1'`);
  await signIn(app, trusting);
});

describe('an id token is exchanged', () => {
  test('once, on whichever replica, unless nobody has used what it gave', async () => {
    const trusting = await trust(app, issuer, 'once', [allow()]);
    const token = await issuer.sign('once');
    const first = await ok(exchange(app, 'once', token));
    // The response was lost: the CLI asks again.
    const repeated = await ok(exchange(other, 'once', token));
    const auth = `token ${repeated.json.access_token}`;
    expect((await app.call('GET', '/api/user', { auth: `token ${first.json.access_token}` })).status).toBe(401);
    await expectRefused(exchange(other, 'once', token, { expiration: '60' }));
    await ok(other.call('GET', '/api/user', { auth }));
    await expectRefused(exchange(app, 'once', token));
    await expectRefused(exchange(other, 'once', token));
    await ok(app.call('GET', '/api/user', { auth }));
    const { json } = await ok(app.call('GET', '/api/orgs/once/tokens', { auth: trusting.auth }));
    expect(json.tokens).toHaveLength(1);
    const reasons = (await events(trusting, 'exchanged before')).length;
    expect(reasons).toBeGreaterThanOrEqual(1);
  });

  test('for one valid token by any number of concurrent calls', async () => {
    const trusting = await trust(app, issuer, 'race', [allow()]);
    const token = await issuer.sign('race', { jti: undefined } as unknown as JWTPayload);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, at) => exchange(at % 2 === 0 ? app : other, 'race', token)),
    );
    const given = answers.filter(({ status }) => status === 200).map(({ json }) => `token ${json.access_token}`);
    const valid = [];
    for (const auth of given) if ((await app.call('GET', '/api/user', { auth })).status === 200) valid.push(auth);
    expect(valid).toHaveLength(1);
    const { json } = await ok(app.call('GET', '/api/orgs/race/tokens', { auth: trusting.auth }));
    expect(json.tokens).toHaveLength(1);
  });

  test('twice at the same time: the refusal is recorded', async () => {
    const trusting = await trust(app, issuer, 'meanwhile', [allow()]);
    const token = await issuer.sign('meanwhile');
    await using gate = await holdInserts(app, 'exchanged_id_tokens');
    const answers = [exchange(app, 'meanwhile', token), exchange(other, 'meanwhile', token, { expiration: '60' })];
    await gate.reached(2);
    await gate.release();
    expect((await Promise.all(answers)).map(({ status }) => status).sort()).toEqual([200, 400]);
    expect(await events(trusting, 'exchanged before')).toHaveLength(1);
  });

  test('again by an issuer that was removed and added: not once more', async () => {
    const trusting = await trust(app, issuer, 'again', [allow()]);
    const token = await issuer.sign('again');
    await ok(exchange(app, 'again', token));
    await ok(app.call('DELETE', `/api/orgs/again/oidc/issuers/${trusting.issuerId}`, { auth: trusting.auth }));
    await trust(app, issuer, 'again', [allow()]);
    await expectRefused(exchange(app, 'again', token));
  });

  test('as often as its holder likes, if the issuer is registered so', async () => {
    await trust(app, issuer, 'often', [allow()], { replay: 'within-life' });
    const token = await issuer.sign('often');
    for (const replica of [app, other, app]) {
      const { json } = await ok(exchange(replica, 'often', token));
      await ok(replica.call('GET', '/api/user', { auth: `token ${json.access_token}` }));
    }
  });
});

describe('a change of policies', () => {
  test('ends the tokens of what it takes away, and their updates, and no others', async () => {
    const trusting = await trust(app, issuer, 'changing', [allow(), allow({ rules: { sub: 'repo:beta/*' } })]);
    const acme = await signIn(app, trusting);
    const beta = await signIn(app, trusting, { sub: 'repo:beta/web' });
    const stack = {
      organization: 'changing',
      project: 'web',
      stack: 'dev',
      path: '/api/stacks/changing/web/dev',
      auth: acme,
    };
    await ok(app.call('POST', '/api/stacks/changing/web', { auth: acme, body: { stackName: 'dev' } }));
    const update = await startUpdate(app, stack);
    const renew = () =>
      app.call('POST', `${stack.path}/update/${update.id}/renew_lease`, {
        auth: update.lease,
        body: { duration: 300 },
      });
    await setPolicies(app, trusting, [allow({ rules: { sub: 'repo:beta/*' } }), allow()]);
    await ok(renew());
    for (const auth of [acme, beta]) await ok(app.call('GET', '/api/user', { auth }));
    await setPolicies(app, trusting, [allow({ rules: { sub: 'repo:beta/*' } })]);
    expect((await other.call('GET', '/api/user', { auth: acme })).status).toBe(401);
    expect((await renew()).status).toBe(403);
    await ok(other.call('GET', '/api/user', { auth: beta }));
    await setPolicies(app, trusting, [allow({ rules: { sub: 'repo:beta/*' } }), deny({ rules: { run_id: '123456' } })]);
    expect((await other.call('GET', '/api/user', { auth: beta })).status).toBe(401);
  });

  test('to the end of trust ends all tokens', async () => {
    const trusting = await trust(app, issuer, 'ending', [allow()]);
    const auth = await signIn(app, trusting);
    await ok(app.call('DELETE', `/api/orgs/ending/oidc/issuers/${trusting.issuerId}`, { auth: trusting.auth }));
    expect((await other.call('GET', '/api/user', { auth })).status).toBe(401);
    await expectRefused(exchange(other, 'ending', await issuer.sign('ending')));
  });

  test('or of an issuer ends its tokens, but a new name does not', async () => {
    const keys = { keys: [(await makeKey('ES256', 'given')).jwk] };
    const changes: readonly (readonly [change: object, status: number])[] = [
      [{ name: 'renamed', maxExpiration: null, replay: 'once' }, 200],
      [{ audience: 'urn:pulumi:org:other' }, 401],
      [{ replay: 'within-life' }, 401],
      [{ maxExpiration: 600 }, 401],
      [{ jwks: keys }, 401],
    ];
    for (const [index, [change, status]] of changes.entries()) {
      const organization = `issuer-${index}`;
      const trusting = await trust(app, issuer, organization, [allow()]);
      const auth = await signIn(app, trusting);
      const path = `/api/orgs/${organization}/oidc/issuers/${trusting.issuerId}`;
      await ok(app.call('PATCH', path, { auth: trusting.auth, body: change }));
      expect({ change, status: (await other.call('GET', '/api/user', { auth })).status }).toEqual({ change, status });
    }
  });

  test('that denies wins over allowing ones, in any order', async () => {
    const trusting = await trust(app, issuer, 'denying', [
      allow(),
      deny({ rules: { repository: 'acme/secret' } }),
      allow({ rules: { repository: 'acme/*' } }),
    ]);
    await signIn(app, trusting);
    await expectRefused(exchange(app, 'denying', await issuer.sign('denying', { repository: 'acme/secret' })));
    const [refusal] = await events(trusting, 'denies it');
    expect(JSON.stringify(refusal)).toContain('refused');
  });
});

test('strangers with tokens of a trusted issuer cannot fill the audit log', async () => {
  const trusting = await trust(app, issuer, 'flooded', [allow({ rules: { sub: 'repo:acme/web' } })]);
  for (let at = 0; at < 15; at++)
    await expectRefused(exchange(app, 'flooded', await issuer.sign('flooded', { sub: `repo:evil/${at}` })));
  const refused = await events(trusting, 'token.exchange');
  expect(refused).toHaveLength(11);
  expect(JSON.stringify(refused)).toContain('only counted');
  // What a process has counted is recorded when it ends.
  {
    await using ending = await createTestApp(options);
    for (let at = 0; at < 15; at++)
      await expectRefused(exchange(ending, 'flooded', await issuer.sign('flooded', { sub: `repo:evil/late${at}` })));
  }
  expect(JSON.stringify(await events(trusting, 'token.exchange'))).toContain('"leftOut":5');
});

test('the audit log knows the policy behind every call', async () => {
  const trusting = await trust(app, issuer, 'audited', [allow()]);
  const auth = await signIn(app, trusting);
  const path = `/api/orgs/audited/oidc/issuers/${trusting.issuerId}`;
  const policies = await ok(
    app.call('GET', path.replace('oidc/issuers', 'auth/policies/oidcissuers'), { auth: trusting.auth }),
  );
  const by = `policy:${policies.json.policies[0].id}`;
  await ok(app.call('POST', '/api/stacks/audited/web', { auth, body: { stackName: 'dev' } }));
  for (const type of ['token.exchange', 'stack.create'])
    expect(await events(trusting, type)).toEqual([expect.objectContaining({ signIn: 'id-token', grantedBy: by })]);
});

test('an address with too many refusals waits, but not with a token that its issuer has signed', async () => {
  await using own = await TestIssuer.start();
  const settings = { invalidTokensPerMinute: 5 };
  await using server = await createTestApp({ settings, overrides: { outgoing: own.outgoing() } });
  const trusting = await trust(server, own, 'limited', [allow()]);
  await signIn(server, trusting);
  const statuses = [];
  for (let at = 0; at < 12; at++) statuses.push((await exchange(server, 'limited', await own.sign('nobody'))).status);
  expect(statuses.slice(0, 5)).toEqual([400, 400, 400, 400, 400]);
  expect(statuses).toContain(429);
  const refused = await exchange(server, 'limited', 'a.b.c');
  expect([refused.status, refused.json.error, refused.headers['retry-after']]).toEqual([
    429,
    'temporarily_unavailable',
    '1',
  ]);
  await signIn(server, trusting);
});

test('an address waits after many tokens of issuers that cannot be reached', async () => {
  await using own = await TestIssuer.start();
  const settings = { invalidTokensPerMinute: 5 };
  await using server = await createTestApp({ settings, overrides: { outgoing: own.outgoing() } });
  await trust(server, own, 'unreachable', [allow()]);
  own.answer = (_request, response) => void response.writeHead(503).end();
  const statuses = [];
  for (let at = 0; at < 12; at++)
    statuses.push((await exchange(server, 'unreachable', await own.sign('unreachable'))).status);
  expect(statuses.slice(0, 5)).toEqual([503, 503, 503, 503, 503]);
  expect(statuses).toContain(429);
});

describe('a denial that is added', () => {
  const start = async (organization: string) => {
    const { organizationId: id } = await person(app, organization, 'admin');
    await team(app, id, 'blue', []);
    const ofTeam = allow({ tokenType: 'team', teamName: 'blue' });
    const trusting = await trust(app, issuer, organization, [allow(), ofTeam]);
    const tokens = [await signIn(app, trusting), await signIn(app, trusting, {}, { scope: 'team:blue' })];
    const policies = parsePolicies([allow(), ofTeam, deny({ rules: { sub: 'repo:other/*' } })]);
    const change = (compareMs?: number, wrapped = (tx: Queryable) => tx) =>
      app.context.db.inTransaction(async (tx) => {
        const found = await createIssuerRepository(tx).findByName(id, 'ci');
        await replacePolicies(
          wrapped(tx),
          found as IssuerRow,
          policies,
          { userId: null, actsFor: 'anyone' },
          compareMs,
        );
      });
    const statuses = () =>
      Promise.all(tokens.map(async (auth) => (await app.call('GET', '/api/user', { auth })).status));
    return { change, statuses };
  };

  test('and takes too long to compare with all tokens of its issuer revokes them all, but none that it is not about', async () => {
    const { change, statuses } = await start('slow');
    await change();
    expect(await statuses()).toEqual([200, 200]);
    await change(-1);
    expect(await statuses()).toEqual([401, 200]);
  });

  test('is compared with more tokens than a page has', async () => {
    const { change, statuses } = await start('many');
    await query(
      app,
      `insert into api_tokens (kind, organization_id, role, token_hash, name, expires_at, policy_id, claims)
       select t.kind, t.organization_id, t.role, sha256(n::text::bytea), 'many ' || n, t.expires_at, t.policy_id,
         case when n % 2 = 0 then '{"sub": "repo:other/x"}' else t.claims end
       from api_tokens t join organizations o on o.id = t.organization_id, generate_series(1, 1200) n
       where o.name = 'many' and t.kind = 'organization' and t.policy_id is not null`,
    );
    await change();
    const counts = await query(
      app,
      "select count(*)::int as all, count(revoked_at)::int as revoked from api_tokens where name like 'many %'",
    );
    expect(counts).toEqual([{ all: 1200, revoked: 600 }]);
    expect(await statuses()).toEqual([200, 200]);
  });

  test('revokes nothing because the database is slow', async () => {
    const { change, statuses } = await start('slow-database');
    const { now } = performance;
    let lateMs = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + lateMs);
    const slow = (tx: Queryable): Queryable =>
      new Proxy(tx, {
        get: (target, name) => {
          lateMs += 60_000;
          return Reflect.get(target, name);
        },
      });
    try {
      await change(undefined, slow);
    } finally {
      clock.mockRestore();
    }
    expect(lateMs).toBeGreaterThan(0);
    expect(await statuses()).toEqual([200, 200]);
  });
});
