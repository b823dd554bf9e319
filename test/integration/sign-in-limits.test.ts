import { createHash, createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { KnownBrowsers } from '../../src/api/identity/sign-in/known-browsers.ts';
import { createSignInPaceRepository } from '../../src/shared/identity/sign-in-pace-repository.ts';
import { EncryptedSecrets } from '../../src/shared/secrets/encrypted-secrets.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { masterKeys, testApp } from '../support/test-app.ts';

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

function hashOf(login: string): string {
  return createHash('sha256').update(login.toLowerCase()).digest('base64url');
}

/** Sets how far the attempts of a login have gone, and when the next one may be made. */
async function slowDown(login: string, level: number, seconds: number): Promise<void> {
  await query(
    app,
    `insert into sign_in_paces (login_hash, level, at, next_at)
     values ($1, $2, clock_timestamp(), clock_timestamp() + make_interval(secs => $3))
     on conflict (login_hash) do update set level = excluded.level, at = excluded.at, next_at = excluded.next_at`,
    [hashOf(login), level, seconds],
  );
}

/** One wrong password from each of nine addresses. */
function guess(login: string): Promise<number[]> {
  const calls = Array.from({ length: 9 }, async (_, n) => {
    return (await browserAt(`203.0.113.${n}`).signIn(login, `wrong password ${n}`)).status;
  });
  return Promise.all(calls);
}

describe('wrong passwords from many addresses', () => {
  test('do not delay users who have signed in with this browser before, even from the same address', async () => {
    const login = await somebody();
    const known = browserAt('203.0.113.5');
    expect((await known.signIn(login)).status).toBe(303);
    await known.post('/sign-out');
    await slowDown(login, 40, 3600);
    const other = await browserAt('203.0.113.5').signIn(login);
    expect([other.status, Number(other.headers['retry-after']) > 3000]).toEqual([429, true]);
    expect((await known.signIn(login)).status).toBe(303);
    // Its own wrong ones count for it alone.
    await known.post('/sign-out');
    for (let n = 0; n < 5; n++) expect((await known.signIn(login, 'wrong one')).status).toBe(401);
    expect((await known.signIn(login)).status).toBe(429);
    await slowDown(login, 0, 0);
    expect((await browserAt('198.51.100.1').signIn(login)).status).toBe(303);
  });

  test('are limited, too, if somebody knows all that the database has', async () => {
    const login = await somebody();
    const [row] = await query<{ key: string }>(
      app,
      `select encode(sha256(convert_to('known browsers', 'UTF8') || url_key), 'hex') as key from installation`,
    );
    const statuses = new Set<number>();
    for (let n = 0; n < 8; n++) {
      const forger = browserAt('203.0.113.200');
      const [since, id] = [Math.floor(Date.now() / 1000).toString(36), randomBytes(16).toString('base64url')];
      const signature = createHmac('sha256', Buffer.from(row?.key as string, 'hex'))
        .update(`${since}\n${id}\n${login.toLowerCase()}`)
        .digest('base64url');
      forger.cookies.set('holdfast-browser', `${since}.${id}.${signature}`);
      statuses.add((await forger.signIn(login, 'wrong one')).status);
    }
    expect([...statuses]).toEqual([401, 429]);
  });

  test('a browser stays known while the master keys are replaced', async () => {
    const login = await somebody();
    const known = browserAt('203.0.113.6');
    await known.signIn(login);
    const marks = known.cookies.get('holdfast-browser') as string;
    const added = `new:${randomBytes(32).toString('base64')}`;
    const browsersOf = (keys: string) => new KnownBrowsers(new EncryptedSecrets(keyRingOf(keys)));
    const idFor = (keys: string, marks: string) => browsersOf(keys).idFor(app.context.db, login, marks);
    const id = await idFor(masterKeys, marks);
    expect(id).not.toBeNull();
    expect(await idFor(`${added},${masterKeys}`, marks)).toBe(id);
    expect(await idFor(added, marks)).toBeNull();
    const renewed = await browsersOf(`${added},${masterKeys}`).remember(app.context.db, login, marks);
    expect(await idFor(added, renewed)).toBe(id);
    expect(await idFor(masterKeys, renewed)).toBeNull();
  });

  test('a server without master keys knows browsers, too, which one with keys does not', async () => {
    const { db } = app.context;
    const login = await somebody();
    const keyless = new KnownBrowsers(new EncryptedSecrets(null));
    const marks = await keyless.remember(db, login, null);
    expect(await new KnownBrowsers(new EncryptedSecrets(null)).idFor(db, login, marks)).not.toBeNull();
    expect(await new KnownBrowsers(app.context.secrets).idFor(db, login, marks)).toBeNull();
  });

  test('a new browser gets the next attempt before addresses that have guessed before', async () => {
    const login = await somebody();
    expect(new Set(await guess(login))).toEqual(new Set([401]));
    expect(new Set(await guess(login))).toEqual(new Set([401]));
    await slowDown(login, 20, 6);
    const guesses = guess(login);
    expect((await browserAt('198.51.100.2').signIn(login)).status).toBe(303);
    // All the others are still waiting for their turn.
    const [pace] = await query<{ level: number }>(app, 'select level from sign_in_paces where login_hash = $1', [
      hashOf(login),
    ]);
    expect(pace?.level).toBeLessThan(21);
    await slowDown(login, 0, 0);
    expect(new Set(await guesses)).toEqual(new Set([401]));
  });

  test('are tried ever more slowly: twenty at once, and then up to 30 s apart', async () => {
    for (const login of ['one-login', 'another-login']) {
      const paces = createSignInPaceRepository(app.context.db);
      const between: number[] = [];
      for (let n = 0; n < 28; n++) {
        expect(await paces.take(login)).toBe(0);
        const [row] = await query<{ seconds: number }>(
          app,
          `update sign_in_paces p set next_at = p.at from sign_in_paces b where p.login_hash = $1 and b.login_hash = $1
           returning extract(epoch from b.next_at - b.at)::float as seconds`,
          [login],
        );
        between.push(Math.round(row?.seconds ?? -1));
      }
      expect(between).toEqual([...Array<number>(20).fill(0), 1, 2, 4, 8, 16, 30, 30, 30]);
    }
  });
});
