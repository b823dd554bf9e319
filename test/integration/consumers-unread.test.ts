import { expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { create, run } from '../support/output-events.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { testApp } from '../support/test-app.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook } from '../support/webhooks.ts';

const app = testApp({ settings: { statementTimeoutMs: 4_000 } });

/** Statements about consumers of stacks wait for as long as they are let. */
async function unreadable(work: () => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query('lock table stack_resources in access exclusive mode');
    await work();
  } finally {
    await client.end();
  }
}

const unread = 'may be read by other stacks: looking them up took too long';
const destroy = ({ auth, path }: TestStack) => app.call('POST', `${path}/destroy`, { auth, body: {} });
const remove = ({ auth, path }: TestStack) => app.call('DELETE', `${path}?force=false`, { auth });
const cancel = ({ auth, path }: TestStack, updateId: string) =>
  ok(app.call('POST', `${path}/update/${updateId}/cancel`, { auth }));

test('consumers that are not found at once fail no call: its warning says so', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  await unreadable(async () => {
    await run(app, stack, {}, true);
    const { json } = await ok(create(app, stack, false));
    expect(json.messages).toEqual([{ severity: 'info', message: expect.stringContaining(`which ${unread}.`) }]);
    await cancel(stack, json.updateID);
    await run(app, stack, {}, false);
    const destroyed = await ok(destroy(stack));
    expect(destroyed.json.messages[0].message).toContain(unread);
    await cancel(stack, destroyed.json.updateID);
    expect((await ok(remove(stack))).headers['x-pulumi-warning']).toContain(unread);
  });
});

test('an update that removes outputs ends and is notified, also if it is not known which stacks read them', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  await createHook(app, stack, 'organization', {
    name: 'h',
    payloadUrl: 'https://example.com',
    format: 'raw',
    groups: [],
    filters: ['outputs_removed'],
  });
  await unreadable(() => run(app, stack, {}, false));
  const id = await stackId(app, stack);
  expect(await query(app, `select status from updates where stack_id = $1`, [id])).toEqual([{ status: 'succeeded' }]);
  const sent = await query<{ details: string }>(
    app,
    `select details from webhook_events where stack_id = $1 and event = 'outputs_removed'`,
    [id],
  );
  expect(sent.map(({ details }) => JSON.parse(details))).toEqual([
    expect.objectContaining({
      consumers: null,
      text: expect.stringContaining('it is not known which stacks read them'),
    }),
  ]);
});

test('the details of an update that removed outputs state no consumers that were not read', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'warn' } });
  const { json } = await run(app, stack, { name: 'n' }, true);
  const ref = { organization: stack.organization, project: stack.project, stack: stack.stack };
  const removed = async () =>
    (await ask(app, stack.auth.replace('token ', ''), 'updates.statistics', { ...ref, updateId: json.updateID })).data
      .removedOutputs;
  await unreadable(async () =>
    expect(await removed()).toEqual({ names: ['url'], isUnknown: false, consumers: unread }),
  );
  expect(await removed()).toEqual({ names: ['url'], isUnknown: false, consumers: null });
});

test('a rule does not let pass what it cannot read', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await unreadable(async () => {
    expect((await destroy(stack)).status).toBe(503);
    expect((await remove(stack)).status).toBe(503);
    await run(app, stack, {}, true);
    expect((await create(app, stack, false)).status).toBe(503);
  });
});
