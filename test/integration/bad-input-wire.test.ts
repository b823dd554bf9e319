import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import {
  allRouteNames,
  type BodyRoute,
  createScene,
  headersOf,
  routeNamed,
  routeNames,
  type Scene,
} from '../support/every-body-route.ts';
import { digestRows } from '../support/row-digests.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { expectNothingChanged, expectRejection, head, settled, WireServer } from '../support/wire.ts';

const mib = 1024 * 1024;

const app = testApp();
let server: WireServer;
let scene: Scene;
beforeAll(async () => {
  server = await WireServer.listen(app);
  scene = await createScene(app);
});

const filler = randomBytes(600 * 1024).toString('base64');

/** A valid body of the route above the limit for direct commits, plain or as gzip that hardly compresses. */
function largeBody(route: BodyRoute): Buffer {
  return Buffer.from(`${route.valid.slice(0, -1)},"x":"${filler}"}`);
}

const chunk = (data: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${Buffer.byteLength(data).toString(16)}\r\n`), Buffer.from(data), Buffer.from('\r\n')]);

const openConnections = (): Promise<number> =>
  new Promise((resolve, reject) =>
    app.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

/** Requests counted so far, by status. */
async function recorded(): Promise<{ all: number; left: number }> {
  const { values } = await app.context.metrics.requestSeconds.get();
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'));
  const sum = (of: typeof counts) => of.reduce((total, { value }) => total + value, 0);
  return { all: sum(counts), left: sum(counts.filter(({ labels }) => String(labels.status) === '499')) };
}

describe('truncated bodies', () => {
  const ways = ['declared, small', 'declared, large', 'chunked', 'gzip, large'] as const;

  test.each(allRouteNames.flatMap((name) => ways.map((way) => [name, way] as const)))(
    '%s (%s): nothing is changed and nothing is left behind',
    async (name, way) => {
      const route = routeNamed(scene, name);
      const large = largeBody(route);
      const body =
        way === 'declared, small'
          ? Buffer.from(route.valid)
          : way === 'gzip, large'
            ? gzipSync(large, { level: 1 })
            : large;
      const extra = { ...(way === 'gzip, large' ? { 'Content-Encoding': 'gzip' } : {}) };
      await expectNothingChanged(server, async () => {
        const before = await recorded();
        for (const part of [0, 0.5, 1]) {
          const connection = server.connect();
          // At most all but the last byte: a complete body counts even when its sender has gone.
          const sent = body.subarray(0, Math.floor((body.length - 1) * part));
          if (way === 'chunked') {
            await connection.write(
              head(route.method, route.url, { headers: headersOf(route, { 'Transfer-Encoding': 'chunked' }) }),
            );
            await connection.write(chunk(sent.length === 0 ? ' ' : sent));
          } else {
            await connection.write(
              head(route.method, route.url, { headers: headersOf(route, extra), length: body.length }),
            );
            await connection.write(sent);
          }
          await sleep(5);
          connection.destroy();
        }
        await until(async () => (await openConnections()) === 0, 'the server has seen them go');
        await until(async () => (await recorded()).all - before.all >= 3, 'all three are counted');
        await sleep(20);
        const after = await recorded();
        expect(after.all - before.all).toBe(3);
        // The body reader may notice the disconnect first; the error response is then counted.
        expect(after.left).toBeGreaterThan(before.left);
      });
    },
  );

  test('a client that disconnects after sending the whole body is still served', async () => {
    const { plain } = scene;
    const route = routeNamed(scene, 'checkpointverbatim');
    const marker = randomBytes(12).toString('hex');
    const document = `{"version":3,"deployment":{"marker":"${marker}","x":"${randomBytes(600 * 1024).toString('base64')}"}}`;
    const body = `{"version":3,"untypedDeployment":${document},"sequenceNumber":99}`;
    const connection = server.connect();
    await connection.write(head(route.method, route.url, { headers: headersOf(route), length: body.length }));
    await connection.write(body);
    await until(
      () => app.context.payloads.bytesHeld() > 0 || app.context.dispatcher.state().active > 0,
      'the body is taken',
    );
    connection.destroy();
    await settled(app);
    await until(async () => {
      const exported = await app.call('GET', `${plain.path}/export`, { auth: plain.auth });
      return exported.text.includes(marker);
    }, 'it is committed');
  });
});

describe('body lengths', () => {
  test.each(allRouteNames)('%s: a body shorter than its Content-Length is never treated as complete', async (name) => {
    const route = routeNamed(scene, name);
    await expectNothingChanged(server, async () => {
      const connection = server.connect();
      await connection.write(
        head(route.method, route.url, { headers: headersOf(route), length: route.valid.length + 1 }),
      );
      await connection.write(route.valid);
      // Half-closed: the server learns that no more bytes will come.
      connection.end();
      const answer = await connection.answer();
      if (answer !== null) expectRejection(answer, 400);
      connection.destroy();
    });
  });

  test.each(allRouteNames)('%s: bytes beyond the Content-Length are treated as another request', async (name) => {
    const route = routeNamed(scene, name);
    await expectNothingChanged(server, async () => {
      // The bytes within the length are incomplete JSON; the rest is not HTTP.
      const answer = await server.send(
        head(route.method, route.url, { headers: headersOf(route), length: route.valid.length - 1 }),
        `${route.valid}${route.valid}`,
      );
      expectRejection(answer, 400);
    });
  });

  test.each(routeNames.payload)('%s accepts a chunked body without a length', async (name) => {
    const other = await createScene(app);
    const route = routeNamed(other, name);
    // A delta needs a correct hash; the error message shows that the body was read completely.
    const refusal = name === 'checkpointdelta';
    const chunks = [route.valid.slice(0, 5), route.valid.slice(5, 6), route.valid.slice(6)];
    const answer = await server.send(
      head(route.method, route.url, { headers: headersOf(route, { 'Transfer-Encoding': 'chunked' }) }),
      ...chunks.map(chunk),
      '0\r\n\r\n',
    );
    if (refusal) expect(answer?.json.message).toMatch(/does not have the given hash/);
    else expect(answer?.status).toBe(name === 'import' ? 200 : 204);
    await settled(app);
  });
});

describe('requests that a server and its proxy may parse differently', () => {
  const attack = 'GET /api/user HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const heads: [string, string, string][] = [
    [
      'both Content-Length and Transfer-Encoding',
      'Content-Length: 4\r\nTransfer-Encoding: chunked',
      `0\r\n\r\n${attack}`,
    ],
    ['both, the other way round', 'Transfer-Encoding: chunked\r\nContent-Length: 4', `0\r\n\r\n${attack}`],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 44', '{}'],
    ['two equal lengths', 'Content-Length: 2\r\nContent-Length: 2', '{}'],
    ['a list of lengths', 'Content-Length: 2, 44', '{}'],
    ['a negative length', 'Content-Length: -2', '{}'],
    ['a length with a sign', 'Content-Length: +2', '{}'],
    ['a hexadecimal length', 'Content-Length: 0x2', '{}'],
    ['a length beyond 64 bits', 'Content-Length: 99999999999999999999999', '{}'],
    ['an unknown transfer coding', 'Transfer-Encoding: cow', '{}'],
    ['chunked that is not last', 'Transfer-Encoding: chunked, identity', '0\r\n\r\n'],
    ['a blank before the colon', 'Content-Length : 2', '{}'],
    ['a folded header', 'X-A: b\r\n Content-Length: 2', '{}'],
    ['a bare CR in a header', 'X-A: b\rContent-Length: 2', '{}'],
    ['a NUL in a header', 'X-A: b\0c', ''],
    ['an invalid chunk size', 'Transfer-Encoding: chunked', 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a negative chunk size', 'Transfer-Encoding: chunked', '-2\r\n{}\r\n0\r\n\r\n'],
    ['a chunk longer than its size', 'Transfer-Encoding: chunked', '1\r\n{}\r\n0\r\n\r\n'],
    ['a chunk size beyond 64 bits', 'Transfer-Encoding: chunked', 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n'],
  ];

  test.each(heads)('%s', async (_what, lines, body) => {
    const { idle } = scene;
    await expectNothingChanged(server, async () => {
      const connection = server.connect();
      await connection.write(
        `POST ${idle.path}/update HTTP/1.1\r\nHost: localhost\r\nAccept: application/vnd.pulumi+9\r\nAuthorization: ${idle.auth}\r\n${lines}\r\n\r\n${body}`,
      );
      const answer = await connection.answer();
      expectRejection(answer, 400);
      // Anything that follows on this connection is ignored.
      await connection.write(attack);
      expect(await connection.answer()).toBeNull();
      connection.destroy();
    });
  });
});

describe('data that is not a valid request', () => {
  test.each([
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
    ['noise', Buffer.concat([Buffer.from([0x81]), randomBytes(200), Buffer.from('\r\n\r\n')])],
    ['the HTTP/2 preface', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['a method that does not exist', Buffer.from('EAT /api/user HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['a method in lower case', Buffer.from('get /api/user HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['another protocol', Buffer.from('GET /api/user SIP/2.0\r\nHost: a\r\n\r\n')],
    ['HTTP/3.0', Buffer.from('GET /api/user HTTP/3.0\r\nHost: a\r\n\r\n')],
    ['a blank in the path', Buffer.from('GET /api/us er HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['a control character in the path', Buffer.from('GET /api/us\x01er HTTP/1.1\r\nHost: a\r\n\r\n')],
    ['a NUL in the path', Buffer.from('GET /api/us\x00er HTTP/1.1\r\nHost: a\r\n\r\n')],
  ])('%s', async (_what, bytes) => {
    await expectNothingChanged(server, async () => expectRejection(await server.send(bytes), 400));
  });

  test('headers and URLs that are too large', async () => {
    await expectNothingChanged(server, async () => {
      const headers = { Authorization: scene.idle.auth, Accept: 'application/vnd.pulumi+9' };
      expectRejection(
        await server.request('GET', '/api/user', { headers: { ...headers, 'X-A': 'x'.repeat(20_000) } }),
        431,
      );
      expectRejection(
        await server.request('GET', '/api/user', { headers: { ...headers, Cookie: 'a=b; '.repeat(mib / 5) } }),
        431,
      );
      const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`X-${index}`, 'y']));
      expectRejection(await server.request('GET', '/api/user', { headers: { ...headers, ...many } }), 431);
      expectRejection(await server.request('GET', `/api/user?project=${'x'.repeat(20_000)}`, { headers }), 431);
      expectRejection(await server.request('GET', `/api/stacks/${'x'.repeat(20_000)}`, { headers }), 431);
      expectRejection(
        await server.request('GET', `/api/stacks/${'x'.repeat(10_000)}/proj/dev`, { headers }),
        [404, 414],
      );
      expectRejection(await server.request('GET', `/api/${'a/'.repeat(5_000)}`, { headers }), 404);
      expectRejection(
        await server.request('GET', '/api/user', {
          headers: { ...headers, Authorization: `token ${'x'.repeat(8_000)}` },
        }),
        401,
      );
      expectRejection(
        await server.request('GET', '/api/user', { headers: { ...headers, Accept: 'application/json, '.repeat(500) } }),
        415,
      );
    });
  });
});

describe('methods', () => {
  test.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'M-SEARCH'])(
    '%s on a path without that method is answered as JSON',
    async (method) => {
      await expectNothingChanged(server, async () => {
        const headers = { Authorization: scene.idle.auth, Accept: 'application/vnd.pulumi+9' };
        for (const path of ['/api/user', '/healthz', '/', '/api/nothing']) {
          expectRejection(await server.request(method, path, { headers }), [404, 405]);
        }
      });
    },
  );
});

describe('paths', () => {
  const tricks = (organization: string): [string, number[]][] => [
    [`/api/stacks/../stacks/${organization}/proj/dev`, [400, 404]],
    [`/api/stacks/${organization}/proj/../proj/dev`, [400, 404]],
    [`/api/stacks/${organization}/proj/dev/../dev`, [400, 404]],
    [`/api/stacks/${organization}/./proj/dev`, [400, 404]],
    [`/api/stacks/${organization}/%2e%2e/dev`, [400, 404]],
    [`/api/stacks/${organization}/%2e/dev`, [400, 404]],
    [`/api/stacks/%2e%2e/%2e%2e/%2e%2e`, [400, 404]],
    [`/api/stacks/${organization}/proj%2fdev`, [400, 404]],
    [`/api/stacks/${organization}%2fproj%2fdev`, [400, 404]],
    [`/api/stacks/${organization}/proj%5cdev/x`, [400, 404]],
    [`/api/stacks/${organization}/proj/dev%00`, [400]],
    [`/api/stacks/${organization}/%00/dev`, [400]],
    [`/api/stacks/%00/proj/dev`, [400]],
    [`/api/stacks/${organization}/proj/dev%`, [400]],
    [`/api/stacks/${organization}/proj/dev%2`, [400]],
    [`/api/stacks/${organization}/proj/dev%zz`, [400]],
    [`/api/stacks/${organization}/proj/%ff%fe`, [400]],
    [`/api/stacks/${organization}/proj/%c0%ae`, [400]],
    [`/api/stacks/${organization}/proj/%ed%a0%80`, [400]],
    [`/api/stacks/${organization}/proj/%u0041`, [400]],
    [`/api/stacks/${organization}/proj/%252e%252e`, [400, 404]],
    [`//api/stacks/${organization}/proj/dev`, [400, 404]],
    [`/api//stacks/${organization}/proj/dev`, [400, 404]],
    [`/api/stacks//${organization}/proj/dev`, [400, 404]],
    [`/api/stacks/${organization}/proj/dev/`, [404]],
    [`/api/stacks/${organization}//dev`, [400, 404]],
    [`/api/stacks/${organization}/proj/dev;x=y`, [404]],
    [`/API/stacks/${organization}/proj/dev`, [404]],
    [`/api/stacks/${organization.toUpperCase()}/proj/dev`, [404]],
    [`/api/stacks/${organization}/proj/${encodeURIComponent("dev' or '1'='1")}`, [404]],
    [`/api/stacks/${organization}/proj/${encodeURIComponent("dev'; drop table stacks; --")}`, [404]],
    [`/api/stacks/${organization}/proj/dev%20`, [404]],
    [`/api/stacks/${organization}/proj/dev%0d%0aX-Injected:%20yes`, [404]],
    [`/api/stacks/${organization}/proj/${encodeURIComponent('dév')}`, [404]],
    [`/api/stacks/${organization}/proj/__proto__`, [404]],
    [`/api/stacks/${organization}/constructor/prototype`, [404]],
    [`/api/stacks/__proto__/constructor/toString`, [404]],
    [`/api/stacks/${organization}/proj/dev/export/__proto__`, [404]],
    [`/api/stacks/${organization}/proj/dev/export/-1`, [404]],
    [`/api/stacks/${organization}/proj/dev/export/0`, [404]],
    [`/api/stacks/${organization}/proj/dev/export/1e1`, [404]],
    [`/api/stacks/${organization}/proj/dev/export/99999999999999999999`, [404]],
    [`/api/stacks/${organization}/proj/dev/update/not-an-id`, [404]],
    [`/api/stacks/${organization}/proj/dev/update/${'0'.repeat(36)}`, [404]],
    [`/api/stacks/${organization}/proj/dev/eat/00000000-0000-0000-0000-000000000000`, [404]],
    [`/api/stacks/${organization}/proj/dev/updates?pageSize=-1`, [400]],
    [`/api/stacks/${organization}/proj/dev/updates?pageSize=1e3`, [400]],
    [`/api/stacks/${organization}/proj/dev/updates?pageSize=99999999999`, [400]],
    [`/api/stacks/${organization}/proj/dev/updates?pageSize=10&page=-1`, [400]],
    [`/api/stacks/${organization}/proj/dev/updates?pageSize=${encodeURIComponent('1; drop table updates')}`, [400]],
    ['/api/user/stacks?continuationToken=nonsense', [400]],
    [`/api/user/stacks?continuationToken=${Buffer.from('a/b').toString('base64url')}`, [400]],
    [`/api/user/stacks?continuationToken=${Buffer.from('a/b\0/c').toString('base64url')}`, [400]],
    ['/api/user/stacks?project=%00', [400]],
    ['/api/user/stacks?tagName=%00', [400]],
    ['/api/user/stacks?tagName=a&tagValue=%00', [400]],
    ['/api/user/stacks?organization=%00', [400]],
  ];

  test('never lead anywhere except to what they name', async () => {
    const { idle } = scene;
    const headers = { Authorization: idle.auth, Accept: 'application/vnd.pulumi+9' };
    await expectNothingChanged(server, async () => {
      for (const [path, statuses] of tricks(idle.organization)) {
        for (const method of ['GET', 'DELETE']) {
          if (method === 'DELETE' && path.includes('?')) continue;
          const answer = await server.request(method, path, { headers });
          const allowed = method === 'GET' ? statuses : [400, 404];
          expect({ method, path, status: answer?.status }).toEqual({
            method,
            path,
            status: allowed.includes(answer?.status ?? 0) ? answer?.status : allowed,
          });
          expectRejection(answer, allowed);
          expect([...(answer?.headers.keys() ?? [])]).not.toContain('x-injected');
        }
      }
    });
  });

  test('percent-encoded names are decoded', async () => {
    const { idle } = scene;
    const headers = { Authorization: idle.auth, Accept: 'application/vnd.pulumi+9' };
    const answer = await server.request('GET', `/api/stacks/${idle.organization}/%70roj/d%65v`, { headers });
    expect(answer?.status).toBe(200);
    expect(answer?.json.stackName).toBe('dev');
  });

  test('queries with repeated or odd parameters are rejected or ignored', async () => {
    const headers = { Authorization: scene.idle.auth, Accept: 'application/vnd.pulumi+9' };
    await expectNothingChanged(server, async () => {
      const repeated = await server.request('GET', '/api/user/stacks?project=a&project=b', { headers });
      expectRejection(repeated, 400);
      for (const query of [
        '__proto__=1',
        'constructor[prototype][x]=1',
        'project[$ne]=1',
        '&&&&',
        '=',
        '%zz=1',
        `${'a=b&'.repeat(2000)}`,
      ]) {
        const answer = await server.request('GET', `/api/user/stacks?${query}`, { headers });
        expect([200, 400]).toContain(answer?.status);
        expect(answer?.headers.get('content-type')).toMatch(/^application\/json/);
      }
      expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    });
  });
});

test('the server still works after all of this', async () => {
  const before = await digestRows(app);
  const { idle } = scene;
  const answer = await app.call('POST', `${idle.path}/import`, {
    auth: idle.auth,
    body: '{"version":3,"deployment":{}}',
  });
  expect(answer.status).toBe(200);
  expect(await digestRows(app)).not.toEqual(before);
});
