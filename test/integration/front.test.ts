import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createStack, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { expectRejection, type WireAnswer, type WireConnection, WireServer } from '../support/wire.ts';

const accept = 'application/vnd.pulumi+9';
const mib = 1024 * 1024;

const app = testApp({ settings: { headersTimeoutSeconds: 1, keepAliveSeconds: 1 } });
/** With the usual limits, for clients that keep their connection. */
const patientApp = testApp();
let server: WireServer;
let patient: WireServer;
let stack: TestStack;
beforeAll(async () => {
  server = await WireServer.listen(app);
  patient = await WireServer.listen(patientApp);
  stack = await createStack(app);
});

/** A request head that keeps its connection, unless `headers` say otherwise. */
function keeping(method: string, target: string, headers: Readonly<Record<string, string | number>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n`;
}

/** Resolves once the server has closed the connection without another response. */
async function expectClosed(connection: WireConnection): Promise<void> {
  expect(await connection.answer()).toBeNull();
}

const refusals: [string, number, string, string, Record<string, string>][] = [
  ['an unknown path', 404, 'POST', '/x', {}],
  ['the root', 404, 'PUT', '/', {}],
  ['a method that a path does not have', 404, 'POST', '/healthz', {}],
  ['an unknown path of the API', 404, 'POST', '/api/nothing', { Accept: accept }],
  ['a method that the API does not have', 404, 'PATCH', '/api/user', { Accept: accept }],
  ['an invalid path', 400, 'POST', '/api/%zz', { Accept: accept }],
  ['no version of the protocol', 415, 'POST', '/api/stacks/o/p', {}],
  ['no token', 401, 'POST', '/api/stacks/o/p', { Accept: accept }],
  ['a wrong token', 401, 'POST', '/api/stacks/o/p', { Accept: accept, Authorization: 'token no' }],
  ['an import without a token', 401, 'POST', '/api/stacks/o/p/s/import', { Accept: accept }],
  [
    'an invalid lease',
    403,
    'PATCH',
    `/api/stacks/o/p/s/update/${crypto.randomUUID()}/checkpoint`,
    {
      Accept: accept,
      Authorization: 'update-token no',
    },
  ],
];

describe.each(refusals)('%s: %i', (_what, status, method, target, headers) => {
  test('is sent to a client that sends nothing of the body after a while, and the connection is closed', async () => {
    const framings = [{ 'Content-Length': '100000' }, { 'Transfer-Encoding': 'chunked' }];
    await Promise.all(
      framings.map(async (framing) => {
        const connection = server.connect();
        await connection.write(keeping(method, target, { ...headers, ...framing, 'Content-Type': 'application/json' }));
        const answer = await connection.answer();
        expectRejection(answer, status);
        expect(answer?.headers.get('connection')).toBe('close');
        await expectClosed(connection);
      }),
    );
  });

  test('is sent at once to a client that declares a large body', async () => {
    const connection = patient.connect();
    await connection.write(keeping(method, target, { ...headers, 'Content-Length': 33 * mib }));
    const answer = await connection.answer();
    expectRejection(answer, status);
    expect(answer?.headers.get('connection')).toBe('close');
    connection.destroy();
  });

  test('is sent before a client that expects 100-continue sends its body', async () => {
    const connection = patient.connect();
    await connection.write(keeping(method, target, { ...headers, 'Content-Length': 20, Expect: '100-continue' }));
    const answer = await connection.answer();
    expectRejection(answer, status);
    expect(answer?.headers.get('connection')).toBe('close');
    connection.destroy();
  });

  test('is sent after the body, and the connection is kept', async () => {
    const connection = patient.connect();
    const body = Buffer.alloc(mib, 'x');
    await connection.write(keeping(method, target, { ...headers, 'Content-Length': 2 * body.length }));
    await connection.write(body);
    let isAnswered = false;
    const answer = connection.answer().then((received) => {
      isAnswered = true;
      return received;
    });
    await connection.write(body.subarray(1));
    expect(isAnswered).toBe(false);
    await connection.write('x');
    expectRejection(await answer, status);
    await connection.write(keeping('GET', '/healthz'));
    expect((await connection.answer())?.status).toBe(200);
    connection.destroy();
  });

  test('reaches a client that sends everything first', async () => {
    const connection = server.connect();
    await connection.write(keeping(method, target, { ...headers, 'Content-Length': 4 * mib }));
    for (let sent = 0; sent < 4; sent++) await connection.write(Buffer.alloc(mib));
    expectRejection(await connection.answer(), status);
    connection.destroy();
  });
});

test('a client that expects 100-continue gets it once its call is authorized', async () => {
  const connection = patient.connect();
  const { auth, organization } = await createStack(patientApp);
  const body = JSON.stringify({ stackName: 'asked' });
  await connection.write(
    keeping('POST', `/api/stacks/${organization}/proj`, {
      Accept: accept,
      Authorization: auth,
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Expect: '100-continue',
    }),
  );
  expect(await connection.interim()).toBe(100);
  await connection.write(body);
  expect((await connection.answer())?.status).toBe(200);
  connection.destroy();
});

test('other expectations are rejected', async () => {
  expectRejection(await server.request('GET', '/healthz', { headers: { Expect: 'a miracle' } }), 417);
});

describe('clients that trickle are cut off', () => {
  /** Sends a byte every 50 ms until the connection is closed. */
  async function trickle(...starts: string[]): Promise<void> {
    const connection = server.connect({ stays: true });
    for (const start of starts) await connection.write(start);
    let isClosed = false;
    const closed = (async () => {
      while ((await connection.answer()) !== null);
      isClosed = true;
    })();
    const timer = setInterval(() => void connection.write('a'), 50);
    try {
      await closed;
    } finally {
      clearInterval(timer);
    }
    expect(isClosed).toBe(true);
  }
  const small = { 'Content-Length': 60_000 };
  const large = { 'Content-Length': 600_000_000 };

  test.each([
    ['a small body that nobody reads', () => keeping('POST', '/x', small)],
    ['a large body that nobody reads', () => keeping('POST', '/x', large)],
    ['the body of a GET', () => keeping('GET', '/healthz', small)],
    ['the large body of a GET', () => keeping('GET', '/healthz', large)],
    ['the body of a call without a token', () => keeping('POST', '/api/stacks/o/p', { ...small, Accept: accept })],
    [
      'the body of a call without one',
      () => keeping('GET', '/api/user', { ...small, Accept: accept, Authorization: stack.auth }),
    ],
    ['a head', () => 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: '],
    ['a line', () => 'GET /'],
    ['the head of a second request', () => `${keeping('GET', '/healthz')}GET /healthz HTTP/1.1\r\nX-A: `],
  ])('%s', (_what, start) => trickle(start()));

  test('a connection that never sends anything', async () => {
    const connection = server.connect();
    const answer = await connection.answer();
    if (answer) expectRejection(answer, 408);
    await expectClosed(connection);
  });

  test('a connection between two requests', async () => {
    const connection = server.connect();
    await connection.write(keeping('GET', '/healthz'));
    expect((await connection.answer())?.status).toBe(200);
    await expectClosed(connection);
  });
});

describe('several requests on one connection', () => {
  const inUse = () => ({ Accept: accept, Authorization: stack.auth });

  test.each([
    ['a rejected body is served once the body has arrived', 100_000, true],
    ['a rejected body that is too large to be received is not served', 33 * mib, false],
  ])('a request behind %s', async (_what, length, isServed) => {
    const victim = await createStack(patientApp);
    const connection = patient.connect();
    const second = keeping('DELETE', victim.path, { Accept: accept, Authorization: victim.auth });
    await connection.write(keeping('POST', '/x', { 'Content-Length': length }) + 'x'.repeat(length) + second);
    expectRejection(await connection.answer(), 404);
    if (isServed) expect((await connection.answer())?.status).toBe(204);
    else await expectClosed(connection);
    const { status } = await patientApp.call('GET', victim.path, { auth: victim.auth });
    expect(status).toBe(isServed ? 404 : 200);
    connection.destroy();
  });

  test('an invalid request behind a valid one does not replace its response', async () => {
    const connection = server.connect();
    await connection.write(`${keeping('GET', '/api/user', inUse())}BROKEN\r\n\r\n`);
    expect((await connection.answer())?.status).toBe(200);
    await expectClosed(connection);
  });

  test('an invalid request does not corrupt a response that is being sent', async () => {
    const { auth, path } = stack;
    const filler = Buffer.alloc(6 * mib, 'y').toString();
    const document = JSON.stringify({ version: 3, deployment: { filler } });
    const imported = await app.call('POST', `${path}/import`, { auth, body: document });
    expect(imported.status).toBe(200);
    const connection = server.connect();
    await connection.write(keeping('GET', `${path}/export`, { Accept: accept, Authorization: auth }));
    await connection.write('BROKEN\r\n\r\n');
    const answer = await connection.answer();
    expect(answer?.status).toBe(200);
    expect(answer?.json.deployment.filler).toHaveLength(filler.length);
    connection.destroy();
  });
});

test('requests with too many headers are rejected instead of truncated', async () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-${at}`, 'y']));
  expectRejection(await server.request('GET', '/healthz', { headers: many(300) }), 431);
  expect((await server.request('GET', '/healthz', { headers: many(150) }))?.status).toBe(200);
});

test('a route without a body ignores it', async () => {
  const broken = gzipSync(Buffer.alloc(10_000)).subarray(0, 30);
  const other = await createStack(app);
  const headers = { Accept: accept, Authorization: other.auth, 'Content-Encoding': 'gzip' };
  const answer = await server.request('DELETE', other.path, { headers, body: broken });
  expect(answer?.status).toBe(204);
});

describe('connections', () => {
  const refused = async (limited: TestApp): Promise<Record<string, number>> => {
    const { values } = await limited.context.metrics.connectionsRejected.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.limit, value]));
  };
  const ask = async (connection: WireConnection, headers = {}): Promise<WireAnswer | null> => {
    await connection.write(keeping('GET', '/healthz', headers));
    return connection.answer();
  };

  test.each([
    ['from one address', 'address', { maxConnectionsPerAddress: 5 }],
    ['in all', 'total', { HOLDFAST_MAX_CONNECTIONS: '5', maxConnectionsPerAddress: 5 }],
    [
      'of trusted proxies',
      'total',
      {
        HOLDFAST_MAX_CONNECTIONS: '5',
        maxConnectionsPerAddress: 2,
        HOLDFAST_TRUSTED_PROXIES: '127.0.0.0/8',
      },
    ],
  ])('%s: as many as the limit, again and again; the others get 503', async (_what, limit, settings) => {
    const lines: string[] = [];
    await using limited = await createTestApp({ settings, log: { write: (line) => void lines.push(line) } });
    const front = await WireServer.listen(limited);
    for (let round = 1; round <= 2; round++) {
      const connections = Array.from({ length: 5 }, () => front.connect());
      for (const connection of connections) expect((await ask(connection))?.status).toBe(200);
      for (let more = 0; more < 2; more++) {
        const answer = await ask(front.connect());
        expectRejection(answer, 503);
        expect(answer?.headers.get('retry-after')).toBe('1');
      }
      // Some close, some break.
      for (const [at, connection] of connections.entries()) at % 2 === 0 ? connection.end() : connection.destroy();
      await until(async () => {
        const text = await limited.context.metrics.registry.metrics();
        return /^holdfast_connections 0$/m.test(text);
      }, 'all are closed');
    }
    expect(await refused(limited)).toEqual({ [limit]: 4 });
    expect(lines.filter((line) => line.includes('connections refused'))).toHaveLength(1);
  });

  test('a client that leaves just before its compressed response begins is no error of the server', async () => {
    const lines: string[] = [];
    await using logging = await createTestApp({ log: { write: (line) => void lines.push(line) } });
    const front = await WireServer.listen(logging);
    logging.app.server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
      response.once('pipe', () => response.socket?.destroy());
    });
    const { auth, path } = await createStack(logging);
    const headers = {
      Accept: accept,
      Authorization: auth,
      'Accept-Encoding': 'gzip',
      'Content-Type': 'application/json',
    };
    const body = JSON.stringify({ plaintext: Buffer.alloc(3_000).toString('base64') });
    // Now and then the response is compressed before the connection has ended.
    await until(async () => {
      expect(await front.request('POST', `${path}/encrypt`, { headers, body })).toBeNull();
      return lines.some((line) => line.includes('ERR_STREAM_PREMATURE_CLOSE'));
    }, 'it is noted');
    expect(lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line))).toEqual([]);
  });

  test('from the beginning of a shutdown, each response ends its connection, also of a call that was open', async () => {
    await using draining = await createTestApp({ settings: { HOLDFAST_DRAIN_SECONDS: '4' } });
    const front = await WireServer.listen(draining);
    const { auth, path } = await createStack(draining);
    const early = front.connect();
    const late = front.connect();
    const headers = { Accept: accept, Authorization: auth, 'Content-Type': 'application/json' };
    await late.write(keeping('GET', '/healthz'));
    expect((await late.answer())?.headers.get('connection')).toBe('keep-alive');
    const body = JSON.stringify({ plaintext: '' });
    await early.write(keeping('POST', `${path}/encrypt`, { ...headers, 'Content-Length': body.length }) + body[0]);
    await until(
      async () => /^holdfast_connections 2$/m.test(await draining.context.metrics.registry.metrics()),
      'both are open',
    );
    const closed = draining.context.lifecycle.close();
    await late.write(keeping('GET', '/healthz'));
    const answer = await late.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
    await early.write(body.slice(1));
    const second = await early.answer();
    expect([second?.status, second?.headers.get('connection')]).toEqual([200, 'close']);
    await closed;
  });

  test('silent connections do not delay the shutdown of the server', async () => {
    const lines: string[] = [];
    const settings = { headersTimeoutSeconds: 3600, HOLDFAST_SHUTDOWN_SECONDS: '20' };
    const limited = await createTestApp({ settings, log: { write: (line) => void lines.push(line) } });
    const front = await WireServer.listen(limited);
    const connections = [front.connect(), front.connect()];
    await connections[0]?.write('GET / HTTP/1.1\r\n');
    await until(async () => /^holdfast_connections 2$/m.test(await limited.context.metrics.registry.metrics()), 'open');
    await limited[Symbol.asyncDispose]();
    expect(lines.filter((line) => line.includes('gave up waiting'))).toEqual([]);
  });
});

test('a connection keeps no memory of the bodies that were rejected on it', async () => {
  const sockets: Socket[] = [];
  patientApp.app.server.prependOnceListener('request', ({ socket }: IncomingMessage) => sockets.push(socket));
  const connection = patient.connect();
  const refused = async (): Promise<void> => {
    await connection.write(keeping('POST', '/x', { 'Content-Length': 20 }) + 'x'.repeat(20));
    expectRejection(await connection.answer(), 404);
  };
  await refused();
  await refused();
  const [socket] = sockets;
  const before = socket?.listenerCount('close');
  for (let call = 0; call < 20; call++) await refused();
  expect(socket?.listenerCount('close')).toBe(before);
  connection.destroy();
});
