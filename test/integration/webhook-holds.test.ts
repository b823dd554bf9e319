import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { beginning } from '../support/journal-entries.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';
import { removeRule, rulesPath, setRule } from '../support/update-rules.ts';
import { createHook, deliverDue } from '../support/webhooks.ts';

/** Two replicas. */
let receiver: Receiver;
let database: TestDatabase;
let app: TestApp;
let other: TestApp;
/** Holds calls for longer than a test takes. */
let patient: TestApp;
let stack: TestStack;
beforeAll(async () => {
  receiver = await Receiver.start();
  database = await createTestDatabase();
  const settings = { HOLDFAST_LONG_POLL_SECONDS: '1', waitAlertSeconds: 600 };
  app = await createTestApp({ database, settings, overrides: { outgoing: receiver.outgoing() } });
  other = await createTestApp({ database, settings });
  patient = await createTestApp({ database, settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '100' } });
});
afterAll(async () => {
  for (const each of [app, other, patient]) await each?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(async () => {
  stack = await createStack(app);
  receiver.received.length = 0;
});

const commit = 'ab12'.repeat(10);
const environment = { 'git.head': commit, 'git.headName': 'refs/heads/main', 'vcs.owner': 'o', 'vcs.repo': 'r' };
const create = (path = 'update', on = app) =>
  on.call('POST', `${stack.path}/${path}`, { auth: stack.auth, body: { metadata: { message: '', environment } } });

/** Our own events that were recorded, without the events that every update has. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape.
async function notified(): Promise<any[]> {
  await deliverDue(app);
  return receiver.bodies.filter(({ type }) => !/_(started|succeeded|failed)$/.test(type));
}

test('webhooks are notified once of an update that has waited for long, whichever process has its call', async () => {
  await createHook(app, stack, 'stack', { payloadUrl: receiver.url });
  await setRule(app, stack, { kind: 'lock-wait', settings: { seconds: 600 } });
  await setRule(app, stack, { kind: 'wait-alert', settings: { seconds: 600 } });
  await setRule(app, stack, { kind: 'wait-alert', project: 'proj', settings: { seconds: 1 } });
  await setRule(app, stack, { kind: 'supersede', settings: { by: 'branch' } });
  const holder = await startUpdate(app, stack);
  const rows = () => query(app, `select event from webhook_events where event = 'update_waiting'`);
  let path = 'update';
  for (const on of [app, other, app]) {
    const held = await create(path, on);
    expect(held.status).toBe(307);
    path = `update${held.headers['location']}`;
  }
  const last = create(path, patient);
  await until(async () => (await rows()).length > 0, 'it is queued');
  await ok(complete(app, holder));
  await cancel(app, stack, { path: `${stack.path}/update/${(await ok(last)).json.updateID}` });
  expect(await notified()).toMatchObject([
    {
      type: 'update_waiting',
      stackName: 'dev',
      details: {
        ahead: 0,
        commit,
        heldBy: holder.id,
        text: expect.stringMatching(/ has waited for 0 min, 0 before it$/),
      },
    },
  ]);
});

test('freezes, and updates that they refuse or defer', async () => {
  await createHook(app, stack, 'organization', { payloadUrl: receiver.url, groups: ['holdfast'] });
  const freeze = { kind: 'freeze', note: 'Black Friday', project: 'proj', stack: 'dev' };
  const id = await setRule(app, stack, { ...freeze, settings: {} });
  expect((await create()).status).toBe(409);
  await removeRule(app, stack, id);
  const waits = await setRule(app, stack, { ...freeze, settings: { mode: 'wait' } });
  await setRule(app, stack, { kind: 'lock-wait', settings: { seconds: 600 } });
  const first = await create();
  expect(first.status).toBe(307);
  const again = create(`update${first.headers['location']}`, patient);
  await untilWaiting([patient], 1);
  await removeRule(app, stack, waits);
  const created = await again;
  if (created.status === 200) await ok(cancel(app, stack, { path: `${stack.path}/update/${created.json.updateID}` }));
  const events = await notified();
  const short = events.map(({ type, details }) => [type, details.isWaiting ?? null]);
  expect(short.sort()).toEqual(
    [
      ['freeze_lifted', null],
      ['freeze_lifted', null],
      ['freeze_set', null],
      ['freeze_set', null],
      ['update_frozen', false],
      ['update_frozen', true],
      ...events.filter(({ type }) => type === 'update_waiting').map(() => ['update_waiting', null]),
    ].sort(),
  );
  expect(events.find(({ type }) => type === 'freeze_set')).toMatchObject({
    stackName: 'dev',
    details: { text: 'Black Friday', project: 'proj', stack: 'dev', tag: null, settings: {} },
  });
  expect(events.find(({ type }) => type === 'update_frozen')).toMatchObject({ details: { kind: 'update', commit } });
});

test('a freeze that moves to another stack notifies the webhooks of both', async () => {
  const other: TestStack = { ...stack, stack: 'other', path: stack.path.replace(/dev$/, 'other') };
  await ok(app.call('POST', other.path.replace(/\/other$/, ''), { auth: stack.auth, body: { stackName: 'other' } }));
  await createHook(app, stack, 'stack', { payloadUrl: `${receiver.url}/dev` });
  await createHook(app, other, 'stack', { payloadUrl: `${receiver.url}/other` });
  await createHook(app, stack, 'organization', { payloadUrl: `${receiver.url}/all` });
  const freeze = { kind: 'freeze', note: 'Release', project: 'proj', stack: 'dev', settings: {} };
  const id = await setRule(app, stack, freeze);
  const change = (body: object) =>
    ok(app.call('PUT', `${rulesPath(stack)}/${id}`, { auth: stack.auth, body: { ...freeze, ...body } }));
  const notifiedSince = async (): Promise<string[]> => {
    receiver.received.length = 0;
    await deliverDue(app);
    return receiver.received
      .map(({ body, path }) => [path, JSON.parse(body)])
      .map(([path, { stackName = '-', type }]) => `${path} ${type} ${stackName}`)
      .sort();
  };
  expect(await notifiedSince()).toEqual(['/all freeze_set dev', '/dev freeze_set dev']);
  await change({ note: 'Later' });
  expect(await notifiedSince()).toEqual(['/all freeze_set dev', '/dev freeze_set dev']);
  await change({ stack: 'other' });
  expect(await notifiedSince()).toEqual([
    ...['/all freeze_lifted dev', '/all freeze_set other'],
    ...['/dev freeze_lifted dev', '/other freeze_set other'],
  ]);
  await change({ stack: undefined, project: undefined, tag: { name: 'env', value: 'prod' } });
  expect(await notifiedSince()).toEqual([
    '/all freeze_lifted other',
    '/all freeze_set -',
    '/other freeze_lifted other',
  ]);
});

test('an update that a rule stops, and the approval that is requested and given', async () => {
  await createHook(app, stack, 'stack', { payloadUrl: receiver.url });
  await createHook(app, stack, 'organization', {
    payloadUrl: `${receiver.url}/slack`,
    format: 'slack',
    displayName: 'slack',
  });
  await setRule(app, stack, { kind: 'change-limit', settings: { changes: 0 } });
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  const { json } = await ok(create());
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth: stack.auth, body: { journalVersion: 1 } }));
  const update = { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: 2 };
  const resource = { urn: 'urn:pulumi:dev::proj::a:b:C::x', type: 'a:b:C', custom: true };
  const batch = [beginning(1, 1, { resource, type: 'deleting' })];
  for (const on of [app, other]) expect((await append(on, update, batch)).status).toBe(403);
  await ok(complete(app, update, 'failed'));
  const name = `${stack.organization}/proj/dev`;
  for (const reason of ['reviewed', 'longer'])
    expect(await runAdminCommand(app, 'approve', name, commit, '--reason', reason)).toMatchObject({ code: 0 });
  const events = await notified();
  expect(
    receiver.bodies.filter(({ text }) => /update was stopped: An update of organization .* at most 0/.test(text)),
  ).toHaveLength(1);
  expect(
    events.filter(({ type }) => type !== undefined).map(({ type, details, result }) => [type, details.text, result]),
  ).toEqual(
    expect.arrayContaining([
      ['update_stopped', expect.stringContaining('at most 0'), undefined],
      ['approval_asked', expect.stringContaining('at most 0'), undefined],
      ['approval_given', 'reviewed', undefined],
      ['approval_given', 'longer', undefined],
    ]),
  );
  expect(events.filter(({ type }) => /^(update_stopped|approval)/.test(type))).toHaveLength(4);
});

test('without webhooks nothing is recorded, and an organization with a freeze can go', async () => {
  const count = async () => (await query(app, 'select id from webhook_events')).length;
  const before = await count();
  await setRule(app, stack, { kind: 'freeze', settings: {} });
  expect((await create()).status).toBe(409);
  expect(await count()).toBe(before);
  await createHook(app, stack, 'organization', { payloadUrl: receiver.url });
  await query(
    app,
    'delete from stacks where project_id in (select p.id from projects p join organizations o on o.id = p.organization_id where o.name = $1)',
    [stack.organization],
  );
  await query(app, 'delete from organizations where name = $1', [stack.organization]);
});
