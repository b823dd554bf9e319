import { createHash } from 'node:crypto';
import { describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { hashPassword, verifyPassword } from '../../src/shared/platform/crypto/password-hash.ts';
import { deleteEndedSignIns } from '../../src/workers/identity/delete-sign-ins.ts';
import { listEvents, listPersonalEvents } from '../support/audit.ts';
import { goodPassword, PageBrowser, setPassword, withInput } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { queryPath } from '../support/procedures.ts';
import { createTestApp, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();

/** A member of an organization of their own who has a password. */
async function somebody(on = app) {
  const organization = `org-${Math.random().toString(36).slice(2, 8)}`;
  const { login, userId } = await person(on, organization, 'member');
  await setPassword(on, login);
  return { organization, login, userId };
}

async function signedIn() {
  const user = await somebody();
  const browser = new PageBrowser(app);
  expect((await browser.signIn(user.login)).status).toBe(303);
  return { ...user, browser };
}

/** The status of a call of the dashboard. */
const dashboardOf = async (browser: PageBrowser) => (await browser.get(queryPath('me.get'), sameOrigin)).status;
const sameOrigin = { 'sec-fetch-site': 'same-origin' };

let printed = '';
async function admin(...args: string[]): Promise<number> {
  printed = '';
  const log = jest.spyOn(console, 'log').mockImplementation((line) => {
    printed += `${line}\n`;
  });
  const error = jest.spyOn(console, 'error').mockImplementation(() => {});
  try {
    return (await runCommandLine(['admin', ...args], () => ({ ...app.context.config, logLevel: 'silent' }))) ?? -1;
  } finally {
    log.mockRestore();
    error.mockRestore();
  }
}

describe('a session', () => {
  test('begins with a new value that the database does not know, and is recorded', async () => {
    const { browser, login } = await signedIn();
    const first = browser.cookies.get('holdfast') as string;
    expect(first).toMatch(/^hfs-/);
    expect(await browser.isSignedIn()).toBe(true);
    const rows = await query(app, 'select encode(session_hash, $1) as hash from sessions', ['escape']);
    expect(JSON.stringify(rows)).not.toContain(first.slice(4, 20));
    expect(await listPersonalEvents(app, login)).toMatchObject([
      { action: 'session.begin', login, sign_in: 'password', user_agent: 'TestBrowser/1', outcome: 'done' },
    ]);
    // Fixation: signing in never goes on with the value that the browser had.
    expect((await browser.signIn(login)).status).toBe(303);
    expect(browser.cookies.get('holdfast')).not.toBe(first);
    const old = new PageBrowser(app);
    old.cookies.set('holdfast', first);
    expect(await old.isSignedIn()).toBe(false);
  });

  test('is not begun by a value from elsewhere', async () => {
    const { login } = await somebody();
    const browser = new PageBrowser(app);
    const planted = `hfs-${'A'.repeat(49)}`;
    browser.cookies.set('holdfast', planted);
    await browser.signIn(login);
    expect(browser.cookies.get('holdfast')).not.toBe(planted);
    expect(await browser.isSignedIn()).toBe(true);
  });

  test('has a cookie that scripts cannot read, and with HTTPS one that only this host can set', async () => {
    const { browser } = await signedIn();
    const { login } = await somebody();
    const plain = await browser.signIn(login);
    expect(plain.headers['set-cookie']).toEqual([
      expect.stringMatching(/^holdfast=hfs-\w+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(/^holdfast-browser=[\w.~-]+; Max-Age=15552000; Path=\/; HttpOnly; SameSite=Lax$/),
    ]);
    await using secure = await createTestApp({
      database: app.database,
      settings: { HOLDFAST_PUBLIC_URL: 'https://pulumi.example.com' },
    });
    const own = { origin: 'https://pulumi.example.com' };
    const answer = await new PageBrowser(secure).post('/sign-in', { login, password: goodPassword }, own);
    expect(answer.status).toBe(303);
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-holdfast=hfs-\w+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
      expect.stringMatching(/^__Host-holdfast-browser=[\w.~-]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
  });

  test('ends by signing out, here or everywhere, on every replica', async () => {
    const { browser, login } = await signedIn();
    const other = new PageBrowser(app);
    await other.signIn(login);
    await using replica = await createTestApp({ database: app.database });
    const there = new PageBrowser(replica);
    there.cookies.set('holdfast', other.cookies.get('holdfast') as string);
    expect(await there.isSignedIn()).toBe(true);
    const stolen = browser.cookies.get('holdfast') as string;
    expect((await browser.post('/sign-out')).headers['location']).toBe('/sign-in');
    expect(browser.cookies.has('holdfast')).toBe(false);
    browser.cookies.set('holdfast', stolen);
    expect(await browser.isSignedIn()).toBe(false);
    expect(await there.isSignedIn()).toBe(true);
    expect((await other.post('/account/sign-out-everywhere')).status).toBe(303);
    expect(await there.isSignedIn()).toBe(false);
    const actions = (await listPersonalEvents(app, login)).map(({ action }) => action);
    expect(actions).toEqual(['session.begin', 'session.begin', 'session.end', 'session.end']);
  });

  test('can be ended from another one of the same user only', async () => {
    const { browser, login, userId } = await signedIn();
    const other = new PageBrowser(app);
    await other.signIn(login);
    const stranger = (await signedIn()).browser;
    const [row] = await query<{ id: string }>(
      app,
      'select id from sessions where user_id = $1 order by created_at limit 1',
      [userId],
    );
    expect((await stranger.post('/account/end-session', { session: row?.id ?? '' })).status).toBe(404);
    expect(await browser.isSignedIn()).toBe(true);
    expect((await other.post('/account/end-session', { session: row?.id ?? '' })).status).toBe(303);
    expect(await browser.isSignedIn()).toBe(false);
    expect(await other.isSignedIn()).toBe(true);
  });

  test('can end all others of the same user', async () => {
    const { browser, login } = await signedIn();
    expect((await browser.get('/account')).text).not.toContain('Sign out all other browsers');
    const others = [new PageBrowser(app), new PageBrowser(app)];
    for (const each of others) await each.signIn(login);
    const stranger = (await signedIn()).browser;
    expect((await browser.get('/account')).text).toContain('Sign out all other browsers');
    expect((await browser.post('/account/end-session', { session: 'others' })).status).toBe(303);
    expect(await Promise.all([browser, ...others, stranger].map((each) => each.isSignedIn()))).toEqual([
      ...[true, false, false, true],
    ]);
    const [last] = (await listPersonalEvents(app, login)).slice(-1);
    expect(last).toMatchObject({ action: 'session.end', details: { others: true, ended: 2 } });
  });

  test('ends at once when its user is deactivated, and does not come back', async () => {
    const { browser, login } = await signedIn();
    await query(app, 'alter table users disable trigger users_end_sessions');
    try {
      await query(app, 'update users set deactivated_at = now() where login = $1', [login]);
      // The statement that authenticates decides, not only the trigger.
      expect(await browser.isSignedIn()).toBe(false);
      await query(app, 'update users set deactivated_at = null where login = $1', [login]);
    } finally {
      await query(app, 'alter table users enable trigger users_end_sessions');
    }
    expect(await browser.isSignedIn()).toBe(true);
    expect(await admin('deactivate-user', login)).toBe(0);
    expect(await browser.isSignedIn()).toBe(false);
    expect((await browser.signIn(login)).status).toBe(401);
    expect(await admin('reactivate-user', login)).toBe(0);
    expect(await browser.isSignedIn()).toBe(false);
    expect((await browser.signIn(login)).status).toBe(303);
  });

  test.each([
    ['without a request for too long', `last_seen_at = now() - interval '721 minutes'`],
    ['after too long a time', `created_at = now() - interval '169 hours'`],
  ])('ends %s', async (_when, change) => {
    const { browser, userId } = await signedIn();
    await query(app, `update sessions set ${change} where user_id = $1`, [userId]);
    expect(await browser.isSignedIn()).toBe(false);
    const count = () => query(app, 'select 1 from sessions where user_id = $1', [userId]);
    expect(await count()).toHaveLength(1);
    await deleteEndedSignIns(app.context);
    expect(await count()).toHaveLength(0);
  });

  test('stays while it is used', async () => {
    const { browser, userId } = await signedIn();
    await query(app, `update sessions set last_seen_at = now() - interval '700 minutes' where user_id = $1`, [userId]);
    expect(await browser.isSignedIn()).toBe(true);
    const recent = `select 1 from sessions where user_id = $1 and last_seen_at > now() - interval '1 minute'`;
    expect(await query(app, recent, [userId])).toHaveLength(1);
  });

  test('stays when the tokens of its user are revoked, and is none of them', async () => {
    const { browser, login } = await signedIn();
    expect(await dashboardOf(browser)).toBe(200);
    const [{ id }] = (await query(
      app,
      `select s.id from sessions s join users u on u.id = s.user_id where u.login = $1`,
      [login],
    )) as [{ id: string }];
    expect(await admin('revoke', '--user', login)).toBe(0);
    expect(printed).toContain(`Revoked 1 token of ${login}.`);
    expect(await admin('revoke', id)).not.toBe(0);
    expect(await dashboardOf(browser)).toBe(200);
  });

  test('lasts as long as the limit says, also if it was raised meanwhile', async () => {
    const { browser, login } = await signedIn();
    expect(await dashboardOf(browser)).toBe(200);
    await query(
      app,
      `update api_tokens set expires_at = now() - interval '1 second' where is_session and user_id = (select id from users where login = $1)`,
      [login],
    );
    expect(await dashboardOf(browser)).toBe(200);
  });

  test('changes nothing for a page of another site', async () => {
    const { browser } = await signedIn();
    const refused: Record<string, string>[] = [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: 'http://localhost:9091' },
    ];
    for (const headers of refused) {
      for (const path of ['/sign-out', '/account/sign-out-everywhere', '/cli-login', '/account/password', '/sign-in']) {
        const answer = await browser.post(path, {}, headers);
        expect({ path, headers, status: answer.status }).toEqual({ path, headers, status: 403 });
      }
    }
    const program = await app.call('POST', '/sign-out', {
      accept: null,
      headers: { cookie: `holdfast=${browser.cookies.get('holdfast')}` },
    });
    expect(program.status).toBe(403);
    expect(await browser.isSignedIn()).toBe(true);
  });

  test('is no token, and a token is no session', async () => {
    const { browser, organization } = await signedIn();
    const value = browser.cookies.get('holdfast') as string;
    expect((await app.call('GET', '/api/user', { auth: `token ${value}` })).status).toBe(401);
    expect((await app.call('GET', '/api/user', { headers: { cookie: `holdfast=${value}` } })).status).toBe(401);
    const token = await app.createUser(organization, 'admin');
    const stranger = new PageBrowser(app);
    stranger.cookies.set('holdfast', token);
    expect(await stranger.isSignedIn()).toBe(false);
  });
});

describe('a password', () => {
  test('is refused with the same words for unknown users, users without one, and wrong ones', async () => {
    const { login } = await somebody();
    const { login: without } = await person(app, 'org-without', 'member');
    const texts = new Set<string>();
    for (const [name, password] of [
      [login, 'wrong password'],
      [without, goodPassword],
      ['nobody-at-all', goodPassword],
      [`${login}\0`, 'x'],
    ] as const) {
      const browser = new PageBrowser(app);
      const { status, text } = await browser.signIn(name, password);
      expect(status).toBe(401);
      expect(browser.cookies.size).toBe(0);
      // Screen readers say the title of a page first.
      expect(text).toContain('<title>Not signed in - Holdfast</title>');
      texts.add(/<p class="problem" role="alert">(.*?)<\/p>/.exec(text)?.[1] ?? '');
    }
    expect([...texts]).toEqual(['Login or password is wrong']);
    const all = (await listEvents(app, '')).filter(({ outcome }) => outcome === 'refused');
    const refused = all.slice(-4);
    expect(refused.map(({ object }) => object)).toEqual([
      login,
      expect.stringMatching(/^unknown:/),
      expect.stringMatching(/^unknown:/),
      expect.stringMatching(/^unknown:/),
    ]);
    expect(JSON.stringify(refused)).not.toContain('wrong password');
    // The typed name may be a password, which a dictionary would find from its hash.
    expect(JSON.stringify(refused)).not.toContain(
      createHash('sha256').update('nobody-at-all').digest('hex').slice(0, 12),
    );
  });

  test('is hashed as OWASP recommends, whichever way its characters are composed', async () => {
    expect(await verifyPassword(goodPassword, null)).toBe(false);
    const stored = await hashPassword('Å composed'.normalize('NFC').padEnd(12, '!'));
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await verifyPassword('Å composed'.normalize('NFD').padEnd(13, '!'), stored)).toBe(true);
    expect(await verifyPassword('another', stored)).toBe(false);
  });

  test('is locked for one address after five wrong ones, on every replica, whether the user exists or not', async () => {
    const { login } = await somebody();
    await using replica = await createTestApp({ database: app.database });
    for (const name of [login, 'nobody-else']) {
      const answers: number[] = [];
      for (let n = 0; n < 7; n++) {
        const browser = new PageBrowser(n % 2 === 0 ? app : replica);
        const answer = await browser.signIn(name, 'wrong password');
        answers.push(answer.status);
        if (answer.status === 429) {
          expect(Number(answer.headers['retry-after'])).toBeGreaterThan(600);
          expect(answer.text).toContain('Too many attempts to sign in');
        }
      }
      expect(answers).toEqual([401, 401, 401, 401, 401, 429, 429]);
    }
    // The right one does not help while it is locked.
    expect((await new PageBrowser(app).signIn(login)).status).toBe(429);
    await query(app, 'update sign_in_attempts set expire = 1');
    expect((await new PageBrowser(app).signIn(login)).status).toBe(303);
    await deleteEndedSignIns(app.context);
  });

  test('attempts made at once are all counted', async () => {
    const { login } = await somebody();
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => new PageBrowser(app).signIn(login, 'wrong one')),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(7);
    await query(app, 'delete from sign_in_attempts');
  });

  test('a change of it ends all sessions but that of the change', async () => {
    const { browser, login } = await signedIn();
    const other = new PageBrowser(app);
    await other.signIn(login);
    const next = 'another long password';
    const change = (present: string, wanted: string) => browser.post('/account/password', { present, next: wanted });
    const refused = await change('wrong password', next);
    expect(refused.status).toBe(401);
    // On the page of the form, which is there to try again.
    expect(refused.text).toMatch(/role="alert">The current password is wrong<[\s\S]*action="\/account\/password"/);
    // Somebody whose session has ended returns to the page whose form was sent.
    const headers = { referer: 'http://localhost:9090/cli-login?cliSessionPort=1' };
    const ended = await new PageBrowser(app).post('/cli-login', {}, headers);
    expect(ended.status).toBe(401);
    expect(ended.text).toContain('href="/sign-in?next=%2Fcli-login%3FcliSessionPort%3D1"');
    // A refused form has left the account page at its own address, where a browser finds nothing after the sign-in.
    const refusedForm = { referer: 'http://localhost:9090/account/password' };
    const endedThere = await new PageBrowser(app).post('/account/leave', {}, refusedForm);
    expect(endedThere.status).toBe(401);
    expect(endedThere.text).toContain('href="/sign-in?next=%2Faccount"');
    expect((await change(goodPassword, 'short')).status).toBe(400);
    expect((await change(goodPassword, next)).status).toBe(303);
    expect(await browser.isSignedIn()).toBe(true);
    expect(await other.isSignedIn()).toBe(false);
    expect((await other.signIn(login)).status).toBe(401);
    expect((await other.signIn(login, next)).status).toBe(303);
  });

  test('a sign-in with the password from before a change begins no session', async () => {
    const { login, userId } = await somebody();
    const begun = new PageBrowser(app);
    const { Client } = (await import('pg')).default;
    const client = new Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    try {
      // The change has begun, but is committed only after the sign-in has compared the password.
      await client.query('begin');
      await client.query(`update user_passwords set password_hash = '$argon2id$other' where user_id = $1`, [userId]);
      const answer = begun.signIn(login);
      const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await until(async () => (await query(app, waits)).length > 0, 'the sign-in has compared the password');
      await client.query('commit');
      expect((await answer).status).toBe(401);
    } finally {
      await client.end();
    }
    expect(await query(app, 'select 1 from sessions where user_id = $1', [userId])).toEqual([]);
  });

  test('is set by an operator, who reads it from standard input', async () => {
    const { browser, login } = await signedIn();
    expect(await withInput('short\n', () => admin('user', 'set-password', login))).toBe(1);
    expect(await browser.isSignedIn()).toBe(true);
    expect(await withInput('break the glass\n', () => admin('user', 'set-password', login))).toBe(0);
    expect(await browser.isSignedIn()).toBe(false);
    expect((await browser.signIn(login, 'break the glass')).status).toBe(303);
    const events = await listPersonalEvents(app, login);
    expect(events.filter(({ action }) => action === 'password.set')).toMatchObject([{ object: login }]);
    expect(JSON.stringify(events)).not.toContain('break the glass');
    expect(await admin('user', 'sign-out', login)).toBe(0);
    expect(await browser.isSignedIn()).toBe(false);
    expect(await admin('user', 'remove-password', login)).toBe(0);
    expect((await browser.signIn(login, 'break the glass')).status).toBe(401);
  });

  test('that an operator resets ends sessions, and the reset says what else signs in, and removes it', async () => {
    const { browser, login, userId } = await signedIn();
    await query(
      app,
      `insert into passkeys (credential_id, user_id, public_key, counter, transports, name)
       select $1 || n, $2, '', 0, '', 'key ' || n from generate_series(1, 2) n`,
      [login, userId],
    );
    const passkeys = async () => (await query(app, 'select 1 from passkeys where user_id = $1', [userId])).length;
    const reset = (...options: string[]) =>
      withInput('break the glass\n', () => admin('user', 'set-password', login, ...options));
    expect(await reset()).toBe(0);
    expect(await browser.isSignedIn()).toBe(false);
    expect(printed).toContain('1 session ended');
    expect(printed).toContain('2 passkeys can still sign in ("key 1", "key 2"); --remove-passkeys removes them');
    expect(printed).toContain(`holdfast admin revoke --user ${login}`);
    expect(await passkeys()).toBe(2);
    expect((await browser.signIn(login, 'break the glass')).status).toBe(303);
    expect(await reset('--remove-passkeys')).toBe(0);
    expect(printed).toContain('2 passkeys removed');
    expect([await browser.isSignedIn(), await passkeys()]).toEqual([false, 0]);
    await browser.signIn(login, 'break the glass');
    expect(await admin('user', 'remove-password', login, '--remove-passkeys')).toBe(0);
    expect(printed).toMatch(/no longer has a password\.\n1 session ended\.\n0 passkeys removed/);
  });

  test.each([['set-password'], ['remove-password']])(
    'that an operator resets (%s) ends the session that a removed passkey begins meanwhile',
    async (command) => {
      const { login, userId } = await signedIn();
      await query(
        app,
        `insert into passkeys (credential_id, user_id, public_key, counter, name) values ($1, $2, '', 0, 'key')`,
        [`held ${login}`, userId],
      );
      const signIn = new pg.Client({ connectionString: app.database.ownerUrl });
      await signIn.connect();
      await signIn.query('begin');
      await signIn.query(`update passkeys set counter = 1 where user_id = '${userId}'`);
      await signIn.query(
        `insert into sessions (user_id, session_hash, method) values ('${userId}', sha256('${login}'), 'passkey')`,
      );
      let isDone = false;
      const reset = withInput('break the glass\n', () => admin('user', command, login, '--remove-passkeys')).finally(
        () => {
          isDone = true;
        },
      );
      const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await until(async () => isDone || (await query(app, waiting)).length > 0, 'the reset waits');
      await signIn.query('commit');
      await signIn.end();
      expect(await reset).toBe(0);
      expect(await query(app, 'select 1 from sessions where user_id = $1', [userId])).toEqual([]);
    },
  );
});

describe('the pages', () => {
  test('allow no inline script, are escaped, and lead only to this server', async () => {
    const browser = new PageBrowser(app);
    const { headers, status, text } = await browser.get('/sign-in?next=https%3A%2F%2Fevil.example');
    expect(status).toBe(200);
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(text).not.toMatch(/<script>|<style|\son\w+=/);
    expect(text).toContain('name="next" value="/"');
    const { login } = await somebody();
    for (const next of ['//evil.example', '/\\evil.example', 'javascript:alert(1)', '/\t/evil.example']) {
      const answer = await browser.post('/sign-in', { login, password: goodPassword, next });
      expect(answer.headers['location']).toBe('/');
      browser.cookies.clear();
    }
    const hostile = await browser.signIn(`"><script>alert(1)</script>`, 'x');
    expect(hostile.text).not.toContain('<script>alert');
    const paths = [...text.matchAll(/<(?:link|script)[^>]*(?:href|src)="([^"]+)"/g)].map(([, path = '']) => path);
    expect(paths.map((path) => path.replace(/\?v=[0-9a-f]{12}$/, ''))).toEqual([
      '/assets/sign-in.css',
      '/assets/sign-in.js',
    ]);
    for (const path of paths) {
      const asset = await browser.get(path);
      expect([asset.status, asset.headers['x-content-type-options']]).toEqual([200, 'nosniff']);
    }
  });

  test('send a user who is not signed in to the sign-in page, and back', async () => {
    const { login } = await somebody();
    const browser = new PageBrowser(app);
    const asked = await browser.get('/account');
    expect([asked.status, asked.headers['location']]).toEqual([303, '/sign-in?next=%2Faccount']);
    expect((await app.call('GET', '/account')).status).toBe(401);
    const answer = await browser.post('/sign-in', { login, password: goodPassword, next: '/cli-login?a=b' });
    expect(answer.headers['location']).toBe('/cli-login?a=b');
    const already = await browser.get('/sign-in?next=%2Fwelcome%2Fcli');
    expect([already.status, already.text.includes(`<strong>${login}</strong>. <a href="/welcome/cli">`)]).toEqual([
      200,
      true,
    ]);
  });
});
