import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setPassword, webPassword } from '../../testkit/admin-command.ts';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { type OwnHoldfastServer, startOwnHoldfast } from '../../testkit/holdfast-server.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';

const folder = path.join(import.meta.dirname, '../../deploy');
const config = path.join(folder, 'proxy/Caddyfile');

let caddy: string;
beforeAll(async () => {
  ({ caddy } = await ensureToolchain({ only: ['caddy'] }));
});

describe('the configuration of the proxy is valid', () => {
  test.each(['', 'https://holdfast.example.com', 'https://localhost', 'http://localhost:9090'])(
    'for the address %j',
    async (address) => {
      const home = await mkdtemp(path.join(tmpdir(), 'holdfast-caddy-'));
      const env = { HOME: home, ...(address === '' ? {} : { PROXY_ADDRESS: address }) };
      for (const file of [config, path.join(folder, 'web/Caddyfile')]) {
        const args = ['validate', '--adapter', 'caddyfile', '--config', file];
        const { status, stderr } = spawnSync(caddy, args, { env, encoding: 'utf8' });
        expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
      }
      await rm(home, { recursive: true });
    },
  );
});

describe('the proxy with TLS in front of one server', () => {
  let home: string;
  let server: OwnHoldfastServer;
  let proxy: ClusterProcess;
  let url: string;
  let plainPort: number;
  const authority = (): string => path.join(home, 'caddy/pki/authorities/local/root.crt');

  beforeAll(async () => {
    home = await mkdtemp(path.join(tmpdir(), 'holdfast-tls-proxy-'));
    const [port = 0, httpPort = 0] = await findFixedPorts(2);
    plainPort = httpPort;
    url = `https://localhost:${port}`;
    server = await startOwnHoldfast(
      { HOLDFAST_PUBLIC_URL: url, HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' },
      { prepared: true },
    );
    const upstream = new URL(server.url).host;
    proxy = new ClusterProcess(
      {
        name: 'proxy',
        file: caddy,
        args: ['run', '--adapter', 'caddyfile', '--config', config],
        env: {
          HOME: home,
          XDG_DATA_HOME: home,
          // A name like a public one, with a certificate by the same authority.
          PROXY_ADDRESS: `${url}, https://holdfast.local:${port}`,
          PROXY_BIND: '127.0.0.1',
          PROXY_HTTP_PORT: String(httpPort),
          PROXY_API_UPSTREAMS: upstream,
          PROXY_WEB_UPSTREAM: upstream,
        },
        isReady: async () => existsSync(authority()) && (await call('GET', '/healthz')).status === 200,
      },
      () => {},
    );
    await proxy.start();
  });
  afterAll(async () => {
    await proxy?.stop();
    await server?.[Symbol.asyncDispose]();
    await rm(home, { recursive: true, force: true });
  });

  interface Answer {
    readonly status: number;
    readonly cookies: readonly string[];
    readonly strictTransport: string | undefined;
    readonly body: string;
  }

  /** A call that trusts only the authority of the proxy. */
  function call(
    method: string,
    at: string,
    headers: Record<string, string> = {},
    body: string | Buffer = '',
    name = 'localhost',
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { port } = new URL(url);
    const where = { host: '127.0.0.1', port, path: at, servername: name, ca: readFileSync(authority()) };
    request({ ...where, method, headers: { host: `${name}:${port}`, ...headers } }, (response) => {
      text(response).then(
        (received) =>
          resolve({
            status: response.statusCode ?? 0,
            cookies: response.headers['set-cookie'] ?? [],
            strictTransport: response.headers['strict-transport-security'],
            body: received,
          }),
        reject,
      );
    })
      .on('error', reject)
      .end(body);
    return promise;
  }

  test('answers calls of the CLI and serves the page', async () => {
    const headers = { authorization: `token ${server.token}`, accept: 'application/vnd.pulumi+9' };
    const user = await call('GET', '/api/user', headers);
    expect(user.status).toBe(200);
    expect(JSON.parse(user.body)).toMatchObject({ githubLogin: 'ada' });
    expect([200, 503]).toContain((await call('GET', '/', { accept: 'text/html' })).status);
  });

  test('keeps people signed in by cookies that leave the browser over TLS only', async () => {
    await setPassword({ dataDir: server.dataDir }, 'ada');
    const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html', origin: url };
    const fields = new URLSearchParams({ login: 'ada', password: webPassword }).toString();
    const { status, cookies } = await call('POST', '/sign-in', form, fields);
    expect(status).toBe(303);
    expect(cookies.length).toBeGreaterThan(0);
    for (const cookie of cookies) expect(cookie).toMatch(/^__Host-.*; Secure/);
  });

  test('names the public URL in answers: the CLI uploads a policy pack there', async () => {
    const headers = {
      authorization: `token ${server.token}`,
      accept: 'application/vnd.pulumi+9',
      'content-type': 'application/json',
    };
    const pack = JSON.stringify({ name: 'pack', displayName: 'Pack', versionTag: '1.0.0', policies: [] });
    const { body, status } = await call('POST', '/api/orgs/dev-org/policypacks', headers, pack);
    expect(status).toBe(200);
    const { uploadURI } = JSON.parse(body) as { uploadURI: string };
    expect(new URL(uploadURI).origin).toBe(url);
    const { pathname, search } = new URL(uploadURI);
    const type = { 'content-type': 'application/octet-stream' };
    const archive = gzipSync('the files of a policy pack');
    expect((await call('PUT', `${pathname}${search}`, type, archive)).status).toBe(204);
  });

  test('makes browsers use TLS for a name of its own, and not for localhost, which others use too', async () => {
    for (const at of ['/healthz', '/', '/metrics']) {
      const named = await call('GET', at, {}, '', 'holdfast.local');
      expect({ at, strict: named.strictTransport }).toEqual({ at, strict: 'max-age=31536000' });
      expect((await call('GET', at)).strictTransport).toBeUndefined();
    }
  });

  test('sends plain HTTP to TLS', async () => {
    const answer = await fetch(`http://localhost:${plainPort}/account`, { redirect: 'manual' });
    expect(answer.status).toBe(308);
    expect(answer.headers.get('location')).toMatch(/^https:\/\/localhost.*\/account$/);
  });
});
