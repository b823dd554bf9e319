import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runAdminCommand } from '../support/admin.ts';
import { listEvents } from '../support/audit.ts';
import { person } from '../support/grants.ts';
import { untilWaiting as untilWaitingAt } from '../support/queue-metrics.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { cancel, complete } from '../support/update-calls.ts';
import { removeRule, setRule } from '../support/update-rules.ts';

/** Two replicas. */
let database: TestDatabase;
let app: TestApp;
let other: TestApp;
const settings = { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' };

beforeAll(async () => {
  database = await createTestDatabase();
  app = await createTestApp({ database, settings });
  other = await createTestApp({ database, settings });
});
afterAll(async () => {
  for (const each of [app, other]) await each?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

const create = (stack: TestStack, { kind = 'update', message = '', at = app, auth = stack.auth } = {}) =>
  at.call('POST', `${stack.path}/${kind}`, { auth, body: { metadata: { message, environment: {} } } });

const cancelById = (stack: TestStack, updateId: string) =>
  ok(cancel(app, stack, { path: `${stack.path}/update/${updateId}` }));

const freeze = (scope: object = {}, rest: object = {}) => ({
  kind: 'freeze',
  settings: rest,
  note: 'Black Friday',
  ...scope,
});

const untilWaiting = (count: number) => untilWaitingAt([app, other], count);

describe('a frozen stack', () => {
  test.each(['update', 'refresh', 'destroy'])('refuses %s with the note, until thawed', async (kind) => {
    const stack = await createStack(app);
    const id = await setRule(app, stack, freeze({ project: 'proj', stack: 'dev' }, { until: '2099-01-01T00:00:00Z' }));
    const refused = await create(stack, { kind, at: other });
    expect(refused.status).toBe(409);
    expect(refused.json.message).toBe(
      'Frozen: updates of stack proj/dev are not allowed until 2099-01-01T00:00:00Z: Black Friday. Previews still run; `pulumi cancel` does not help. In an emergency, a user with the permission manage can start an update with --message "break-glass: <reason>", which is recorded',
    );
    const preview = await ok(create(stack, { kind: 'preview' }));
    expect(preview.status).toBe(200);
    await removeRule(app, stack, id);
    await cancelById(stack, (await ok(create(stack, { kind, at: other }))).json.updateID);
  });

  test('is one in whose place, or with whose tag, a freeze is', async () => {
    const stack = await createStack(app);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { env: 'prod' } }));
    for (const scope of [{}, { project: 'proj' }, { tag: { name: 'env', value: 'prod' } }]) {
      const id = await setRule(app, stack, freeze(scope));
      expect((await create(stack)).status).toBe(409);
      await removeRule(app, stack, id);
    }
    for (const scope of [{ project: 'x' }, { tag: { name: 'env', value: 'dev' } }])
      await setRule(app, stack, freeze(scope));
    await setRule(app, stack, freeze({}, { until: '2020-01-01T00:00:00Z' }));
    await ok(create(stack));
  });

  test('lets an update that runs go on', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await setRule(app, stack, freeze());
    await ok(complete(app, update));
  });

  test('cannot be imported into, renamed or deleted', async () => {
    const stack = await createStack(app);
    const id = await setRule(app, stack, freeze({ project: 'proj', stack: 'dev' }));
    const calls = () => [
      app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }),
      app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'other' } }),
      app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }),
    ];
    for (const call of calls()) {
      const { json, status } = await call;
      expect([status, json.message]).toEqual([409, expect.stringMatching(/^Frozen: /)]);
    }
    await removeRule(app, stack, id);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
  });
});

describe('a freeze that lets updates wait', () => {
  test('ends for waiting calls when it is thawed, at every replica', async () => {
    const stack = await createStack(app);
    const id = await setRule(app, stack, freeze({}, { mode: 'wait' }));
    const calls = [create(stack), create(stack, { at: other })];
    await untilWaiting(2);
    await removeRule(app, stack, id);
    const first = await Promise.race(calls);
    expect(first.status).toBe(200);
    expect(first.json.messages[0].message).toMatch(/^Waited .*, which was frozen; 1 more waits for it$/);
    await cancelById(stack, first.json.updateID);
    const answers = await Promise.all(calls);
    const second = answers.find(({ json }) => json.updateID !== first.json.updateID);
    expect(second?.status).toBe(200);
    await cancelById(stack, second?.json.updateID);
  });

  test('ends for them at its end', async () => {
    const stack = await createStack(app);
    const end = new Date(Date.now() + 2_000).toISOString();
    await setRule(app, stack, freeze({}, { mode: 'wait', until: end }));
    const { json, status } = await create(stack);
    expect(status).toBe(200);
    expect(Date.now()).toBeGreaterThanOrEqual(new Date(end).getTime() - 100);
    await cancelById(stack, json.updateID);
  });

  test('refuses bodies that may not wait, and bodies that have waited too long', async () => {
    const stack = await createStack(app);
    await setRule(app, stack, freeze({}, { mode: 'wait' }));
    for (const seconds of [0, 1]) {
      await setRule(app, stack, { kind: 'lock-wait', settings: { seconds } });
      const { json, status } = await create(stack);
      expect(status).toBe(409);
      expect(json.message).toMatch('Frozen: updates of organization');
    }
    await untilWaiting(0);
  });
});

describe('in an emergency', () => {
  const message = 'break-glass: the shop is down';

  test('an admin passes before waiting calls, which is recorded', async () => {
    const stack = await createStack(app);
    const id = await setRule(app, stack, freeze({}, { mode: 'wait' }));
    const held = create(stack, { at: other });
    await untilWaiting(1);
    const first = await ok(create(stack, { message }));
    // The second one has to wait for the first, and still goes before the other.
    const second = create(stack, { message: 'Break-Glass: and down again' });
    await untilWaiting(2);
    await cancelById(stack, first.json.updateID);
    const { json } = await second;
    await removeRule(app, stack, id);
    await cancelById(stack, json.updateID);
    await cancelById(stack, (await held).json.updateID);
    const events = (await listEvents(app, stack.organization)).filter(({ action }) => action === 'update.break-glass');
    expect(events).toMatchObject([
      { object: `${stack.organization}/proj/dev`, details: { reason: 'the shop is down', rules: [id] } },
      { details: { reason: 'and down again', rules: [id] } },
    ]);
    expect(events[0]?.['update_id']).toBe(first.json.updateID);
  });

  test('other callers do not', async () => {
    const stack = await createStack(app);
    await setRule(app, stack, freeze());
    const { auth } = await person(app, stack.organization, 'member');
    const refused = await create(stack, { message, auth });
    expect(refused.status).toBe(409);
    expect(refused.json.message).toMatch(
      /Breaking the glass needs the permission manage .* `pulumi cancel` does not help$/,
    );
    expect((await create(stack, { message: 'break-glass:' })).status).toBe(409);
    expect((await create(stack, { message: 'not break-glass: this' })).status).toBe(409);
    expect(await listEvents(app, stack.organization)).not.toContainEqual(
      expect.objectContaining({ action: 'update.break-glass' }),
    );
  });
});

test('operators freeze and thaw', async () => {
  const stack = await createStack(app);
  const run = (...words: string[]) => runAdminCommand(app, ...words, '--organization', stack.organization);
  const frozen = await run('freeze', '--stack', 'proj/dev', '--note', 'Sale', '--until', '2099-01-01T00:00:00Z');
  expect(frozen).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Froze stack proj\/dev \(rule /) });
  expect((await create(stack)).json.message).toMatch('until 2099-01-01T00:00:00Z: Sale.');
  expect((await run('thaw')).stdout).toMatch('There is no freeze of organization');
  expect((await run('thaw', '--stack', 'proj/dev')).stdout).toMatch('Thawed stack proj/dev.');
  const windows = ['--window', `0 ${new Date().getUTCHours()} * * *`, '--minutes', '120', '--time-zone', 'UTC'];
  expect(await run('freeze', ...windows)).toMatchObject({ code: 0 });
  const repeated = await run('freeze', ...windows);
  expect(repeated).toMatchObject({ code: 0, stdout: expect.stringMatching(/is frozen already \(rule /) });
  expect((await create(stack)).status).toBe(409);
  for (const words of [
    ['--window', '* * * * *'],
    ['--window', '* * * * *', '--minutes', '5', '--time-zone', 'UTC'],
    ['--window', 'x', '--minutes', '5'],
    ['--until', 'tomorrow'],
  ])
    expect(await run('freeze', ...words)).toMatchObject({ code: 1 });
  const events = (await listEvents(app, stack.organization)).filter(({ action }) => action.startsWith('update-rule'));
  expect(events.map(({ action, object }) => [action, object])).toEqual([
    ['update-rule.set', 'proj/dev'],
    ['update-rule.remove', 'proj/dev'],
    ['update-rule.set', stack.organization],
  ]);
});
