import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { registerAddressRate } from '../../src/api/platform/http/request-rate.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

const S = '/api/stacks/:organization/:project/:stack';
const U = `${S}/:kind(^(?:update|preview|refresh|destroy)$)/:updateId`;

/** Never limited. The walk below fails for a route that should be here and is not, and for one that is and should not. */
const never = [
  'GET /healthz',
  'GET /readyz',
  'GET /metrics',
  'GET /api/capabilities',
  `POST ${U}`,
  `POST ${U}/cancel`,
  `POST ${U}/drain`,
  `POST ${U}/complete`,
  `POST ${U}/renew_lease`,
  `PATCH ${U}/checkpoint`,
  `PATCH ${U}/checkpointverbatim`,
  `PATCH ${U}/checkpointdelta`,
  `PATCH ${U}/journalentries`,
  `POST ${U}/events/batch`,
];
/** Limited only while no update of the stack is active. */
const needed = [
  `GET ${S}`,
  `GET ${S}/export`,
  `POST ${S}/encrypt`,
  `POST ${S}/decrypt`,
  `POST ${S}/batch-encrypt`,
  `POST ${S}/batch-decrypt`,
  `POST ${S}/decrypt/log-decryption`,
  `POST ${S}/decrypt/log-batch-decryption`,
];

const proxied = { HOLDFAST_TRUSTED_PROXIES: '127.0.0.1' };

/** Without limits, to prepare. */
let free: TestApp;
/** On the same database; an address may make one request a minute. */
let byAddress: TestApp;
/** The same for tokens. */
let byToken: TestApp;
let stack: TestStack;

beforeAll(async () => {
  const none = { HOLDFAST_REQUESTS_PER_MINUTE: '0', addressRequestsPerMinute: 0 };
  free = await createTestApp({ settings: none });
  const { database, dataDir } = free;
  byAddress = await createTestApp({
    database,
    dataDir,
    settings: { ...none, ...proxied, addressRequestsPerMinute: 1 },
  });
  byToken = await createTestApp({
    database,
    dataDir,
    settings: { ...none, HOLDFAST_REQUESTS_PER_MINUTE: '1', userRequestsPerMinute: 0 },
  });
  stack = await createStack(free);
  // They may make every call.
  await query(free, 'update users set site_admin = true');
});
afterAll(async () => {
  await byAddress[Symbol.asyncDispose]();
  await byToken[Symbol.asyncDispose]();
  await free[Symbol.asyncDispose]();
});

function callRoute(app: TestApp, route: string, place: TestStack, update: { id: string; lease: string }) {
  const [method, pattern] = route.split(' ') as [string, string];
  const url = pattern
    .replace(/:kind\(.*\)\//, 'update/')
    .replace(':organization', place.organization)
    .replace(':project', place.project)
    .replace(':stackVersion', '999')
    .replace(':stack', place.stack)
    .replace(':updateId', update.id);
  const hasBody = !['GET', 'HEAD', 'DELETE'].includes(method);
  const isLeaseRoute =
    url.startsWith(`${place.path}/update/`) && /\/(complete|renew_lease|checkpoint\w*|journalentries|batch)$/.test(url);
  const auth = isLeaseRoute ? update.lease : place.auth;
  return app.call(method, url, {
    auth,
    ...(hasBody ? { body: bodySampleOf(pattern) } : {}),
  });
}

const noUpdate = { id: '00000000-0000-4000-8000-000000000000', lease: 'update-token none' };
const routesOf = (app: TestApp) => listRoutes(app.app).filter((route) => !/^HEAD (?!\S+:project$)/.test(route));

async function spend(app: TestApp, auth: string): Promise<void> {
  await until(async () => (await app.call('GET', '/api/user/stacks', { auth })).status === 429, 'the limit is reached');
}

test('a route without a declared limit keeps the app from starting', () => {
  const app = Fastify();
  registerAddressRate(app, { rates: byToken.context.rates } as never);
  app.get('/fine', { config: { rate: 'held' } }, async () => '');
  expect(() => app.get('/none', async () => '')).toThrow('GET /none does not declare how it is limited');
});

describe.each<[string, () => TestApp]>([
  ['an address', () => byAddress],
  ['a token', () => byToken],
])('%s over its limit', (_, of) => {
  test('gets 429 from every route but those that updates need', async () => {
    const app = of();
    await spend(app, stack.auth);
    const wrong: object[] = [];
    for (const route of routesOf(app)) {
      // The others have no caller.
      if (app === byToken && !/ \/api\/(?!cli|openapi|oauth|embeds)/.test(route)) continue;
      const refusal = async () => {
        const { status, headers } = await callRoute(app, route, stack, noUpdate);
        return { status, isRefused: status === 429 && Number(headers['retry-after']) >= 1 };
      };
      let answer = await refusal();
      // A minute may have passed since the last call that was counted.
      if (!answer.isRefused) await spend(app, stack.auth);
      if (!answer.isRefused) answer = await refusal();
      if (answer.isRefused === never.includes(route)) wrong.push({ route, status: answer.status });
    }
    expect(wrong).toEqual([]);
  });

  test('learns which limit it exceeds, and how long to wait', async () => {
    const app = of();
    await spend(app, stack.auth);
    const { json, headers } = await app.call('GET', '/api/user/stacks', { auth: stack.auth });
    const seconds = Number(headers['retry-after']);
    expect(json).toEqual({
      code: 429,
      message: `Too many requests ${app === byToken ? 'with this API token' : 'from this address'}: at most 1 per minute. Please retry in ${seconds} s`,
    });
    expect(seconds).toBeLessThanOrEqual(61);
  });

  test('loses no update that runs', async () => {
    const app = of();
    const busy = await createStack(free);
    const encrypted = await ok(
      free.call('POST', `${busy.path}/encrypt`, { auth: busy.auth, body: { plaintext: 'QQ==' } }),
    );
    const before = busy.path;
    await ok(free.call('POST', `${before}/rename`, { auth: busy.auth, body: { newName: 'renamed' } }));
    const renamed = { ...busy, stack: 'renamed', path: `/api/stacks/${busy.organization}/proj/renamed` };
    const created = await ok(free.call('POST', `${renamed.path}/update`, { auth: busy.auth, body: {} }));
    const id = created.json.updateID as string;
    await spend(app, busy.auth);
    const path = `${renamed.path}/update/${id}`;
    const { json } = await ok(app.call('POST', path, { auth: busy.auth, body: {} }));
    const update: RunningUpdate = { id, path, lease: `update-token ${json.token}`, version: json.version };
    const wrong: object[] = [];
    for (const route of needed) {
      const { status } = await callRoute(app, route, renamed, update);
      if (status === 429) wrong.push({ route, status });
    }
    expect(wrong).toEqual([]);
    // The state names the stack as it was called when the secret was encrypted.
    await ok(
      app.call('POST', `${before}/decrypt`, { auth: busy.auth, body: { ciphertext: encrypted.json.ciphertext } }),
    );
    expect((await append(app, update, [])).status).not.toBe(429);
    await ok(app.call('POST', `${path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
    await ok(saveState(app, update, 3));
    await ok(complete(app, update));
    await spend(app, busy.auth);
    expect((await app.call('GET', renamed.path, { auth: busy.auth })).status).toBe(429);
    expect((await app.call('POST', `${before}/decrypt`, { auth: busy.auth, body: {} })).status).toBe(429);
    const preview = await startUpdate(free, renamed, { kind: 'preview' });
    await ok(app.call('GET', `${renamed.path}/export`, { auth: busy.auth }));
    await ok(complete(app, preview));
  });
});

test('a caller over the limit learns nothing of an update of a stack that it may not read', async () => {
  const hidden = await createStack(free);
  const formerly = hidden.path;
  await ok(free.call('POST', `${formerly}/rename`, { auth: hidden.auth, body: { newName: 'renamed' } }));
  const renamed = { ...hidden, stack: 'renamed', path: `/api/stacks/${hidden.organization}/proj/renamed` };
  const { auth, organizationId, userId } = await person(free, hidden.organization, 'member');
  await grant(free, organizationId, { userId }, 'deny', ['read', 'outputs'], { stacks: 'proj/*' });
  const update = await startUpdate(free, renamed);
  await spend(byToken, auth);
  const body = { ciphertext: 'AAAA' };
  const statuses = async (of: string) => [
    (await byToken.call('POST', `${renamed.path}/decrypt`, { auth: of, body })).status,
    (await byToken.call('POST', `${formerly}/decrypt`, { auth: of, body })).status,
  ];
  expect(await statuses(auth)).toEqual([429, 429]);
  expect((await byToken.call('POST', `${renamed.path}-none/decrypt`, { auth, body })).status).toBe(429);
  await spend(byToken, hidden.auth);
  expect(await statuses(hidden.auth)).toEqual([400, 400]);
  await ok(complete(free, update));
});

test('calls that the CLI does not repeat wait in the queue', async () => {
  await using app = await createTestApp({ settings: { HOLDFAST_REQUESTS_PER_MINUTE: '60' } });
  const at = await createStack(app);
  await spend(app, at.auth);
  const answers = await Promise.all(
    ['a', 'b', 'c'].map((stackName) =>
      app.call('POST', `/api/stacks/${at.organization}/proj`, { auth: at.auth, body: { stackName } }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const metrics = (await app.call('GET', '/metrics', { accept: null })).text;
  expect(metrics).toMatch(/holdfast_requests_limited_total\{limit="token",outcome="delayed"\} [1-3]/);
  expect(metrics).toMatch(/holdfast_requests_limited_total\{limit="token",outcome="rejected"\} [1-9]/);
});

test('all tokens of a user count together, and tokens of others do not', async () => {
  await using app = await createTestApp({ settings: { userRequestsPerMinute: 20 } });
  const at = await createStack(app);
  const { json } = await ok(app.call('POST', '/api/user/tokens', { auth: at.auth, body: {} }));
  const neighbor = await createStack(app);
  await spend(app, `token ${json.tokenValue}`);
  const refused = await app.call('GET', '/api/user/stacks', { auth: at.auth });
  expect(refused.json.message).toContain('by this user: at most 20 per minute');
  expect((await app.call('GET', '/api/user/stacks', { auth: neighbor.auth })).status).toBe(200);
});

describe('addresses', () => {
  const from = (app: TestApp, address: string): Promise<TestResponse> =>
    app.call('GET', '/api/cli/version', { headers: { 'x-forwarded-for': address } });

  test('cannot be made up: what trusted proxies did not write does not count', async () => {
    const statuses = new Set<number>();
    for (let call = 0; call < 5; call++) statuses.add((await from(byAddress, `192.0.2.${call}, 198.51.100.1`)).status);
    expect([...statuses]).toEqual([200, 429]);
    await using direct = await createTestApp({
      database: free.database,
      dataDir: free.dataDir,
      settings: { addressRequestsPerMinute: 1 },
    });
    expect((await from(direct, '192.0.2.1')).status).toBe(200);
    expect((await from(direct, '192.0.2.2')).status).toBe(429);
  });

  test('of one IPv6 network count together', async () => {
    expect((await from(byAddress, '2001:db8:1:2::1')).status).toBe(200);
    expect((await from(byAddress, '2001:db8:1:2:ffff::2')).status).toBe(429);
    expect((await from(byAddress, '2001:db8:1:3::1')).status).toBe(200);
  });

  test('count together on all replicas', async () => {
    const settings = { ...proxied, addressRequestsPerMinute: 100 };
    const { database, dataDir } = free;
    await using one = await createTestApp({ database, dataDir, settings });
    await using other = await createTestApp({ database, dataDir, settings });
    await Promise.all(Array.from({ length: 150 }, () => from(one, '198.51.100.2')));
    await until(async () => {
      const rows = await query<{ level: number }>(
        free,
        `select level from rate_counters where source = 'address 198.51.100.2'`,
      );
      return (rows[0]?.level ?? 0) > 80;
    }, 'the first replica has reported');
    let accepted = 0;
    await until(async () => {
      const { status } = await from(other, '198.51.100.2');
      if (status === 200) accepted++;
      return status === 429;
    }, 'the second replica refuses, too');
    expect(accepted).toBeLessThan(60);
    expect((await from(other, '198.51.100.3')).status).toBe(200);
  });
});
