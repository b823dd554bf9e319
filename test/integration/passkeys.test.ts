import { expect, test } from '@jest/globals';
import { listPersonalEvents } from '../support/audit.ts';
import { SoftwareAuthenticator } from '../support/authenticator.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { testApp } from '../support/test-app.ts';

// Passkeys need a host name.
const app = testApp({ settings: { HOLDFAST_PUBLIC_URL: 'http://localhost:9090' } });

async function signedIn(organization: string) {
  const { login, userId } = await person(app, organization, 'member');
  await setPassword(app, login);
  const browser = new PageBrowser(app);
  await browser.signIn(login);
  return { browser, login, userId };
}

async function add(browser: PageBrowser, authenticator: SoftwareAuthenticator) {
  const question = await browser.postJson('/account/passkeys/options');
  if (question.status !== 200) return question;
  const response = authenticator.create(question.json);
  return browser.postJson('/account/passkeys', { name: 'key', response });
}

async function signIn(authenticator: SoftwareAuthenticator, browser = new PageBrowser(app)) {
  const question = await browser.postJson('/sign-in/passkey/options');
  const response = authenticator.get(question.json);
  const answer = await browser.postJson('/sign-in/passkey', { response, next: '/cli-login?x=1' });
  return { answer, browser, response };
}

test('a person adds a passkey, signs in with it, and removes it', async () => {
  const { browser, login } = await signedIn('passkeys');
  const authenticator = new SoftwareAuthenticator();
  expect((await add(browser, authenticator)).status).toBe(200);
  const there = await signIn(authenticator);
  expect([there.answer.status, there.answer.json]).toEqual([200, { next: '/cli-login?x=1' }]);
  expect((await there.browser.get('/account')).text).toContain(login);
  const removed = await there.browser.post('/account/passkeys/remove', { passkey: authenticator.id });
  expect(removed.status).toBe(303);
  expect((await signIn(authenticator)).answer.status).toBe(401);
  const events = (await listPersonalEvents(app, login)).map(({ action, sign_in }) => `${action} ${sign_in}`);
  expect(events).toEqual([
    'session.begin password',
    'passkey.add session',
    'session.begin passkey',
    'passkey.remove session',
  ]);
});

test('its removal asks first, and says when it is the last way to sign in', async () => {
  const { browser, login } = await signedIn('passkeys-last');
  const authenticator = new SoftwareAuthenticator();
  await add(browser, authenticator);
  const pageOf = async (of: PageBrowser) => (await of.get('/account')).text;
  const question = /<details><summary[^>]*>Remove…<\/summary>[\s\S]*action="\/account\/passkeys\/remove"/;
  const last = 'you then need a sign-in link of an operator';
  expect(await pageOf(browser)).toMatch(question);
  expect(await pageOf(browser)).not.toContain(last);
  await query(app, 'delete from user_passwords where user_id = (select id from users where login = $1)', [login]);
  expect(await pageOf((await signIn(authenticator)).browser)).toContain(last);
});

test('an answer counts once, for the browser that was asked, from this site, of a verified user, of no copy', async () => {
  const { browser, login } = await signedIn('passkeys-strict');
  const authenticator = new SoftwareAuthenticator();
  await add(browser, authenticator);
  const first = await signIn(authenticator);
  expect(first.answer.status).toBe(200);
  const again = new PageBrowser(app);
  expect((await again.postJson('/sign-in/passkey', { response: first.response })).status).toBe(401);
  await again.postJson('/sign-in/passkey/options');
  expect((await again.postJson('/sign-in/passkey', { response: first.response })).status).toBe(401);
  authenticator.origin = 'https://evil.example';
  expect((await signIn(authenticator)).answer.status).toBe(401);
  authenticator.origin = 'http://localhost:9090';
  authenticator.isVerified = false;
  expect((await signIn(authenticator)).answer.status).toBe(401);
  authenticator.isVerified = true;
  const { counter } = authenticator;
  expect((await signIn(authenticator)).answer.status).toBe(200);
  authenticator.counter = counter - 1;
  expect((await signIn(authenticator)).answer.status).toBe(401);
  authenticator.counter = counter + 10;
  await query(app, 'update users set deactivated_at = now() where login = $1', [login]);
  expect((await signIn(authenticator)).answer.status).toBe(401);
  // Several within seconds are one event.
  const refused = (await listPersonalEvents(app, login)).filter(({ outcome }) => outcome === 'refused');
  expect(refused).toMatchObject([{ action: 'session.begin', object: login, details: { method: 'passkey' } }]);
});

test('an answer for another site, another user, or a question that is too old does not count', async () => {
  const { browser } = await signedIn('passkeys-others');
  const other = await signedIn('passkeys-others');
  const [authenticator, others] = [new SoftwareAuthenticator(), new SoftwareAuthenticator()];
  expect((await add(browser, authenticator)).status).toBe(200);
  expect((await add(other.browser, others)).status).toBe(200);
  const answerTo = async (change: (question: object) => object, expire = false) => {
    const visitor = new PageBrowser(app);
    const question = await visitor.postJson('/sign-in/passkey/options');
    if (expire) await query(app, `update sign_in_flows set expires_at = now() - interval '1 second'`);
    const response = authenticator.get(change(question.json) as { challenge: string });
    return (await visitor.postJson('/sign-in/passkey', { response })).status;
  };
  const same = (question: object) => question;
  expect(await answerTo(same)).toBe(200);
  expect(await answerTo((question) => ({ ...question, rpId: 'evil.example' }))).toBe(401);
  expect(await answerTo((question) => ({ ...question, challenge: 'another' }))).toBe(401);
  expect(await answerTo(same, true)).toBe(401);
  const own = authenticator.userHandle;
  authenticator.userHandle = others.userHandle;
  expect(await answerTo(same)).toBe(401);
  authenticator.userHandle = own;
  expect(await answerTo(same)).toBe(200);
});

test('is added soon after a sign-in only, by the session that began, and belongs to one user', async () => {
  const { browser, userId } = await signedIn('passkeys-add');
  const other = await signedIn('passkeys-add');
  const authenticator = new SoftwareAuthenticator();
  expect((await add(browser, authenticator)).status).toBe(200);
  expect((await add(other.browser, authenticator)).status).toBe(409);
  const question = await other.browser.postJson('/account/passkeys/options');
  browser.cookies.set('holdfast-flow', other.browser.cookies.get('holdfast-flow') as string);
  const response = new SoftwareAuthenticator().create(question.json);
  expect((await browser.postJson('/account/passkeys', { name: 'x', response })).status).toBe(403);
  const stranger = await other.browser.post('/account/passkeys/remove', { passkey: authenticator.id });
  expect(stranger.status).toBe(404);
  await query(app, `update sessions set created_at = now() - interval '16 minutes' where user_id = $1`, [userId]);
  expect((await add(browser, new SoftwareAuthenticator())).status).toBe(403);
  const cross = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
  expect((await browser.post('/account/passkeys/options', {}, cross)).status).toBe(403);
});
