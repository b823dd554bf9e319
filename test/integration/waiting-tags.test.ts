import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { getStack } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { setRule } from '../support/update-rules.ts';

/** Two replicas, one of which asks clients to call again after a second. */
let database: TestDatabase;
let app: TestApp;
let hasty: TestApp;
const settings = { HOLDFAST_LONG_POLL_SECONDS: '100' };

beforeAll(async () => {
  database = await createTestDatabase();
  app = await createTestApp({ database, settings });
  hasty = await createTestApp({ database, settings: { HOLDFAST_LONG_POLL_SECONDS: '1' } });
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await hasty?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

type Tags = Record<string, string>;

const queued = { 'lock-wait': '60s' };

const setTags = (stack: TestStack, tags: Tags) =>
  ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: tags }));
const tagsOf = async (stack: TestStack): Promise<Tags> => (await getStack(app, stack)).tags;
const cancel = (stack: TestStack, updateId: string) =>
  ok(app.call('POST', `${stack.path}/update/${updateId}/cancel`, { auth: stack.auth }));

/** A stack with tags that an update holds, and a member who may not change tags that rules select by. */
async function heldStack(tags: Tags): Promise<{ stack: TestStack; first: string; member: string }> {
  const stack = await createStack(app);
  await setTags(stack, { ...queued, ...tags });
  await setRule(app, stack, { kind: 'wait-alert', settings: { seconds: 60 }, tag: { name: 'env', value: 'prod' } });
  const { id: first } = await startUpdate(app, stack);
  return { stack, first, member: (await person(app, stack.organization, 'member')).auth };
}

const untilQueued = (stack: TestStack): Promise<void> =>
  until(async () => {
    const rows = await query(
      app,
      `select 1 from update_queue_waiters w join stacks s on s.id = w.stack_id join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id where o.name = $1 and w.process_id is not null`,
      [stack.organization],
    );
    return rows.length > 0;
  }, 'a call waits');

/** Creates and starts an update as the CLI does now, or as older ones do. */
const starts = {
  'by one call': ({ path }: TestStack, auth: string, tags: Tags) =>
    app.call('POST', `${path}/begin-update`, { auth, body: { updateKind: 'update', program: {}, tags } }),
  'by two calls': async ({ path }: TestStack, auth: string, tags: Tags) => {
    const { json } = await ok(app.call('POST', `${path}/update`, { auth, body: {} }));
    return app.call('POST', `${path}/update/${json.updateID}`, { auth, body: { tags } });
  },
};

describe.each(Object.entries(starts))('An update that has waited, started %s', (_, start) => {
  test('keeps tags that were changed meanwhile, also without the permission for them, and warns', async () => {
    const { stack, first, member } = await heldStack({ a: '1', gone: '1' });
    const waits = start(stack, member, { ...queued, a: '1', gone: '1' });
    await untilQueued(stack);
    await setTags(stack, { ...queued, a: '1', env: 'prod' });
    await cancel(stack, first);
    const { headers, status } = await waits;
    expect(status).toBe(200);
    expect(headers['x-pulumi-warning']).toBe(
      'Tags of the stack were changed while this update waited, and stay so: env, gone',
    );
    expect(await tagsOf(stack)).toEqual({ ...queued, a: '1', env: 'prod' });
  });

  test('keeps them for a caller with the permission, and makes its own changes', async () => {
    const { stack, first } = await heldStack({ a: '1', b: '1', c: '1' });
    const waits = start(stack, stack.auth, { ...queued, a: '2', b: '1', d: '1' });
    await untilQueued(stack);
    await setTags(stack, { ...queued, a: '1', b: '3', c: '1', env: 'prod' });
    await cancel(stack, first);
    expect((await waits).status).toBe(200);
    expect(await tagsOf(stack)).toEqual({ ...queued, a: '2', b: '3', d: '1', env: 'prod' });
  });

  test('still changes no tag itself that rules select by', async () => {
    const { stack, first, member } = await heldStack({ env: 'prod' });
    const waits = start(stack, member, queued);
    await untilQueued(stack);
    await setTags(stack, { ...queued, env: 'prod', a: '1' });
    await cancel(stack, first);
    const { json, status } = await waits;
    expect(status).toBe(403);
    expect(json.message).toMatch('Tag "env" decides the rules of its updates');
  });
});

const program = { updateKind: 'update', program: {} };

test('a call that is repeated keeps the wait and the tags with which it has arrived', async () => {
  const { stack, first } = await heldStack({ a: '1' });
  const begin = (at: TestApp, entry = '') =>
    at.call('POST', `${stack.path}/begin-update${entry}`, {
      auth: stack.auth,
      body: { ...program, tags: { ...queued, a: '1' } },
    });
  const one = await begin(hasty);
  expect(one.status).toBe(307);
  await setTags(stack, { env: 'prod', a: '2' });
  const two = await begin(hasty, one.headers['location'] as string);
  expect(two.status).toBe(307);
  const last = begin(app, two.headers['location'] as string);
  await untilQueued(stack);
  await cancel(stack, first);
  expect((await last).status).toBe(200);
  expect(await tagsOf(stack)).toEqual({ env: 'prod', a: '2' });
});

test('a preview replaces the tags, too', async () => {
  const { stack, member } = await heldStack({ a: '1' });
  const tags = { ...queued, b: '1' };
  const { json } = await ok(
    app.call('POST', `${stack.path}/begin-update`, {
      auth: member,
      body: { updateKind: 'preview', program: {}, tags },
    }),
  );
  expect(json.stack.tags).toEqual(tags);
  expect(await tagsOf(stack)).toEqual(tags);
});
