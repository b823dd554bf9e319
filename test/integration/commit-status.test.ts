import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { DeliveryLoop } from '../../src/shared/webhooks/delivery-loop.ts';
import { query } from '../support/database.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, ok, type RunningUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';
import { createHook, deliverDue, endPauses, readLog } from '../support/webhooks.ts';

const commit = '0123456789abcdef0123456789abcdef01234567';
const token = 'token-of-the-code-host';
let host: Receiver;
let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  host = await Receiver.start();
  app = await createTestApp({ overrides: { outgoing: host.outgoing() } });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await query(app, 'delete from webhooks');
  await query(app, 'delete from webhook_events');
  host.received.length = 0;
  host.answer = () => 201;
  stack = await createStack(app);
});

/** A code host, as `pulumi org webhook new --hook-format … --url … --secret …` adds it. */
const addHost = (format: 'github_status' | 'gitlab_status') =>
  createHook(app, stack, 'organization', { format, payloadUrl: host.url, secret: token });

/** An update with the environment that the CLI sends in a repository. */
async function start(kind = 'update', more: object = {}): Promise<RunningUpdate> {
  const environment = {
    ...{ 'git.head': commit, 'vcs.kind': '127.0.0.1', 'vcs.owner': 'acme', 'vcs.repo': 'web' },
    ...{ 'ci.build.url': 'https://ci.example/run/1' },
    ...more,
  };
  const body = { metadata: { message: 'm', environment } };
  const { json } = await ok(app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
  return { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: 1 };
}

test.each([
  ['github_status', ['pending', 'success'], `/repos/acme/web/statuses/${commit}`],
  ['gitlab_status', ['running', 'success'], `/api/v4/projects/acme%2Fweb/statuses/${commit}`],
] as const)('%s: updates and previews set the status of their commit', async (format, states, path) => {
  const hook = await addHost(format);
  const update = await start();
  await deliverDue(app);
  await ok(complete(app, update));
  await deliverDue(app);
  await ok(complete(app, await start('preview')));
  await deliverDue(app);
  expect(host.received.map((each) => `${each.method} ${each.path}`)).toEqual(Array(3).fill(`POST ${path}`));
  // For the preview only the end: it had ended before its start was notified.
  expect(host.bodies.map(({ state }) => state)).toEqual([...states, states[1]]);
  const name = `pulumi/proj/dev`;
  expect(host.bodies.map(({ context, name: label }) => context ?? label)).toEqual([name, name, `${name} (preview)`]);
  expect(host.bodies[1].target_url).toBe('https://ci.example/run/1');
  const { authorization, 'private-token': privateToken } = host.received[0]?.headers ?? {};
  expect(format === 'github_status' ? authorization : privateToken).toContain(token);
  const log =
    JSON.stringify(await readLog(app, stack, hook)) + JSON.stringify(await query(app, 'select * from webhooks'));
  expect(log).not.toContain(token);
});

test('the status of the end never overtakes that of the start', async () => {
  await addHost('github_status');
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  host.answer = async ({ body }) => {
    if (body.includes('pending')) await gate;
    return 201;
  };
  const update = await start();
  const slow = new DeliveryLoop(app.context, 'all');
  await slow.begin(new AbortController().signal);
  await until(() => host.received.length === 1, 'the start is being sent');
  await ok(complete(app, update));
  // Others have to wait for the one that is on its way.
  expect(await deliverDue(app)).toBe(0);
  open();
  await slow.settle();
  expect(await deliverDue(app)).toBe(1);
  expect(host.bodies.map(({ state }) => state)).toEqual(['pending', 'success']);
});

test('a start that could not be notified in time is left out', async () => {
  const hook = await addHost('github_status');
  host.answer = () => 503;
  const update = await start();
  await deliverDue(app);
  host.answer = () => 201;
  await ok(complete(app, update));
  await deliverDue(app);
  await endPauses(app);
  await deliverDue(app);
  expect(host.bodies.map(({ state }) => state)).toEqual(['pending', 'success']);
  const states = (await readLog(app, stack, hook)).map(({ kind, state }: Record<string, string>) => [kind, state]);
  expect(states).toEqual([
    ['update_succeeded', 'delivered'],
    ['update_started', 'left-out'],
  ]);
});

test('a late retry does not replace the status of a newer run of the same commit', async () => {
  const hook = await addHost('github_status');
  const otherCommit = commit.replaceAll('0', 'f');
  host.answer = ({ body }) => (body.includes('failure') ? 502 : 201);
  const end = async (update: RunningUpdate, status: string) => {
    await ok(complete(app, update, status));
    await deliverDue(app);
  };
  await end(await start(), 'failed');
  await end(await start('update', { 'git.head': otherCommit }), 'failed');
  await end(await start('preview'), 'succeeded');
  await end(await start('destroy', { 'git.head': 'e'.repeat(40), 'ci.pr.headSHA': commit.toUpperCase() }), 'succeeded');
  host.answer = () => 201;
  host.received.length = 0;
  await endPauses(app);
  await deliverDue(app);
  // The other commit has no newer run.
  expect(host.received.map(({ path }) => path)).toEqual([`/repos/acme/web/statuses/${otherCommit}`]);
  const log = (await readLog(app, stack, hook)) as { kind: string; state: string; responseBody: string }[];
  expect(log.filter(({ kind, state }) => kind === 'update_failed' && state === 'left-out')).toMatchObject([
    { responseBody: 'a newer update of the same commit has begun' },
  ]);
});

test('the token of a code host is not moved to another path, nor a key turned into a token, without the secret', async () => {
  const change = (hook: string, body: object) => app.call('PATCH', hook, { auth: stack.auth, body });
  const hook = await addHost('github_status');
  expect((await change(hook, { payloadUrl: `${host.url}/mallory` })).status).toBe(400);
  expect((await change(hook, { format: 'gitlab_status' })).status).toBe(400);
  await ok(change(hook, { payloadUrl: `${host.url}/api/v3`, secret: token }));
  const signed = await createHook(app, stack, 'organization', {
    ...{ displayName: 'signed', format: 'raw', payloadUrl: `${host.url}/acme`, secret: 'key' },
  });
  await ok(change(signed, { payloadUrl: `${host.url}/acme/ci` }));
  await ok(change(signed, { format: 'slack' }));
  expect((await change(signed, { format: 'gitlab_status' })).status).toBe(400);
  await ok(change(signed, { format: 'gitlab_status', secret: '__remove-secret' }));
});

test('updates outside of a repository of this host set none', async () => {
  await addHost('github_status');
  await ok(complete(app, await start('update', { 'vcs.kind': 'github.com' })));
  await ok(complete(app, await start('update', { 'git.head': '' })));
  await ok(complete(app, await start('update', { 'vcs.repo': '../../user' })));
  await deliverDue(app);
  expect(host.received).toEqual([]);
});
