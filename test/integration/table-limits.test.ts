import { expect, test } from '@jest/globals';
import { createSessionRepository } from '../../src/shared/identity/session-repository.ts';
import { SoftwareAuthenticator } from '../support/authenticator.ts';
import { browserOf, PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { createStack, ok } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';

// How many rows there can be of what users add themselves; the time for which others are kept is in retention.test.ts.

// Passkeys need a host name.
const app = testApp({ settings: { HOLDFAST_PUBLIC_URL: 'http://localhost:9090' } });

/** Adds personal tokens until a user has `count`. */
async function fillTokens(userId: string, count: number): Promise<void> {
  await query(
    app,
    `insert into api_tokens (kind, user_id, token_hash, name)
     select 'personal', $1, decode(md5($1::text || n), 'hex'), 'n' || n
     from generate_series(1, $2 - (select count(*)::int from api_tokens where user_id = $1)) n`,
    [userId, count],
  );
}

test('a user has at most 100 valid tokens, however many are made at once; CLI logins count', async () => {
  const { auth, login, userId } = await person(app, 'tokens', 'member');
  await fillTokens(userId, 97);
  const make = () => app.call('POST', '/api/user/tokens', { auth, body: { description: 'x' } });
  const statuses = (await Promise.all(Array.from({ length: 8 }, make))).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([200, 200, 200, 409, 409, 409, 409, 409]);
  const refused = await make();
  expect(refused.json).toMatchObject({ code: 409, message: expect.stringMatching(/^There are 100 valid tokens here/) });

  await setPassword(app, login);
  const browser = await browserOf(app, login);
  const opened = { cliSessionPort: '43210', cliSessionNonce: 'ab'.repeat(32) };
  expect((await browser.post('/cli-login', opened)).status).toBe(409);
  await query(app, `update api_tokens set revoked_at = now() where user_id = $1 and name in ('n1', 'n2')`, [userId]);
  expect((await browser.post('/cli-login', opened)).status).toBe(303);
  expect((await make()).status).toBe(200);
  expect((await make()).status).toBe(409);
});

test('an organization has at most 1,000 valid tokens; tokens of CI runs do not count', async () => {
  const stack = await createStack(app);
  const add = (count: number, policy: string) =>
    query(
      app,
      `insert into api_tokens (kind, organization_id, token_hash, name, scopes, policy_id)
       select 'service', o.id, decode(md5(o.name || $3 || n), 'hex'), $3 || n, '[]', case $3 when 'run' then gen_random_uuid() end
       from organizations o, generate_series(1, $2::int) n where o.name = $1`,
      [stack.organization, count, policy],
    );
  await add(1_500, 'run');
  await add(999, 'own');
  const make = (name: string) =>
    app.call('POST', `/api/orgs/${stack.organization}/tokens`, { auth: stack.auth, body: { name, admin: false } });
  expect((await make('last')).status).toBe(200);
  expect((await make('more')).status).toBe(409);
});

test('a user has at most 100 sessions: a new one ends the one that was used least recently', async () => {
  const { login, userId } = await person(app, 'sessions', 'member');
  await setPassword(app, login);
  const sessions = createSessionRepository(app.context.db, app.context.config.sessions);
  const insert = (n: number) =>
    sessions.insert({ userId, hash: Buffer.from(`${login}${n}`), method: 'password', userAgent: '', address: '' });
  const first = await insert(0);
  await query(app, `update sessions set last_seen_at = now() - interval '1 minute' where id = $1`, [first]);
  for (let n = 1; n <= 100; n++) await insert(n);
  expect(await query(app, 'select 1 from sessions where user_id = $1', [userId])).toHaveLength(100);
  expect(await query(app, 'select 1 from sessions where id = $1', [first])).toEqual([]);
  const browser = new PageBrowser(app);
  await browser.post('/sign-in', { login, password: 'correct horse battery' });
  expect(await browser.isSignedIn()).toBe(true);
  expect(await query(app, 'select 1 from sessions where user_id = $1', [userId])).toHaveLength(100);
});

test('a stack has at most 1,000 open requests for approval: a new one replaces the oldest', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `insert into update_approvals (stack_id, kind, commit_id, asked_by, request, asked_at, approved_at, approved_by, reason, expires_at)
     select s.id, 'delete', md5(n::text), 'a', 'x', now() - make_interval(secs => n), g.at, g.name, g.name, g.at
     from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     cross join generate_series(1, 1001) n left join (select now() as at, 'b' as name) g on n = 1001
     where o.name = $1`,
    [stack.organization],
  );
  const list = () => query<{ n: string }>(app, 'select commit_id as n from update_approvals order by asked_at');
  const [given, oldest] = await list();
  await ok(
    app.call('POST', `${stack.path}/approvals`, { auth: stack.auth, body: { commit: 'a'.repeat(40), reason: 'x' } }),
  );
  const left = (await list()).map(({ n }) => n);
  expect(left).toHaveLength(1_001);
  expect(left).toContain(given?.n);
  expect(left).not.toContain(oldest?.n);
});

test('requests ahead of runs displace neither those of stopped runs nor, beyond 100, those of others', async () => {
  const stack = await createStack(app);
  const id = await stackId(app, stack);
  await query(
    app,
    `insert into update_approvals (stack_id, kind, commit_id, asked_by, asked_user_id, request, asked_at, update_id)
     select s.id, 'update', n::text, 'other', gen_random_uuid(), '', now() - interval '1 year' + n * interval '1 minute',
       case when n <= 5 then gen_random_uuid() end
     from stacks s, generate_series(1, 995) n where s.id = $1`,
    [id],
  );
  const ask = (number: number) => {
    const commit = number.toString(16).padStart(40, '0');
    return ok(app.call('POST', `${stack.path}/approvals`, { auth: stack.auth, body: { commit, reason: 'x' } }));
  };
  for (let number = 1; number <= 105; number++) await ask(number);
  const [left] = await query(
    app,
    `select count(*) filter (where update_id is not null)::int as stopped, count(*) filter (where asked_by <> 'other')::int as own, count(*)::int as "all"
     from update_approvals where stack_id = $1`,
    [id],
  );
  expect(left).toEqual({ stopped: 5, own: 100, all: 999 });
});

test('an organization, and a stack, have at most 100 webhooks', async () => {
  const stack = await createStack(app);
  const hook = { displayName: 'one more', payloadUrl: 'https://chat.example/hook', active: true };
  for (const [hooks, isOfStack] of [
    [`/api/orgs/${stack.organization}/hooks`, false],
    [`${stack.path}/hooks`, true],
  ] as const) {
    await query(
      app,
      `insert into webhooks (organization_id, stack_id, name, display_name, url, format, is_active, events, event_groups)
       select o.id, case when $2 then s.id end, 'n' || n, 'n' || n, 'https://chat.example/', 'raw', true, '{}', '{}'
       from organizations o join projects p on p.organization_id = o.id join stacks s on s.project_id = p.id, generate_series(1, 99) n
       where o.name = $1`,
      [stack.organization, isOfStack],
    );
    const make = (displayName: string) => app.call('POST', hooks, { auth: stack.auth, body: { ...hook, displayName } });
    expect((await make('last')).status).toBe(200);
    expect((await make('more')).status).toBe(409);
  }
});

test('a user has at most 20 passkeys', async () => {
  const { login, userId } = await person(app, 'passkeys', 'member');
  await setPassword(app, login);
  const browser = await browserOf(app, login);
  const fill = (count: number) =>
    query(
      app,
      `insert into passkeys (credential_id, user_id, public_key, counter, name)
       select gen_random_uuid()::text, $1, '', 0, 'k' from generate_series(1, $2::int) n`,
      [userId, count],
    );
  await fill(19);
  const question = await browser.postJson('/account/passkeys/options');
  expect(question.status).toBe(200);
  await fill(1);
  const response = new SoftwareAuthenticator().create(question.json);
  expect((await browser.postJson('/account/passkeys', { name: 'x', response })).status).toBe(409);
  expect((await browser.postJson('/account/passkeys/options')).status).toBe(409);
});

test('an organization trusts at most 50 issuers', async () => {
  const stack = await createStack(app);
  await query(
    app,
    `insert into trusted_issuers (organization_id, name, url, audience, replay)
     select id, 'n' || n, 'https://' || n || '.example', name, 'once' from organizations, generate_series(1, 49) n where name = $1`,
    [stack.organization],
  );
  const register = (name: string) => {
    const body = { name, url: `https://${name}.example` };
    return app.call('POST', `/api/orgs/${stack.organization}/oidc/issuers`, { auth: stack.auth, body });
  };
  expect((await register('last')).status).toBe(200);
  const refused = await register('more');
  expect(refused.json).toMatchObject({
    code: 409,
    message: 'There are 50 issuers here, the maximum: remove one first',
  });
});
