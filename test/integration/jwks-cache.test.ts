import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { decodeProtectedHeader } from 'jose';
import { JwksCache, type JwksCacheOptions } from '../../src/api/identity/exchange/jwks-cache.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { type AllowList, parseAllowList } from '../../src/shared/platform/outgoing/address-rules.ts';
import type { ResolveHost } from '../../src/shared/platform/outgoing/host-resolver.ts';
import { Outgoing, OutgoingError } from '../../src/shared/platform/outgoing/outgoing.ts';
import { makeKey, TestIssuer } from '../support/test-issuer.ts';

const logger = createLogger({ level: 'silent' }, { write: () => {} });
const limits = { timeoutMs: 60_000, maxBytes: 10_000 };

function allow(text: string): AllowList {
  const parsed = parseAllowList(text);
  if ('wrong' in parsed) throw new Error(parsed.wrong);
  return parsed.list;
}

describe('keys of an issuer', () => {
  const keysOf = (issuer: TestIssuer, more: Partial<JwksCacheOptions> = {}) =>
    new JwksCache({ outgoing: issuer.outgoing(), logger, outageMs: 600_000, ...more });
  const find = async (keys: JwksCache, issuer: TestIssuer, signer = issuer.keys.at(-1)) => {
    const token = await issuer.sign('acme', {}, signer ? { key: signer } : {});
    const [header = '', payload = '', signature = ''] = token.split('.');
    return keys.of(issuer.url)(decodeProtectedHeader(token) as never, { protected: header, payload, signature });
  };

  test('are fetched once for many tokens at once', async () => {
    await using issuer = await TestIssuer.start();
    const keys = keysOf(issuer);
    await Promise.all(Array.from({ length: 20 }, () => find(keys, issuer)));
    expect(issuer.requests).toEqual(['/.well-known/openid-configuration', '/keys']);
  });

  test('are fetched again for a token with a new one, and not for each that names none of them', async () => {
    await using issuer = await TestIssuer.start();
    const eager = keysOf(issuer, { coolDownMs: 0 });
    await find(eager, issuer);
    await issuer.addKey('RS256');
    await find(eager, issuer);
    expect(issuer.requests).toHaveLength(4);

    const keys = keysOf(issuer, { coolDownMs: 3_600_000 });
    const unknown = await makeKey('RS256', 'unknown');
    issuer.requests.length = 0;
    for (let at = 0; at < 10; at++) await expect(find(keys, issuer, unknown)).rejects.toThrow('no applicable key');
    expect(issuer.requests).toHaveLength(2);
    await find(keys, issuer);
  });

  test('bridge an outage for the configured time', async () => {
    await using issuer = await TestIssuer.start();
    const bridged = keysOf(issuer, { freshMs: 0, coolDownMs: 0 });
    const strict = keysOf(issuer, { freshMs: 0, coolDownMs: 0, outageMs: -1 });
    await find(bridged, issuer);
    await expect(find(strict, issuer)).rejects.toMatchObject({ status: 503, code: 'issuer-unavailable' });
    const outage = [503, 404, 200];
    for (const status of outage) {
      issuer.answer = (_request, response) => void response.writeHead(status).end('down');
      await find(bridged, issuer);
      await expect(find(strict, issuer)).rejects.toMatchObject({ status: 503 });
    }
    await issuer.stop();
    await find(bridged, issuer);
  });

  test('that are missing while their issuer cannot be reached are an outage, not a fault of the token', async () => {
    await using issuer = await TestIssuer.start();
    const unknown = await makeKey('RS256', 'unknown');
    const keys = keysOf(issuer, { coolDownMs: 0 });
    await find(keys, issuer);
    issuer.answer = (_request, response) => void response.writeHead(503).end('down');
    await expect(find(keys, issuer, unknown)).rejects.toMatchObject({ status: 503, code: 'issuer-unavailable' });
    await find(keys, issuer);
    issuer.answer = null;
    await expect(find(keys, issuer, unknown)).rejects.toThrow('no applicable key');
  });

  test('stay, however many other issuers cannot be reached', async () => {
    await using issuer = await TestIssuer.start();
    const call = (address: string, request: Parameters<Outgoing['call']>[1]) =>
      address.startsWith(issuer.url)
        ? issuer.outgoing().call(address, request)
        : Promise.reject(new OutgoingError('failed', 'not found'));
    const keys = keysOf(issuer, { outgoing: { call }, freshMs: 0, coolDownMs: 0 });
    await find(keys, issuer);
    const token = await issuer.sign('acme');
    const [header = '', payload = '', signature = ''] = token.split('.');
    for (let at = 0; at < 1_001; at++)
      await expect(
        keys.of(`https://${at}.example`)(decodeProtectedHeader(token) as never, {
          protected: header,
          payload,
          signature,
        }),
      ).rejects.toMatchObject({ code: 'issuer-unavailable' });
    await issuer.stop();
    await find(keys, issuer);
  });

  test('are not taken from a document of another issuer, a huge one, or one with too many', async () => {
    await using issuer = await TestIssuer.start();
    const wrong: ((path: string) => object)[] = [
      () => ({ issuer: 'https://other.example', jwks_uri: `${issuer.url}/keys` }),
      () => ({ issuer: `${issuer.url}/`, jwks_uri: `${issuer.url}/keys` }),
      () => ({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, keys: 'x' }),
      () => ({ issuer: issuer.url, jwks_uri: 7 }),
      () => [],
      () => ({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, filler: 'x'.repeat(300_000) }),
      () => ({
        issuer: issuer.url,
        jwks_uri: `${issuer.url}/keys`,
        keys: Array.from({ length: 101 }, () => issuer.keys[0]?.jwk),
      }),
      () => ({ issuer: issuer.url, jwks_uri: 'http://169.254.169.254/latest/meta-data' }),
    ];
    for (const document of wrong) {
      issuer.answer = ({ path }, response) => void response.end(JSON.stringify(document(path)));
      await expect(find(keysOf(issuer), issuer)).rejects.toMatchObject({ status: 503 });
    }
  });
});

describe('a call to another server', () => {
  let issuer: TestIssuer;
  /** Counts connections: what must not be called must not be connected to. */
  let inner: http.Server;
  let reached = 0;
  beforeAll(async () => {
    issuer = await TestIssuer.start();
    inner = http.createServer((_request, response) => {
      reached++;
      response.end('secret');
    });
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    inner.close();
    await issuer[Symbol.asyncDispose]();
  });

  const calling = async (url: string, outgoing = new Outgoing({ allow: allow('') })): Promise<OutgoingError> => {
    try {
      await outgoing.call(url, limits);
    } catch (error) {
      return error as OutgoingError;
    }
    throw new Error(`${url} was called`);
  };

  test.each([
    ...['https://127.0.0.1', 'https://2130706433', 'https://0x7f000001', 'https://0177.0.0.1', 'https://127.1'],
    ...[
      'https://0',
      'https://[::1]',
      'https://[::ffff:127.0.0.1]',
      'https://[0:0:0:0:0:ffff:7f00:1]',
      'https://[fe80::1]',
    ],
    ...['https://169.254.169.254', 'https://[fd00:ec2::254]', 'https://10.0.0.1', 'https://100.64.0.1'],
    ...['https://1②7.0.0.1', 'https://localhost'],
  ])('to %s is refused', async (origin) => {
    expect((await calling(`${origin}:${(inner.address() as AddressInfo).port}/`)).reason).toBe('refused');
    expect(reached).toBe(0);
  });

  test('over HTTP is refused, unless its origin is allowed', async () => {
    const origin = `http://127.0.0.1:${(inner.address() as AddressInfo).port}`;
    expect((await calling(origin, new Outgoing({ allow: allow('127.0.0.1') }))).reason).toBe('refused');
    expect(reached).toBe(0);
    const { body } = await new Outgoing({ allow: allow(origin) }).call(origin, limits);
    expect([body.toString(), reached]).toEqual(['secret', 1]);
    reached = 0;
  });

  test('goes to the address that was checked, even if the name resolves to another a moment later', async () => {
    const answers = [[{ address: '127.0.0.1', family: 4 }], [{ address: '10.9.9.9', family: 4 }]];
    let asked = 0;
    const resolve: ResolveHost = async () => answers[asked++] ?? [];
    const ca = readFileSync(issuer.caFile, 'utf8');
    const outgoing = new Outgoing({ allow: allow('127.0.0.1'), ca, resolve });
    // No other resolver knows the name.
    const url = `${issuer.url.replace('localhost', 'rebound.example')}/keys`;
    expect((await outgoing.call(url, limits)).status).toBe(200);
    expect(asked).toBe(1);
    // The second answer is for the second call, which is refused by it.
    expect((await calling(url, outgoing)).message).toContain('10.9.9.9');
  });

  test('to a name with one private address among public ones is refused', async () => {
    const resolve: ResolveHost = async () => [
      { address: '93.184.215.14', family: 4 },
      { address: '::ffff:169.254.169.254', family: 6 },
    ];
    const error = await calling('https://example.com', new Outgoing({ allow: allow(''), resolve }));
    expect([error.reason, error.message]).toEqual(['refused', expect.stringContaining('169.254.169.254')]);
  });

  test('checks the certificate against the name and the authorities', async () => {
    const { port } = new URL(issuer.url);
    const resolve: ResolveHost = async () => [{ address: '127.0.0.1', family: 4 }];
    const untrusting = new Outgoing({ allow: allow('localhost'), resolve });
    expect((await calling(issuer.url, untrusting)).message).toMatch(/certificate|signature/);
    const ca = readFileSync(issuer.caFile, 'utf8');
    const misled = new Outgoing({ allow: allow('other.example'), ca, resolve });
    expect((await calling(`https://other.example:${port}`, misled)).message).toContain('other.example');
  });

  test('follows a few redirects, and checks each', async () => {
    const port = (inner.address() as AddressInfo).port;
    const follow = async (location: string) => {
      issuer.answer = ({ path }, response) =>
        void (path === '/end' ? response.end('end') : response.writeHead(302, { location }).end());
      return issuer.outgoing().call(`${issuer.url}/start`, limits);
    };
    expect((await follow('/end')).body.toString()).toBe('end');
    for (const location of [
      '/start',
      'https://169.254.169.254/',
      `http://127.0.0.1:${port}/`,
      'https://[::1]/',
      '//10.0.0.1/',
    ])
      await expect(follow(location)).rejects.toMatchObject({ reason: 'refused' });
    expect(reached).toBe(0);
    // Names are resolved and checked anew for each redirect, also those that were good before.
    const asked: string[] = [];
    const resolve: ResolveHost = async (name) => {
      asked.push(name);
      return [{ address: asked.filter((each) => each === name).length === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    };
    const ca = readFileSync(issuer.caFile, 'utf8');
    const rebound = new Outgoing({ allow: allow('127.0.0.1'), ca, resolve });
    issuer.answer = (_request, response) => void response.writeHead(302, { location: '/end' }).end();
    const url = issuer.url.replace('localhost', 'rebound.example');
    await expect(rebound.call(url, limits)).rejects.toMatchObject({
      reason: 'refused',
      message: expect.stringContaining('127.0.0.2'),
    });
    expect(asked).toEqual(['rebound.example', 'rebound.example']);
    issuer.answer = (_request, response) => void response.writeHead(307, { location: '/end' }).end();
    const posted = await issuer.outgoing().call(issuer.url, { ...limits, method: 'POST', body: Buffer.from('x') });
    expect(posted.status).toBe(307);
    issuer.answer = null;
  });

  test('ends after its time and its bytes', async () => {
    issuer.answer = () => {};
    await expect(issuer.outgoing().call(issuer.url, { ...limits, timeoutMs: 200 })).rejects.toMatchObject({
      reason: 'too-slow',
    });
    issuer.answer = (_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 20);
      response.once('close', () => clearInterval(timer));
    };
    await expect(issuer.outgoing().call(issuer.url, { ...limits, timeoutMs: 300 })).rejects.toMatchObject({
      reason: 'too-slow',
    });
    issuer.answer = (_request, response) => void response.end('x'.repeat(10_001));
    await expect(issuer.outgoing().call(issuer.url, limits)).rejects.toMatchObject({ reason: 'too-large' });
    issuer.answer = null;
    const never: ResolveHost = () => new Promise(() => {});
    const stuck = new Outgoing({ allow: allow(''), resolve: never });
    await expect(stuck.call('https://example.com', { ...limits, timeoutMs: 100 })).rejects.toMatchObject({
      reason: 'too-slow',
    });
  });
});
