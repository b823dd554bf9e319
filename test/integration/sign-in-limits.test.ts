import { describe, expect, test } from '@jest/globals';
import { goodPassword, PageBrowser, setPassword } from '../support/browser.ts';
import { person } from '../support/grants.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp({ settings: { HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' } });

async function somebody(): Promise<string> {
  const { login } = await person(app, 'acme', 'admin');
  await setPassword(app, login);
  return login;
}

/** A browser that nobody has signed in with, at an address. */
function browserAt(address: string): PageBrowser {
  const browser = new PageBrowser(app);
  browser.headers = { 'x-forwarded-for': address };
  return browser;
}

/** Five wrong passwords from each of 21 addresses, all at once. Ends the calls that wait when the returned function is called. */
function attack(login: string): { readonly answers: Promise<PromiseSettledResult<number>[]>; end(): void } {
  const controller = new AbortController();
  const calls = Array.from({ length: 105 }, async (_, n) => {
    const browser = browserAt(`203.0.113.${n % 21}`);
    return (await browser.signIn(login, `wrong password ${n}`, controller.signal)).status;
  });
  return { answers: Promise.allSettled(calls), end: () => controller.abort() };
}

describe('a hundred wrong passwords from 21 addresses', () => {
  test('hold nobody up who has signed in with this browser before, from wherever', async () => {
    const login = await somebody();
    const known = browserAt('198.51.100.1');
    expect((await known.signIn(login)).status).toBe(303);
    await known.post('/sign-out');
    const { answers, end } = attack(login);
    known.headers = { 'x-forwarded-for': '203.0.113.5' };
    expect((await known.signIn(login)).status).toBe(303);
    end();
    await answers;
    expect((await known.signIn(login)).status).toBe(303);
  });

  test('slow down a browser that is new, and do not lock it out', async () => {
    const login = await somebody();
    const { answers, end } = attack(login);
    const answer = await browserAt('198.51.100.2').signIn(login);
    expect(answer.status).toBe(303);
    end();
    await answers;
  });
});
