import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { listEvents } from '../support/audit.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person, team } from '../support/grants.ts';
import { TestProvider } from '../support/oidc-provider.ts';
import { Provider as ScimProvider } from '../support/scim.ts';
import { ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const callback = 'http://localhost:9090/sign-in/provider/callback';
let provider: TestProvider;
let directory: string;
let app: TestApp;

beforeAll(async () => {
  // oidc-provider says on the console that its defaults are for tests.
  for (const name of ['info', 'warn'] as const) jest.spyOn(console, name).mockImplementation(() => {});
  directory = mkdtempSync(path.join(tmpdir(), 'holdfast-provider-'));
  const file = path.join(directory, 'groups.json');
  const mapping = [
    { group: 'dev', organization: 'acme', teams: ['web', 'absent'] },
    { group: 'lead', organization: 'acme', role: 'admin' },
    { group: 'dev', organization: 'absent' },
  ];
  writeFileSync(file, JSON.stringify(mapping));
  provider = await TestProvider.start(callback);
  app = await createTestApp({ settings: provider.settings({ HOLDFAST_OIDC_GROUPS_FILE: file }) });
  const { organizationId } = await person(app, 'acme', 'admin');
  await team(app, organizationId, 'web', []);
});
afterAll(async () => {
  jest.restoreAllMocks();
  await app?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  provider.isDown = false;
  provider.instead = null;
  provider.tamper = null;
});

let count = 0;
/** A person at the provider whose groups give a role. */
function newcomer(claims: Readonly<Record<string, unknown>> = {}): { sub: string; login: string } {
  const sub = `subject-${++count}`;
  const login = `person-${count}`;
  provider.people.set(sub, { preferred_username: login, name: 'A Person', groups: ['dev'], ...claims });
  return { sub, login };
}

/** Goes to the provider, signs in there, and comes back; `change` may change the address that leads back. */
async function signIn(
  sub: string,
  { on = app, browser = new PageBrowser(on), change = (address: string) => address, next = '/account' } = {},
) {
  const start = await browser.get(`/sign-in/provider?next=${encodeURIComponent(next)}`);
  expect(start.status).toBe(303);
  const back = new URL(change(await provider.signIn(start.headers['location'] as string, sub)));
  expect(`${back.origin}${back.pathname}`).toBe(callback);
  const answer = await browser.get(`${back.pathname}${back.search}`);
  return { answer, browser, back };
}

/** Holds the lock on people until the returned function is called. */
async function holdPeople(): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: app.database.ownerUrl });
  await holder.connect();
  await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('holdfast people', 0))`);
  return () => holder.end();
}

async function accessOf(login: string) {
  const roles = await query<{ role: string }>(
    app,
    `select m.role from memberships m join users u on u.id = m.user_id join organizations o on o.id = m.organization_id
     where u.login = $1 and o.name = 'acme'`,
    [login],
  );
  const teams = await query<{ name: string }>(
    app,
    `select e.name from team_members m join users u on u.id = m.user_id join teams e on e.id = m.team_id where u.login = $1`,
    [login],
  );
  return { role: roles[0]?.role ?? null, teams: teams.map(({ name }) => name) };
}

const admin = async (...args: string[]): Promise<number> => {
  const spies = (['log', 'error'] as const).map((name) => jest.spyOn(console, name).mockImplementation(() => {}));
  try {
    return (await runCommandLine(['admin', ...args], () => ({ ...app.context.config, logLevel: 'silent' }))) ?? -1;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
};

describe('signing in with the provider', () => {
  test('creates the user, gives what groups give, and goes where the person wanted to', async () => {
    const { login, sub } = newcomer({ email: 'p@acme.example', email_verified: true });
    expect((await new PageBrowser(app).get('/sign-in')).text).toContain('Sign in with Test Login');
    const { answer, browser } = await signIn(sub, { next: '/cli-login?cliSessionPort=1' });
    expect([answer.status, answer.headers['location']]).toEqual([303, '/cli-login?cliSessionPort=1']);
    expect(browser.cookies.has('holdfast-flow')).toBe(false);
    expect((await browser.get('/account')).text).toContain(login);
    expect(await accessOf(login)).toEqual({ role: 'member', teams: ['web'] });
    const events = (await listEvents(app, 'acme')).filter((event) => event.login === login);
    expect(events.map(({ action }) => action)).toEqual(['member.add', 'team.add']);
    const ofAccount = (await listEvents(app, '')).filter((event) => event.login === login);
    expect(ofAccount.map(({ action }) => action)).toEqual(['user.create', 'session.begin']);
    expect([...events, ...ofAccount].every(({ sign_in }) => sign_in === 'provider')).toBe(true);
    const again = await signIn(sub);
    expect(again.answer.status).toBe(303);
    expect(await query(app, 'select 1 from users where login like $1', [`${login}%`])).toHaveLength(1);
    expect(await query(app, 'select 1 from sign_in_flows')).toHaveLength(0);
  });

  test('recognizes people by their subject: a new name is the same user, and a name of somebody else is not theirs', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    provider.people.set(sub, { preferred_username: 'renamed', groups: ['dev'] });
    const renamed = await signIn(sub);
    expect((await renamed.browser.get('/account')).text).toContain(login);
    const thief = newcomer({ preferred_username: login });
    const refused = await signIn(thief.sub);
    expect([refused.answer.status, await refused.browser.isSignedIn()]).toEqual([403, false]);
    expect(await admin('user', 'link', login, '--issuer', provider.issuer, '--subject', thief.sub)).toBe(0);
    const linked = await signIn(thief.sub);
    expect((await linked.browser.get('/account')).text).toContain(login);
  });

  test('makes no second account for a login that differs only in case from one of an organization’s other provider', async () => {
    const by = await ScimProvider.of(app, 'acme');
    await by.addUser('Ada@Acme.example');
    const { sub } = newcomer({ preferred_username: 'ada@acme.example' });
    const { answer } = await signIn(sub);
    // As the operator's command knows it.
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('The login Ada@Acme.example belongs')]);
    expect(await query(app, `select login from users where lower(login) = 'ada@acme.example'`)).toHaveLength(1);
  });

  test.each<[string, (address: string) => string]>([
    ['another state', (address) => address.replace(/state=[^&]+/, 'state=forged')],
    ['no state', (address) => address.replace(/state=[^&]+&?/, '')],
    ['another issuer', (address) => address.replace(/iss=[^&]+/, 'iss=https%3A%2F%2Fevil.example')],
    ['a code that is not one', (address) => address.replace(/code=[^&]+/, 'code=forged')],
    ['a refusal of the provider', (address) => address.replace(/code=[^&]+/, 'error=access_denied')],
  ])('is refused with %s', async (_what, change) => {
    const { login, sub } = newcomer();
    const { answer, browser } = await signIn(sub, { change });
    expect([answer.status, await browser.isSignedIn()]).toEqual([401, false]);
    expect(await query(app, 'select 1 from users where login = $1', [login])).toEqual([]);
  });

  test.each<[string, Record<string, unknown>]>([
    ['another nonce', { nonce: 'of another sign-in' }],
    ['no nonce', { nonce: undefined }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['another audience', { aud: 'another client' }],
    ['an end in the past', { exp: 1_000_000_000 }],
    ['no subject', { sub: undefined }],
    ['the subject of somebody else, unlike the user info', { sub: 'another-subject' }],
  ])('is refused when the ID token has %s', async (_what, changes) => {
    const { sub } = newcomer();
    // Signed again without a change, it is accepted.
    provider.tamper = (claims) => claims;
    expect((await signIn(sub)).answer.status).toBe(303);
    provider.tamper = (claims) => ({ ...claims, ...changes });
    const { answer, browser } = await signIn(sub);
    expect([answer.status, await browser.isSignedIn()]).toEqual([401, false]);
  });

  test('is accepted with a clock that differs by seconds, and refused by minutes', async () => {
    const { sub } = newcomer();
    const now = Math.floor(Date.now() / 1000);
    provider.tamper = (claims) => ({ ...claims, iat: now + 600, exp: now + 1200 });
    expect((await signIn(sub)).answer.status).toBe(303);
    provider.tamper = (claims) => ({ ...claims, iat: now - 900, exp: Math.floor(Date.now() / 1000) - 300 });
    expect((await signIn(sub)).answer.status).toBe(401);
    provider.tamper = (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1000) - 2 });
    expect((await signIn(sub)).answer.status).toBe(303);
  });

  test.each<[string, (response: ServerResponse) => unknown]>([
    ['a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Maintenance</html>')],
    ['something else as JSON', (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('[]')],
    ['half a response, and then nothing', (response) => response.writeHead(200, { 'content-length': 9 }).write('{')],
  ])('says so when the provider answers %s, at each step', async (_what, respond) => {
    await using fresh = await createTestApp({ database: app.database, settings: provider.settings() });
    const { login, sub } = newcomer();
    const answerAt = (wanted: string): void => {
      provider.instead = (path, response) => {
        if (path !== wanted) return false;
        respond(response);
        return true;
      };
    };
    answerAt('/.well-known/openid-configuration');
    expect((await new PageBrowser(fresh).get('/sign-in/provider')).status).toBe(503);
    for (const step of ['/token', '/jwks']) {
      provider.instead = null;
      const browser = new PageBrowser(fresh);
      const start = await browser.get('/sign-in/provider');
      const back = new URL(await provider.signIn(start.headers['location'] as string, sub));
      answerAt(step);
      const answer = await browser.get(`${back.pathname}${back.search}`);
      expect({ step, refused: [401, 503].includes(answer.status) }).toEqual({ step, refused: true });
      expect(answer.text).not.toContain('Maintenance');
      expect(await browser.isSignedIn()).toBe(false);
    }
    expect(await query(app, 'select 1 from users where login = $1', [login])).toEqual([]);
  });

  test('is ended once, and only by the browser that began it', async () => {
    const { sub } = newcomer();
    const victim = new PageBrowser(app);
    const begun = new PageBrowser(app);
    const start = await begun.get('/sign-in/provider');
    const back = new URL(await provider.signIn(start.headers['location'] as string, sub));
    // Somebody else's sign-in, sent to a victim.
    expect((await victim.get(`${back.pathname}${back.search}`)).status).toBe(401);
    await victim.get('/sign-in/provider');
    expect((await victim.get(`${back.pathname}${back.search}`)).status).toBe(401);
    expect(await victim.isSignedIn()).toBe(false);
    const flow = begun.cookies.get('holdfast-flow') as string;
    expect((await begun.get(`${back.pathname}${back.search}`)).status).toBe(303);
    begun.cookies.set('holdfast-flow', flow);
    expect((await begun.get(`${back.pathname}${back.search}`)).status).toBe(401);
  });

  test('works at once after the provider has replaced its keys', async () => {
    const { sub } = newcomer();
    await signIn(sub);
    await provider.rotateKeys();
    const { answer } = await signIn(sub);
    expect(answer.status).toBe(303);
  });

  test('says so while the provider is down, and a local password still works', async () => {
    await using fresh = await createTestApp({ database: app.database, settings: provider.settings() });
    provider.isDown = true;
    const browser = new PageBrowser(fresh);
    const answer = await browser.get('/sign-in/provider');
    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1']);
    const { login } = await person(fresh, 'acme', 'admin');
    await setPassword(fresh, login);
    expect((await browser.signIn(login)).status).toBe(303);
    provider.isDown = false;
    const { sub } = newcomer();
    const { browser: between } = await (async () => {
      const other = new PageBrowser(app);
      const start = await other.get('/sign-in/provider');
      const back = new URL(await provider.signIn(start.headers['location'] as string, sub));
      provider.isDown = true;
      expect((await other.get(`${back.pathname}${back.search}`)).status).toBe(503);
      return { browser: other };
    })();
    expect(await between.isSignedIn()).toBe(false);
  });

  test('waits for other changes of people only if it makes some, and then with one connection', async () => {
    const known = newcomer();
    await signIn(known.sub);
    const end = await holdPeople();
    const waitingSignIns = Promise.all(Array.from({ length: 8 }, () => signIn(newcomer().sub)));
    const countWaiting = async (): Promise<number> => {
      const rows = await query(
        app,
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
      );
      return rows.length;
    };
    await until(async () => (await countWaiting()) > 0, 'a newcomer waits');
    expect((await signIn(known.sub)).answer.status).toBe(303);
    expect(await countWaiting()).toBe(1);
    await end();
    for (const { answer } of await waitingSignIns) expect(answer.status).toBe(303);
  });

  test('is for active users only', async () => {
    const { login, sub } = newcomer();
    const { browser } = await signIn(sub);
    await query(app, 'update users set deactivated_at = now() where login = $1', [login]);
    expect(await browser.isSignedIn()).toBe(false);
    const { answer } = await signIn(sub);
    expect(answer.status).toBe(403);
    await signIn(sub);
    const refused = (await listEvents(app, '')).filter(({ outcome }) => outcome === 'refused');
    expect(refused.filter(({ object }) => object === login)).toMatchObject([{ action: 'session.begin' }]);
    expect(refused.find(({ object }) => object === login)?.details).toEqual({
      method: 'provider',
      issuer: provider.issuer,
      subject: sub,
      reason: 'This user was deactivated',
    });
  });
});

describe('groups', () => {
  test('are asked for if they give anything, and the provider has a scope for them', async () => {
    await using without = await TestProvider.start(callback, 'teams');
    const scopes: (string | null)[] = [];
    for (const [at, file] of [
      [provider, {}],
      [provider, { HOLDFAST_OIDC_GROUPS_FILE: path.join(directory, 'groups.json') }],
      [without, { HOLDFAST_OIDC_GROUPS_FILE: path.join(directory, 'groups.json') }],
    ] as const) {
      await using other = await createTestApp({ database: app.database, settings: at.settings(file) });
      const { headers } = await new PageBrowser(other).get('/sign-in/provider');
      scopes.push(new URL(headers['location'] as string).searchParams.get('scope'));
    }
    expect(scopes).toEqual(['openid profile email', 'openid profile email groups', 'openid profile email']);
  });

  test('grant and revoke at each sign-in, with the sessions and updates that depend on them', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    const groups = async (names: readonly string[]) => {
      provider.people.set(sub, { preferred_username: login, groups: names });
      expect((await signIn(sub)).answer.status).toBe(303);
      return accessOf(login);
    };
    expect(await groups(['dev', 'lead'])).toEqual({ role: 'admin', teams: ['web'] });
    expect(await groups(['lead'])).toEqual({ role: 'admin', teams: [] });
    expect(await groups(['dev'])).toEqual({ role: 'member', teams: ['web'] });
    expect(await groups([])).toEqual({ role: null, teams: [] });
    const actions = (await listEvents(app, 'acme')).filter((event) => event.login === login);
    expect(actions.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['member.role', 'member.remove', 'team.add', 'team.remove']),
    );
  });

  test('add nobody to a team with which too many grants would apply, and the sign-in succeeds', async () => {
    const { login, sub } = newcomer({ groups: ['lead'] });
    await signIn(sub);
    const fill = (column: string, table: string, name: string, count: number) =>
      query(
        app,
        `insert into grants (organization_id, effect, permissions, ${column}, stack_pattern)
         select o.id, 'allow', 1, s.id, 'other-' || n from organizations o, ${table} s, generate_series(1, $2::integer) n
         where o.name = 'acme' and s.${table === 'users' ? 'login' : 'name'} = $1`,
        [name, count],
      );
    await fill('user_id', 'users', login, 1_500);
    await fill('team_id', 'teams', 'web', 600);
    provider.people.set(sub, { preferred_username: login, groups: ['dev', 'lead'] });
    expect((await signIn(sub)).answer.status).toBe(303);
    const end = await holdPeople();
    expect((await signIn(sub)).answer.status).toBe(303);
    await end();
    expect(await accessOf(login)).toEqual({ role: 'admin', teams: [] });
    await query(app, 'delete from grants where team_id is not null');
    await signIn(sub);
    expect(await accessOf(login)).toEqual({ role: 'admin', teams: ['web'] });
  });

  test('do not bring back a member whom the organization’s other provider has suspended', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    await query(
      app,
      `insert into scim_users (organization_id, user_id, suspended_role)
       select o.id, u.id, 'member' from organizations o, users u where o.name = 'acme' and u.login = $1`,
      [login],
    );
    await query(app, `delete from memberships where user_id = (select id from users where login = $1)`, [login]);
    const { answer } = await signIn(sub);
    expect([answer.status, await accessOf(login)]).toEqual([303, { role: null, teams: [] }]);
    await app.createUser('acme', 'member', login);
    await signIn(sub);
    expect(await accessOf(login)).toEqual({ role: 'member', teams: ['web'] });
  });

  test('take away what they gave before the organization’s other provider suspended the member', async () => {
    const { login, sub } = newcomer({ groups: ['dev', 'lead'] });
    await signIn(sub);
    const [user] = await query<{ id: string }>(app, 'select id from users where login = $1', [login]);
    const by = await ScimProvider.of(app, 'acme');
    for (const value of [false, true])
      await ok(by.patch(`Users/${user?.id}`, { op: 'replace', path: 'active', value }));
    expect(await accessOf(login)).toEqual({ role: 'admin', teams: ['web'] });
    provider.people.set(sub, { preferred_username: login, groups: [] });
    await signIn(sub);
    expect(await accessOf(login)).toEqual({ role: null, teams: [] });
  });

  test('bring back a member whom they removed, although another provider knows the person', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    await query(
      app,
      `insert into scim_users (organization_id, user_id)
       select o.id, u.id from organizations o, users u where o.name = 'acme' and u.login = $1`,
      [login],
    );
    for (const [groups, role] of [
      [[], null],
      [['dev'], 'member'],
    ] as const) {
      provider.people.set(sub, { preferred_username: login, groups });
      await signIn(sub);
      expect((await accessOf(login)).role).toBe(role);
    }
  });

  test('do not change grants made by hand', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    // A role that an operator sets is by hand from then on.
    expect(await admin('set-role', login, 'viewer', '--organization', 'acme')).toBe(0);
    provider.people.set(sub, { preferred_username: login, groups: ['lead'] });
    await signIn(sub);
    expect((await accessOf(login)).role).toBe('viewer');
    provider.people.set(sub, { preferred_username: login, groups: [] });
    await signIn(sub);
    expect((await accessOf(login)).role).toBe('viewer');
    const { login: local } = await person(app, 'acme', 'member');
    await query(
      app,
      `insert into team_members (team_id, user_id) select e.id, u.id from teams e, users u where e.name = 'web' and u.login = $1`,
      [local],
    );
    const { sub: linked } = newcomer({ groups: ['lead', 'dev'] });
    expect(await admin('user', 'link', local, '--issuer', provider.issuer, '--subject', linked)).toBe(0);
    await signIn(linked);
    expect(await accessOf(local)).toEqual({ role: 'member', teams: ['web'] });
    provider.people.set(linked, { groups: [] });
    await signIn(linked);
    expect(await accessOf(local)).toEqual({ role: 'member', teams: ['web'] });
  });

  test('that the provider leaves out take nothing away', async () => {
    const { login, sub } = newcomer();
    await signIn(sub);
    provider.tamper = (claims) => ({ ...claims, _claim_names: { groups: 'src1' } });
    expect((await signIn(sub)).answer.status).toBe(403);
    expect((await accessOf(login)).role).toBe('member');
  });
});

describe('the policy', () => {
  test('creates no user for people without a role by a group', async () => {
    const { login, sub } = newcomer({ groups: ['another'] });
    expect((await signIn(sub)).answer.status).toBe(403);
    expect(await query(app, 'select 1 from users where login = $1', [login])).toEqual([]);
    await using open = await createTestApp({
      database: app.database,
      settings: provider.settings({ HOLDFAST_OIDC_CREATE_USERS: 'all' }),
    });
    expect((await signIn(sub, { on: open })).answer.status).toBe(303);
    await using closed = await createTestApp({
      database: app.database,
      settings: provider.settings({ HOLDFAST_OIDC_CREATE_USERS: 'none' }),
    });
    expect((await signIn(newcomer().sub, { on: closed })).answer.status).toBe(403);
  });

  test('gives the reason of a refusal although the database no longer answers', async () => {
    const { maybeOne } = app.context.db;
    const spy = jest.spyOn(app.context.db, 'maybeOne').mockImplementation(async (statement) => {
      if (statement.sql.includes('providers.findIdentity')) throw new UnavailableError('The database is unavailable');
      return maybeOne.call(app.context.db, statement) as never;
    });
    try {
      const { answer } = await signIn(newcomer({ groups: ['another'] }).sub);
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('You have no account here')]);
    } finally {
      spy.mockRestore();
    }
  });

  test('admits only verified addresses of its domains', async () => {
    await using limited = await createTestApp({
      database: app.database,
      settings: provider.settings({
        HOLDFAST_OIDC_ALLOWED_DOMAINS: 'acme.example, acme.test',
        HOLDFAST_OIDC_CREATE_USERS: 'all',
        HOLDFAST_OIDC_LOGIN_CLAIM: 'email',
      }),
    });
    const statuses: number[] = [];
    for (const [email, email_verified] of [
      ['a@ACME.example', true],
      ['b@acme.example', false],
      ['c@acme.example', undefined],
      ['d@notacme.example', true],
      ['acme.example', true],
      [undefined, true],
    ] as const)
      statuses.push((await signIn(newcomer({ email, email_verified }).sub, { on: limited })).answer.status);
    expect(statuses).toEqual([303, 403, 403, 403, 403, 403]);
  });
});
