import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { browserOf, PageBrowser } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask, askFrom, queryPath, resultOf } from '../support/procedures.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();

/** Somebody who is signed in by a browser. */
async function signedIn(organization: string, role: 'viewer' | 'member' | 'admin' = 'member') {
  const user = await person(app, organization, role);
  return { ...user, browser: await browserOf(app, user.login) };
}

async function createStacks(auth: string, organization: string, names: readonly string[]): Promise<void> {
  for (const stackName of names)
    await ok(app.call('POST', `/api/stacks/${organization}/web`, { auth, body: { stackName } }));
}

describe('a request', () => {
  test('is answered for a session as for a token of the same user', async () => {
    const user = await signedIn('same-answer', 'admin');
    await createStacks(user.auth, 'same-answer', ['one']);
    const me = await askFrom(user.browser, 'me.get');
    expect(me).toEqual(await ask(app, user.token, 'me.get'));
    expect(me.data).toEqual({
      login: user.login,
      displayName: null,
      isOperator: false,
      mayAddMembers: true,
      invitations: 0,
      organizations: [{ name: 'same-answer', role: 'admin', stackCount: 1, hasMoreStacks: false }],
      version: expect.any(String),
      readOnly: null,
    });
    const stacks = await askFrom(user.browser, 'stacks.list', { organization: 'same-answer' });
    expect(stacks).toEqual(await ask(app, user.token, 'stacks.list', { organization: 'same-answer' }));
    expect(stacks.data.items).toHaveLength(1);
  });

  test('needs a session or a token that is valid', async () => {
    const nobody = new PageBrowser(app);
    expect(await askFrom(nobody, 'me.get')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } });
    expect(await ask(app, 'hf-wrong', 'me.get')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } });
    const user = await signedIn('ended');
    expect((await askFrom(user.browser, 'me.get')).status).toBe(200);
    await query(app, 'delete from sessions where user_id = $1', [user.userId]);
    expect((await askFrom(user.browser, 'me.get')).status).toBe(401);
    const other = await signedIn('ended');
    expect((await askFrom(other.browser, 'me.get')).status).toBe(200);
    await query(app, 'update users set deactivated_at = now() where id = $1', [other.userId]);
    expect((await askFrom(other.browser, 'me.get')).status).toBe(401);
  });

  test('is refused when another site sends it with the cookie', async () => {
    const { browser } = await signedIn('elsewhere');
    const crossSite = { 'sec-fetch-site': 'same-site', origin: 'https://evil.example.com' };
    expect(resultOf(await browser.get(queryPath('me.get'), crossSite))).toMatchObject({
      status: 403,
      error: { code: 'FORBIDDEN' },
    });
    expect(resultOf(await browser.post('/trpc/me.get', {}, crossSite)).status).toBe(403);
    const { status } = resultOf(await browser.post('/trpc/me.get', {}, { 'sec-fetch-site': 'none', origin: 'null' }));
    expect(status).toBe(403);
  });

  test('has a response that is not stored anywhere', async () => {
    const { auth } = await person(app, 'headers', 'member');
    const { headers } = await app.call('GET', queryPath('me.get'), { auth, accept: null });
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'/);
    expect(headers['x-pulumi-request-id']).toEqual(expect.any(String));
  });

  test('carries calls about several organizations, each with the rights there', async () => {
    const user = await signedIn('batch-one');
    await person(app, 'batch-other', 'admin');
    const input = { 0: { organization: 'batch-one' }, 1: { organization: 'batch-other' }, 2: {} };
    const path = `/trpc/stacks.list,stacks.list,me.get?batch=1&input=${encodeURIComponent(JSON.stringify(input))}`;
    const response = await user.browser.get(path, { accept: '*/*', 'sec-fetch-site': 'same-origin' });
    expect(response.status).toBe(207);
    expect(response.json).toMatchObject([
      { result: { data: { items: [] } } },
      { error: { data: { code: 'NOT_FOUND', httpStatus: 404, kind: 'not-found' } } },
      { result: { data: { login: user.login } } },
    ]);
  });

  test('carries at most 20 calls, and inputs of 64 KiB', async () => {
    const { auth } = await person(app, 'bounds', 'member');
    const names = (count: number) => Array.from({ length: count }, () => 'me.get').join(',');
    const call = (count: number) => app.call('GET', `/trpc/${names(count)}?batch=1`, { auth, accept: null });
    expect((await call(20)).status).toBe(200);
    expect((await call(21)).status).toBe(400);
    const large = await app.call('POST', '/trpc/me.get', { auth, accept: null, body: { text: 'x'.repeat(70_000) } });
    expect(resultOf(large)).toMatchObject({ status: 413, error: { code: 'PAYLOAD_TOO_LARGE' } });
  });

  test('carries a query whose input is too long for a URL in its body', async () => {
    const { auth } = await person(app, 'long-inputs', 'member');
    const post = (text: string) =>
      app.call('POST', '/trpc/stacks.list?batch=1', { auth, accept: null, body: { 0: { text } } });
    expect((await post('ж'.repeat(200))).json).toMatchObject([{ result: { data: { items: [] } } }]);
    expect((await post('a\0b')).status).toBe(400);
    expect((await app.call('GET', '/trpc/stacks.setTag?input={}', { auth, accept: null })).status).toBe(405);
  });

  test('is refused in words, without a stack trace', async () => {
    const { auth, token } = await person(app, 'refusals', 'member');
    for (const [procedure, input, status] of [
      ['stacks.list', { limit: 0 }, 400],
      ['stacks.list', { limit: 201 }, 400],
      ['stacks.list', { cursor: 'nonsense' }, 400],
      ['stacks.list', { cursor: Buffer.from('["1","x"]').toString('base64url') }, 400],
      ['stacks.list', { text: 'a\0b' }, 400],
      ['stacks.list', { organization: 7 }, 400],
      ['stacks.list', 'text', 400],
      ['stacks.list', { organization: 'does-not-exist' }, 404],
      ['no.such', {}, 404],
      ['__proto__', {}, 404],
      ['constructor.prototype', {}, 404],
    ] as const) {
      const path = queryPath(procedure, input);
      const response = await app.call('GET', path, { auth, accept: null });
      expect([procedure, input, response.status]).toEqual([procedure, input, status]);
      expect(response.text).not.toMatch(/stack"|node_modules|\.ts:/);
      expect((await ask(app, token, procedure, input)).error?.message).toMatch(/./);
    }
    const kindOf = async (procedure: string) =>
      (await app.call('GET', queryPath(procedure, { organization: 'does-not-exist' }), { auth, accept: null })).json;
    expect(await Promise.all(['no.such', 'stacks.list'].map(kindOf))).toMatchObject([
      { error: { data: { kind: 'other-release', httpStatus: 404 } } },
      { error: { data: { kind: 'not-found' } } },
    ]);
    for (const [url, body, type, status] of [
      ['/trpc/stacks.list', '{', 'application/json', 400],
      ['/trpc/stacks.list?batch=1', '[', 'application/json', 400],
      ['/trpc/me.get', 'a=b', 'application/x-www-form-urlencoded', 415],
      ['/trpc/me.get', 'a', 'application/octet-stream', 415],
    ] as const) {
      const response = await app.call('POST', url, { auth, accept: null, body, headers: { 'content-type': type } });
      expect([url, body, response.status]).toEqual([url, body, status]);
    }
  });
});

describe('the token of a session', () => {
  test('is found in no list, cannot be rotated, and lives as long as sessions do', async () => {
    const user = await signedIn('hidden-tokens', 'admin');
    const organization = user.organizationId;
    await query(app, 'update organization_access set max_token_seconds = 60 where organization_id = $1', [
      organization,
    ]);
    expect((await askFrom(user.browser, 'me.get')).status).toBe(200);
    const [row] = await query(
      app,
      `select t.id, t.expires_at > now() + interval '1 hour' as "isLong", s.id as session
       from api_tokens t join sessions s on s.id = t.id where t.is_session and t.user_id = $1`,
      [user.userId],
    );
    expect(row).toMatchObject({ isLong: true });
    const tokens = await ok(app.call('GET', '/api/user/tokens', { auth: user.auth }));
    expect(tokens.text).not.toContain(row?.['id']);
  });

  test('changes nothing once the session has ended, even if that is during the call', async () => {
    const user = await signedIn('ends-meanwhile', 'admin');
    await createStacks(user.auth, 'ends-meanwhile', ['dev']);
    const input = { organization: 'ends-meanwhile', project: 'web', stack: 'dev', name: 'zone' };
    const set = (value: string) => user.browser.postJson('/trpc/stacks.setTag', { ...input, value });
    expect((await set('before')).status).toBe(200);
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    try {
      await client.query('begin');
      await client.query('delete from sessions where user_id = $1', [user.userId]);
      const late = set('after');
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await until(async () => (await query(app, waiting)).length > 0, 'the call waits for the end of the session');
      await client.query('commit');
      expect(resultOf(await late)).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } });
    } finally {
      await client.end();
    }
    const { data } = await ask(app, user.token, 'stacks.get', input);
    expect(data.tags).toEqual({ zone: 'before' });
  });

  test('gives what its user has, by grants, too, and ends with the membership', async () => {
    const user = await signedIn('granted-sessions', 'viewer');
    const owner = await person(app, 'granted-sessions', 'admin');
    await createStacks(owner.auth, 'granted-sessions', ['seen', 'hidden']);
    const deny = await grant(app, user.organizationId, { userId: user.userId }, 'deny', ['read'], {
      stacks: 'web/hidden',
    });
    expect(deny).toEqual(expect.any(String));
    const names = async () =>
      (await askFrom(user.browser, 'stacks.list', { organization: 'granted-sessions' })).data?.items.map(
        (item: { stack: string }) => item.stack,
      );
    expect(await names()).toEqual(['seen']);
    expect((await askFrom(user.browser, 'me.get')).data.organizations).toEqual([
      { name: 'granted-sessions', role: 'viewer', stackCount: null, hasMoreStacks: false },
    ]);
    await query(app, 'delete from memberships where user_id = $1', [user.userId]);
    expect(await askFrom(user.browser, 'stacks.list', { organization: 'granted-sessions' })).toMatchObject({
      status: 404,
    });
  });
});

describe('the list of stacks', () => {
  test('begins with the newest change, page by page', async () => {
    const { auth, token } = await person(app, 'pages', 'admin');
    const names = Array.from({ length: 7 }, (_, index) => `s${index}`);
    await createStacks(auth, 'pages', names);
    await ok(app.call('PATCH', '/api/stacks/pages/web/s2/tags', { auth, body: { zone: 'eu' } }));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { data }: { data: { items: { stack: string }[]; next: string | null } } = await ask(
        app,
        token,
        'stacks.list',
        {
          organization: 'pages',
          limit: 3,
          cursor,
        },
      );
      seen.push(...data.items.map(({ stack }) => stack));
      cursor = data.next;
    } while (cursor !== null);
    expect(seen).toEqual(['s2', 's6', 's5', 's4', 's3', 's1', 's0']);
  });

  test('is filtered by text, project, tag and status', async () => {
    const stack = await createStack(app);
    const { auth, organization } = stack;
    const token = auth.slice('token '.length);
    await createStacks(auth, organization, ['Prod', 'staging']);
    await ok(
      app.call('PATCH', `/api/stacks/${organization}/web/Prod/tags`, { auth, body: { tier: 'gold', zone: 'eu' } }),
    );
    const find = async (filter: object) =>
      (await ask(app, token, 'stacks.list', { organization, ...filter })).data.items
        .map((item: { project: string; stack: string }) => `${item.project}/${item.stack}`)
        .sort();
    expect(await find({})).toEqual(['proj/dev', 'web/Prod', 'web/staging']);
    expect(await find({ text: 'PROD' })).toEqual(['web/Prod']);
    expect(await find({ text: 'b/st' })).toEqual(['web/staging']);
    expect(await find({ text: '%' })).toEqual([]);
    expect(await find({ project: 'proj' })).toEqual(['proj/dev']);
    expect(await find({ tag: { name: 'zone' } })).toEqual(['web/Prod']);
    expect(await find({ tag: { name: 'tier', value: 'silver' } })).toEqual([]);
    expect(await find({ status: 'running' })).toEqual([]);
    const update = await startUpdate(app, stack);
    expect(await find({ status: 'running' })).toEqual(['proj/dev']);
    expect(await find({ status: 'failed' })).toEqual([]);
    await ok(app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status: 'failed' } }));
    expect(await find({ status: 'running' })).toEqual([]);
    expect(await find({ status: 'failed' })).toEqual(['proj/dev']);
    expect(await find({ status: 'drifted' })).toEqual([]);
    expect(await find({ status: 'frozen' })).toEqual([]);
    const [item] = (await ask(app, token, 'stacks.list', { organization, project: 'proj' })).data.items;
    expect(item).toMatchObject({
      version: 1,
      tags: {},
      lastUpdate: { updateId: update.id, version: 1, kind: 'update', result: 'failed', commit: null, ciUrl: null },
      active: null,
      waiting: 0,
      drift: 'unknown',
    });
  });
});
