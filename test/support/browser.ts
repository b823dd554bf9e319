import { Readable } from 'node:stream';
import { jest } from '@jest/globals';
import { hashPassword } from '../../src/shared/platform/crypto/password-hash.ts';
import { mintToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { query } from './database.ts';
import type { TestApp, TestResponse } from './test-app.ts';

export const goodPassword = 'correct horse battery';

/** A browser for pages, without scripts: keeps cookies and sends what browsers send with forms. */
export class PageBrowser {
  readonly #app: TestApp;
  readonly cookies = new Map<string, string>();
  headers: Record<string, string> = {};

  constructor(app: TestApp) {
    this.#app = app;
  }

  get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<TestResponse> {
    return this.#call('GET', url, { headers });
  }

  /** Submits a form of a page of ours. */
  post(
    url: string,
    fields: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TestResponse> {
    const own = { origin: 'http://localhost:9090', 'sec-fetch-site': 'same-origin' };
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return this.#call('POST', url, {
      headers: { ...own, ...type, ...headers },
      body: new URLSearchParams(fields).toString(),
    });
  }

  /** Calls what the script of the pages calls. */
  postJson(url: string, body?: object): Promise<TestResponse> {
    return this.#call('POST', url, {
      headers: { origin: 'http://localhost:9090', 'sec-fetch-site': 'same-origin', accept: 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  signIn(login: string, password = goodPassword): Promise<TestResponse> {
    return this.post('/sign-in', { login, password });
  }

  /** Whether somebody is signed in. */
  async isSignedIn(): Promise<boolean> {
    return (await this.get('/account')).status === 200;
  }

  async #call(
    method: string,
    url: string,
    options: { headers: Readonly<Record<string, string>>; body?: string },
  ): Promise<TestResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await this.#app.call(method, url, {
      accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
      headers: {
        host: 'localhost:9090',
        'user-agent': 'TestBrowser/1',
        ...this.headers,
        ...(cookie === '' ? {} : { cookie }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { body: options.body }),
    });
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(String(line)) as unknown as [string, string, string];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }
}

/** The user is signed in without a password. */
export async function browserOf(app: TestApp, login: string): Promise<PageBrowser> {
  const browser = new PageBrowser(app);
  const { hash, token } = mintToken('hfs-');
  await query(
    app,
    `insert into sessions (user_id, session_hash, method) select id, $2, 'password' from users where login = $1`,
    [login, hash],
  );
  browser.cookies.set('holdfast', token);
  return browser;
}

/** Sets the password of a user, without its rules. */
export async function setPassword(app: TestApp, login: string, password = goodPassword): Promise<void> {
  await query(
    app,
    `insert into user_passwords (user_id, password_hash) select id, $2 from users where login = $1
     on conflict (user_id) do update set password_hash = excluded.password_hash`,
    [login, await hashPassword(password)],
  );
}

/** Runs `work` with this text as standard input. */
export async function withInput<T>(text: string, work: () => Promise<T>): Promise<T> {
  const input = Readable.from([text]) as unknown as typeof process.stdin;
  const replaced = jest.spyOn(process, 'stdin', 'get').mockReturnValue(input);
  try {
    return await work();
  } finally {
    replaced.mockRestore();
  }
}
