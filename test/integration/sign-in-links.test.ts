import { describe, expect, jest, test } from '@jest/globals';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { deleteEndedSignIns } from '../../src/workers/identity/delete-sign-ins.ts';
import { listPersonalEvents } from '../support/audit.ts';
import { goodPassword, PageBrowser } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

async function admin(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let stdout = '';
  let stderr = '';
  const log = jest.spyOn(console, 'log').mockImplementation((line) => {
    stdout += `${line}\n`;
  });
  const error = jest.spyOn(console, 'error').mockImplementation((line) => {
    stderr += `${line}\n`;
  });
  try {
    const code = await runCommandLine(['admin', ...args], () => ({ ...app.context.config, logLevel: 'silent' }));
    return { code: code ?? -1, stdout, stderr };
  } finally {
    log.mockRestore();
    error.mockRestore();
  }
}

async function somebody(): Promise<string> {
  return (await person(app, `org-${Math.random().toString(36).slice(2, 8)}`, 'member')).login;
}

/** The secret of a new link. */
async function linkOf(login: string): Promise<string> {
  const { code, stdout } = await admin('user', 'sign-in-link', login);
  expect(code).toBe(0);
  return /\/sign-in\/link#(hfl-\w+)$/m.exec(stdout)?.[1] as string;
}

async function open(link: string) {
  const browser = new PageBrowser(app);
  return { browser, answer: await browser.post('/sign-in/link', { link }) };
}

describe('a sign-in link', () => {
  test('signs its user in once, and is recorded without its secret', async () => {
    const login = await somebody();
    const link = await linkOf(login);
    const stored = JSON.stringify(await query(app, `select encode(link_hash, 'escape') from sign_in_links`));
    expect(stored).not.toContain(link.slice(4, 20));
    const { answer, browser } = await open(link);
    expect([answer.status, answer.headers['location']]).toEqual([303, '/account']);
    expect(await browser.isSignedIn()).toBe(true);
    const again = await open(link);
    expect([again.answer.status, await again.browser.isSignedIn()]).toEqual([401, false]);
    expect(again.answer.text).toContain('has been used or has expired');
    const events = await listPersonalEvents(app, login);
    expect(events.map(({ action, sign_in: by }) => [action, by])).toEqual([
      ['sign-in-link.create', 'system-user'],
      ['session.begin', 'link'],
    ]);
    expect(JSON.stringify(events)).not.toContain(link.slice(4, 20));
    const refused = (await listPersonalEvents(app, 'unknown')).filter(({ outcome }) => outcome === 'refused');
    expect(refused).toMatchObject([{ action: 'session.begin', details: { method: 'link' } }]);
  });

  test('lets one of several attempts at the same time in', async () => {
    const link = await linkOf(await somebody());
    const answers = await Promise.all(Array.from({ length: 5 }, () => open(link)));
    expect(answers.map(({ answer }) => answer.status).sort()).toEqual([303, 401, 401, 401, 401]);
  });

  test.each(['', 'hfl-', `hfl-${'0'.repeat(49)}`, 'x'.repeat(100), "' or 1=1"])(
    'is refused if it is %j',
    async (link) => {
      const { answer, browser } = await open(link);
      expect([answer.status, await browser.isSignedIn()]).toEqual([401, false]);
    },
  );

  test('is refused from another site', async () => {
    const link = await linkOf(await somebody());
    const browser = new PageBrowser(app);
    const other = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    expect((await browser.post('/sign-in/link', { link }, other)).status).toBe(403);
    expect((await open(link)).answer.status).toBe(303);
  });

  test.each([
    [
      'its time is over',
      (login: string) =>
        query(
          app,
          `update sign_in_links l set expires_at = now() from users u where u.id = l.user_id and u.login = $1`,
          [login],
        ),
    ],
    [
      'the user is deactivated',
      (login: string) => query(app, 'update users set deactivated_at = now() where login = $1', [login]),
    ],
    ['all sessions of the user are ended', (login: string) => admin('user', 'sign-out', login)],
    [
      'the password is changed',
      async (login: string) => {
        await query(
          app,
          `insert into user_passwords (user_id, password_hash) select id, 'x' from users where login = $1`,
          [login],
        );
        await query(
          app,
          `update user_passwords p set password_hash = 'y' from users u where u.id = p.user_id and u.login = $1`,
          [login],
        );
      },
    ],
  ])('does not work any more when %s', async (_when, end) => {
    const login = await somebody();
    const link = await linkOf(login);
    await end(login);
    expect((await open(link)).answer.status).toBe(401);
  });

  test('is deleted after its time', async () => {
    const login = await somebody();
    await linkOf(login);
    const count = async () =>
      (await query(app, `select 1 from sign_in_links l join users u on u.id = l.user_id where u.login = $1`, [login]))
        .length;
    await deleteEndedSignIns(app.context);
    expect(await count()).toBe(1);
    await query(app, `update sign_in_links set expires_at = now() - interval '1 second'`);
    await deleteEndedSignIns(app.context);
    expect(await count()).toBe(0);
  });

  test('is not made for an unknown or deactivated user, nor for longer than a week', async () => {
    const login = await somebody();
    expect(await admin('user', 'sign-in-link', login, '--hours', '169')).toMatchObject({
      stdout: '',
      stderr: expect.stringContaining('from 1 to 168'),
    });
    await query(app, 'update users set deactivated_at = now() where login = $1', [login]);
    for (const [who, reason] of [
      [login, 'deactivated'],
      ['nobody-here', 'nobody-here'],
    ] as const) {
      const { code, stderr, stdout } = await admin('user', 'sign-in-link', who);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(reason);
    }
  });
});

describe('a person who has signed in with a link', () => {
  test('sets the first password, with which the next sign-in works', async () => {
    const login = await somebody();
    const { browser } = await open(await linkOf(login));
    expect((await browser.get('/account')).text).toContain('Choose how to sign in from now on');
    const answer = await browser.post('/account/password', { next: goodPassword });
    expect([answer.status, answer.headers['location']]).toEqual([303, '/']);
    expect((await browser.get('/account')).text).toContain('Change the password');
    expect((await new PageBrowser(app).signIn(login)).status).toBe(303);
    expect((await listPersonalEvents(app, login)).map(({ action }) => action)).toContain('password.set');
  });

  test('ends other sessions and open links with the first password', async () => {
    const login = await somebody();
    const [one, other, unused] = [await linkOf(login), await linkOf(login), await linkOf(login)];
    const stranger = (await open(other)).browser;
    const { browser } = await open(one);
    await browser.post('/account/password', { next: goodPassword });
    expect([await stranger.isSignedIn(), await browser.isSignedIn()]).toEqual([false, true]);
    expect((await open(unused)).answer.status).toBe(401);
  });

  test('needs the current password if there is one, and no session but that of a link gets by without', async () => {
    const login = await somebody();
    const { browser } = await open(await linkOf(login));
    await browser.post('/account/password', { next: goodPassword });
    expect((await browser.post('/account/password', { next: `${goodPassword}!` })).status).toBe(403);
    const later = await open(await linkOf(login));
    expect((await later.browser.get('/account')).text).not.toContain('Choose how to sign in');
    expect((await later.browser.post('/account/password', { next: `${goodPassword}!` })).status).toBe(403);
    expect((await new PageBrowser(app).signIn(login)).status).toBe(303);
  });

  test('gets a refusal of a weak password', async () => {
    const { browser } = await open(await linkOf(await somebody()));
    expect((await browser.post('/account/password', { next: 'short' })).status).toBe(400);
  });
});
