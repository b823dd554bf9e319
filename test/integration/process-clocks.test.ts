import { afterEach, expect, test } from '@jest/globals';
import { createAttemptRepository } from '../../src/shared/identity/attempt-repository.ts';
import { endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';
import { SoftwareAuthenticator } from '../support/authenticator.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete, expire, saveState } from '../support/update-calls.ts';

const app = testApp({
  settings: { HOLDFAST_TRUSTED_PROXIES: '127.0.0.1', HOLDFAST_PUBLIC_URL: 'http://localhost:9090' },
});
const hour = 3_600_000;
const RealDate = Date;
const realNow = Date.now;

/** Sets the clock of this process ahead of that of Postgres, or behind it. */
function shiftClock(ms: number): void {
  Date.now = () => realNow() + ms;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, values: unknown[]) => Reflect.construct(target, values.length === 0 ? [Date.now()] : values),
  });
}

afterEach(() => {
  globalThis.Date = RealDate;
  Date.now = realNow;
});

test.each([hour, -hour])('a lease lasts as long as Postgres says, with a clock that is off by %i ms', async (offMs) => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  shiftClock(offMs);
  await endExpiredUpdates(app.context);
  await ok(saveState(app, update, 2));
  const renewal = { auth: update.lease, body: { token: update.lease.split(' ')[1], duration: 300 } };
  await ok(app.call('POST', `${update.path}/renew_lease`, renewal));
  await expire(app, update.id);
  expect((await saveState(app, update, 3)).status).toBe(403);
  expect((await complete(app, update)).status).toBe(403);
  await ok(complete(app, await startUpdate(app, stack)));
});

test.each([hour, -hour])(
  'tokens and sessions end when Postgres says, with a clock that is off by %i ms',
  async (offMs) => {
    const { login, userId } = await person(app, 'clocks', 'member');
    await setPassword(app, login);
    const auth = `token ${await app.createUser('clocks', 'member')}`;
    const browser = new PageBrowser(app);
    const authenticator = new SoftwareAuthenticator();
    const addPasskey = async (): Promise<number> => {
      const question = await browser.postJson('/account/passkeys/options');
      if (question.status !== 200) return question.status;
      const response = authenticator.create(question.json);
      return (await browser.postJson('/account/passkeys', { name: 'key', response })).status;
    };
    shiftClock(offMs);
    expect((await browser.signIn(login)).status).toBe(303);
    expect(await browser.isSignedIn()).toBe(true);
    expect(await addPasskey()).toBe(200);
    await query(app, `update sessions set created_at = now() - interval '16 minutes' where user_id = $1`, [userId]);
    expect(await addPasskey()).toBe(403);
    const ends = (seconds: number) =>
      query(app, `update api_tokens set expires_at = now() + make_interval(secs => $1) where not is_session`, [
        seconds,
      ]);
    await ends(60);
    await ok(app.call('GET', '/api/user', { auth }));
    await ends(-1);
    expect((await app.call('GET', '/api/user', { auth })).status).toBe(401);
  },
);

test('replicas whose clocks differ count wrong passwords together', async () => {
  const { login } = await person(app, 'clocks', 'member');
  await setPassword(app, login);
  const guess = () => {
    const browser = new PageBrowser(app);
    browser.headers = { 'x-forwarded-for': '203.0.113.77' };
    return browser.signIn(login, 'wrong password');
  };
  for (let attempt = 0; attempt < 5; attempt++) expect((await guess()).status).toBe(401);
  for (const offMs of [hour, -hour, 0]) {
    shiftClock(offMs);
    await createAttemptRepository(app.context.db).deleteOld();
    const { headers, status } = await guess();
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(15 * 60);
  }
});
