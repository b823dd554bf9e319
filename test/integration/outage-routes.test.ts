import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ProcedureMeta } from '../../src/api/access/procedures/trpc.ts';
import { appRouter } from '../../src/api/router.ts';
import { browserOf, PageBrowser } from '../support/browser.ts';
import { changedTables, readTables } from '../support/changed-tables.ts';
import { exchange } from '../support/exchange.ts';
import { type Person, person } from '../support/grants.ts';
import { pages } from '../support/page-routes.ts';
import { PolicyCalls, pathOf } from '../support/policy-packs.ts';
import { procedureTable } from '../support/procedure-table.ts';
import { command, queryPath } from '../support/procedures.ts';
import { bodySampleOf, listRoutes } from '../support/routes.ts';
import { provisioningToken } from '../support/scim.ts';
import { ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { openTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import {
  createTestApp,
  createTestDatabase,
  type TestApp,
  type TestDatabase,
  type TestResponse,
} from '../support/test-app.ts';
import { until } from '../support/until.ts';

// Without its database, no route answers with anything but 503 and when to retry, and nothing has changed afterwards.

/** Routes that answer without the database: what they answer with. */
const answering: Readonly<Record<string, number>> = {
  // Load balancers and monitoring ask them, and do not wait for a time.
  'GET /healthz': 503,
  'GET /healthz/stream': 400,
  'GET /readyz': 503,
  'GET /metrics': 200,
  // The same for everyone.
  'GET /sign-in': 200,
  'GET /sign-in/link': 200,
  'GET /assets/sign-in.css': 200,
  'GET /assets/sign-in.js': 200,
  'GET /welcome/cli': 200,
  'GET /api/capabilities': 200,
  'GET /api/cli/version': 200,
  'GET /api/openapi.json': 200,
  'GET /api/openapi/pulumi-spec.json': 200,
  // The server of this test has no identity provider.
  'GET /sign-in/provider': 404,
  'GET /sign-in/provider/callback': 404,
  // The URL is signed for uploads only.
  'GET /policy-packs/:versionId': 403,
  // A ceremony begins with its options.
  'POST /sign-in/passkey': 400,
};

// As the routes accept them; whether they exist is in the database.
const linkSample = `hfl-${'a'.repeat(40)}`;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwtSample = `${part({ alg: 'ES256', kid: 'k' })}.${part({ iss: 'https://issuer.example.com', sub: 's' })}.${'A'.repeat(86)}`;
const embeds = { badge: '', feed: '' };

let database: TestDatabase;
let proxy: TcpProxy;
let app: TestApp;
let owner: Person;
let stack: TestStack;
let update: RunningUpdate;
let provisioning: string;
let archivePath: string;
let browser: PageBrowser;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openTcpProxy(database.url);
  app = await createTestApp({ database: { ...database, url: proxy.url } });
  owner = await person(app, 'acme', 'admin');
  const { auth } = owner;
  provisioning = await provisioningToken(app, 'acme');
  await ok(app.call('POST', '/api/stacks/acme/proj', { auth, body: { stackName: 'dev' } }));
  stack = { organization: 'acme', project: 'proj', stack: 'dev', auth, path: '/api/stacks/acme/proj/dev' };
  update = await startUpdate(app, stack);
  archivePath = pathOf((await ok(new PolicyCalls(app, stack).begin())).json.uploadURI);
  for (const kind of ['badge', 'feed'] as const) {
    const input = { organization: 'acme', project: 'proj', stack: 'dev', kind };
    embeds[kind] = (await command(app, owner.token, 'embeds.createOfStack', input)).data.token;
  }
  browser = await browserOf(app, owner.login);
});
afterAll(async () => {
  proxy.accept();
  await app[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function callRoute(route: string) {
  const [method, pattern] = route.split(' ') as [string, string];
  if (route === 'PUT /policy-packs/:versionId') return app.call(method, archivePath, { body: 'x', accept: null });
  const url = pattern
    .replace(/:kind\([^/]*\)/, 'update')
    .replace(':organization', 'acme')
    .replace(':project', 'proj')
    .replace(':stackVersion', '1')
    .replace(':stack', 'dev')
    .replace(':updateId', update.id)
    .replaceAll(/:\w+/g, () => randomUUID());
  const page = pages[route.replace(/^HEAD /, 'GET ')];
  if (page !== undefined && method === 'POST') {
    const sender = page === 'session' ? browser : new PageBrowser(app);
    return sender.post(url, { login: 'nobody', password: 'none', next: '', link: linkSample });
  }
  if (page === 'session') {
    const cookie = [...browser.cookies].map((each) => each.join('=')).join('; ');
    return app.call(method, url, { headers: { cookie }, accept: 'text/html' });
  }
  if (pattern.startsWith('/api/embeds/'))
    return app.call(method, `${url}?token=${url.endsWith('.svg') ? embeds.badge : embeds.feed}`, { accept: null });
  if (route === 'POST /api/oauth/token') return exchange(app, 'acme', jwtSample);
  const isOfLease =
    pattern.startsWith('/api/stacks/') &&
    /\/(complete|renew_lease|checkpoint\w*|journalentries|events\/batch)$/.test(pattern);
  const auth = url.startsWith('/scim/') ? provisioning : isOfLease ? update.lease : owner.auth;
  const isRead = ['GET', 'HEAD', 'OPTIONS', 'DELETE'].includes(method);
  return app.call(method, url, { auth, ...(isRead ? {} : { body: bodySampleOf(pattern) }) });
}

async function whileRefused(work: () => Promise<void>): Promise<void> {
  const before = await readTables(app);
  proxy.refuse();
  try {
    await work();
  } finally {
    proxy.accept();
  }
  // Work that the outage has put off would follow.
  await until(async () => (await app.call('GET', '/readyz')).status === 200, 'the server answers');
  expect(await changedTables(app, before)).toEqual([]);
}

/** 503 and when to retry. */
const isPutOff = ({ headers, status }: TestResponse): boolean => status === 503 && Number(headers['retry-after']) > 0;

test('without the database, every route answers 503 with Retry-After, except for a short list, and changes nothing', async () => {
  const wrong: object[] = [];
  const routes = listRoutes(app.app);
  expect(routes.length).toBeGreaterThan(150);
  expect(Object.keys(answering).filter((route) => !routes.includes(route))).toEqual([]);
  await whileRefused(async () => {
    for (const route of routes) {
      const response = await callRoute(route);
      const { headers, status, text } = response;
      const answer = answering[route.replace(/^HEAD /, 'GET ')];
      if (answer === undefined ? !isPutOff(response) : answer !== status)
        wrong.push({ route, status, retry: headers['retry-after'], text: text.slice(0, 200) });
    }
  });
  expect(wrong).toEqual([]);
});

test('without the database, every procedure answers 503 with Retry-After, and changes nothing', async () => {
  const { procedures } = appRouter._def as unknown as {
    procedures: Record<string, { _def: { meta?: ProcedureMeta; type: string } }>;
  };
  const place = { organization: 'acme', project: 'proj', stack: 'dev' };
  const wrong: object[] = [];
  await whileRefused(async () => {
    for (const [name, { _def }] of Object.entries(procedures)) {
      const row = _def.type === 'subscription' ? { input: { topics: [] } } : procedureTable[name];
      if (!row) throw new Error(`${name} is missing in the table of procedures`);
      const { input: given = {} } = row;
      const input = { ...place, ...(typeof given === 'function' ? given(place) : given) };
      const { auth } = owner;
      const response = await (_def.type === 'mutation'
        ? app.call('POST', `/trpc/${name}`, { auth, accept: null, body: input })
        : app.call('GET', queryPath(name, input), { auth, accept: null }));
      if (!isPutOff(response))
        wrong.push({
          name,
          status: response.status,
          retry: response.headers['retry-after'],
          text: response.text.slice(0, 200),
        });
    }
  });
  expect(wrong).toEqual([]);
});
