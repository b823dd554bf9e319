import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { ClusterProcess } from '../../testkit/cluster-process.ts';
import { findFixedPorts } from '../../testkit/fixed-ports.ts';
import { proxySpec } from '../../testkit/proxy-spec.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { PageBrowser, setPassword } from '../support/browser.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { LivePage } from '../support/live.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';
import { cancel } from '../support/update-calls.ts';
import { WireServer } from '../support/wire.ts';

const apps = testReplicas({}, {});
let servers: [WireServer, WireServer];

beforeAll(async () => {
  servers = [await WireServer.listen(apps[0]), await WireServer.listen(apps[1])];
});

const topicsOf = ({ organization, project, stack }: TestStack): [string, string] => [
  `stack:${organization}/${project}/${stack}`,
  `organization:${organization}`,
];

function watch(at: number, topics: readonly string[], auth: string, after?: string): Promise<LivePage> {
  return LivePage.open((servers[at] as WireServer).url, topics, {
    headers: { authorization: auth },
    ...(after === undefined ? {} : { after }),
  });
}

test('a page is notified, uncompressed and at once, of commits of another replica', async () => {
  const [one] = apps;
  const stack = await createStack(one);
  const [topic, organization] = topicsOf(stack);
  using page = await watch(1, [topic, organization], stack.auth);
  expect(page.response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  expect(page.response.headers.get('content-encoding')).toBeNull();
  expect(page.response.headers.get('cache-control')).toMatch(/no-transform/);
  expect(page.messages[0]).toEqual({ topic: null, kind: 'ready' });
  const update = await startUpdate(one, stack);
  await page.gets({ topic, kind: 'update.started', updateId: update.id });
  await page.gets({ topic: organization, kind: 'update.started' });
  using ofUpdate = await watch(0, [`update:${update.id}`], stack.auth);
  await ok(cancel(one, stack, update));
  await ofUpdate.gets({ kind: 'update.ended', updateId: update.id });
});

test('users are not notified of objects that they may not see or that do not exist', async () => {
  const [one] = apps;
  const stack = await createStack(one);
  const [topic, organization] = topicsOf(stack);
  const update = await startUpdate(one, stack);
  const stranger = await person(one, 'elsewhere', 'admin');
  const restricted = await person(one, stack.organization, 'member');
  await grant(one, restricted.organizationId, { userId: restricted.userId }, 'deny', ['read'], { stacks: '*/*' });
  const errorOf = async (name: string, auth: string): Promise<string | null> => {
    using page = await watch(0, [name], auth);
    await page.ends();
    expect(page.messages).toEqual([]);
    return page.error;
  };
  for (const name of [topic, organization, `update:${update.id}`])
    expect(await errorOf(name, stranger.auth)).toBe('NOT_FOUND');
  for (const name of [topic, `update:${update.id}`]) expect(await errorOf(name, restricted.auth)).toBe('NOT_FOUND');
  expect(await errorOf(`${topic}x`, stack.auth)).toBe('NOT_FOUND');
  expect(await errorOf('update:00000000-0000-4000-8000-000000000000', stack.auth)).toBe('NOT_FOUND');
  for (const name of ['', 'x', 'stack:a/b', 'organization:a/b', 'update:x', 'stack:a/b/c/d'])
    expect(await errorOf(name, stack.auth)).toBe('BAD_REQUEST');
});

test('a user who loses a session, a membership or a grant loses the stream', async () => {
  const [one] = apps;
  const stack = await createStack(one);
  const [topic] = topicsOf(stack);

  const member = await person(one, stack.organization, 'member');
  await setPassword(one, member.login);
  const browser = new PageBrowser(one);
  expect((await browser.signIn(member.login)).status).toBe(303);
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  using signedIn = await LivePage.open(servers[1].url, [topic], {
    headers: { cookie, 'sec-fetch-site': 'same-origin' },
  });
  expect(signedIn.messages).toHaveLength(1);
  await query(one, 'delete from sessions where user_id = $1', [member.userId]);
  await signedIn.ends();
  expect(signedIn.error).toBe('FORBIDDEN');

  using byToken = await watch(1, [topic], member.auth);
  using others = await watch(1, [topic], stack.auth);
  await query(one, 'delete from memberships where user_id = $1', [member.userId]);
  await byToken.ends();
  expect(byToken.error).toBe('FORBIDDEN');

  const denied = await person(one, stack.organization, 'member');
  using granted = await watch(1, [topic], denied.auth);
  await grant(one, denied.organizationId, { userId: denied.userId }, 'deny', ['read'], { stacks: '*/*' });
  await granted.ends();
  expect(granted.error).toBe('FORBIDDEN');
  expect(others.isEnded).toBe(false);
});

test('a replica that stops ends its streams without a word, and another resumes them', async () => {
  const [one] = apps;
  const stack = await createStack(one);
  const [topic] = topicsOf(stack);
  using watcher = await watch(0, [topic], stack.auth);
  const third: TestApp = await createTestApp({ database: one.database, dataDir: one.dataDir });
  const { url } = await WireServer.listen(third);
  using page = await LivePage.open(url, [topic], { headers: { authorization: stack.auth } });
  const update = await startUpdate(one, stack);
  await page.gets({ kind: 'update.started' });
  await third[Symbol.asyncDispose]();
  await page.ends();
  expect(page.error).toBeNull();
  // With this event, clients would not come back.
  expect(page.events.map(({ event }) => event)).not.toContain('return');
  await ok(cancel(one, stack, update));
  await watcher.gets({ kind: 'update.ended' });
  using resumed = await watch(0, [topic], stack.auth, page.lastId);
  await resumed.gets({ kind: 'update.ended', updateId: update.id });
  expect(resumed.has({ kind: 'refetch' })).toBe(false);
  using unknown = await watch(0, [topic], stack.auth, 'x.1.0');
  expect(unknown.messages).toEqual([{ topic: null, kind: 'refetch' }]);
});

test('the proxy passes on each notification at once', async () => {
  const { caddy } = await ensureToolchain({ only: ['caddy'] });
  const home = await mkdtemp(join(tmpdir(), 'holdfast-live-proxy-'));
  const web = createServer((_request, response) => response.end('web'));
  await once(web.listen(0, '127.0.0.1'), 'listening');
  const [port = 0] = await findFixedPorts(1);
  const { port: webPort } = web.address() as AddressInfo;
  const proxy = new ClusterProcess(proxySpec(caddy, home, port, [servers[0].port], webPort), () => {});
  try {
    await proxy.start();
    const stack = await createStack(apps[1]);
    const [topic] = topicsOf(stack);
    const headers = { authorization: stack.auth, 'accept-encoding': 'gzip' };
    using page = await LivePage.open(`http://127.0.0.1:${port}`, [topic], { headers });
    expect(page.response.headers.get('content-encoding')).toBeNull();
    const update = await startUpdate(apps[1], stack);
    await page.gets({ kind: 'update.started', updateId: update.id });
  } finally {
    await proxy.stop();
    web.close();
    web.closeAllConnections();
    await rm(home, { recursive: true, force: true });
  }
});

test('an organization that opens all its streams leaves some for others, and learns when to retry', async () => {
  await using small = await createTestApp({
    settings: { HOLDFAST_MAX_CONNECTIONS: '16', maxConnectionsPerAddress: 16 },
  });
  const { url } = await WireServer.listen(small);
  const [greedy, other] = [await createStack(small), await createStack(small)];
  const viewer = `token ${await small.createUser(greedy.organization, 'viewer')}`;
  const pages: LivePage[] = [];
  const open = async ({ organization }: TestStack, auth: string): Promise<LivePage> => {
    const page = await LivePage.open(url, [`organization:${organization}`], { headers: { authorization: auth } });
    pages.push(page);
    return page;
  };
  try {
    for (let at = 0; at < 6; at++) expect((await open(greedy, at % 2 === 0 ? greedy.auth : viewer)).error).toBeNull();
    const refused = await open(greedy, viewer);
    expect(refused.error).toBe('TOO_MANY_REQUESTS');
    expect(refused.events.at(-1)?.data.data).toMatchObject({ httpStatus: 429, retryAfterSeconds: 30 });
    expect((await open(other, other.auth)).error).toBeNull();
    pages[0]?.[Symbol.dispose]();
    await until(async () => (await open(greedy, viewer)).error === null, 'a stream in place of one that has ended');
  } finally {
    for (const page of pages) page[Symbol.dispose]();
  }
});
