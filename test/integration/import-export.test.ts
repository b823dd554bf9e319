import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';
import { cancel, complete, getUpdate, saveState } from '../support/update-calls.ts';

const app = testApp();

const send = (stack: TestStack, body: string | object) =>
  app.call('POST', `${stack.path}/import`, { auth: stack.auth, body });

describe('imports are exported byte for byte', () => {
  test.each([
    [
      'odd numbers and white space',
      '{ "version" : 3 ,\n"deployment":{"resources":[],"n":[9007199254740993,1.0,1e400,-0]} }',
    ],
    ['escapes and half surrogates', '{"version":3,"deployment":{"t":"\\u003c\\ud800\\/\\u0000é🙂"}}'],
    ['names that JavaScript minds', '{"version":3,"deployment":{"__proto__":{"a":1},"constructor":null,"a":1,"a":2}}'],
    ['members that nobody knows', '{"later":[1],"version":4,"features":["taint"],"deployment":{"resources":null}}'],
    ['deployment before version', '{"deployment":{"resources":[{}]},"version":3}'],
    ['an empty deployment', '{"version":1,"deployment":{}}'],
  ])('%s', async (_name, text) => {
    const stack = await createStack(app);
    await ok(send(stack, text));
    const exported = await exportState(app, stack);
    expect(exported.text).toBe(text);
    expect(exported.headers['content-type']).toMatch(/^application\/json/);
    expect((await exportState(app, stack, 1)).text).toBe(text);
  });

  test('whitespace around the document is dropped', async () => {
    const stack = await createStack(app);
    await ok(send(stack, '\n {"version":3,"deployment":{}} \n'));
    expect((await exportState(app, stack)).text).toBe('{"version":3,"deployment":{}}');
  });

  test('a large document, through a job and the blob store, gzipped or not', async () => {
    const noise = randomBytes(3_000_000).toString('base64');
    const text = `{"version":3,"deployment":{"resources":[{"urn":"u","type":"t","noise":"${noise}"}]}}`;
    for (const body of [gzipped(text), { body: text }]) {
      const stack = await createStack(app);
      await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...body }));
      expect((await exportState(app, stack)).text === text).toBe(true);
    }
    const { blobs } = await app.context.blobs.list('checkpoints/');
    expect(blobs.length).toBeGreaterThanOrEqual(2);
  });
});

test('the response names the update in both spellings; polling reports success', async () => {
  const stack = await createStack(app);
  const { json } = await ok(send(stack, deployment(2)));
  expect(json).toEqual({ updateId: json.updateID, updateID: expect.any(String) });
  const update = await getUpdate(app, stack, { path: `${stack.path}/update/${json.updateId}` });
  expect(update).toMatchObject({
    status: 'succeeded',
    kind: 'import',
    result: 'succeeded',
    events: [],
    continuationToken: null,
    version: 1,
  });
  expect(await getStack(app, stack)).toMatchObject({ version: 1, activeUpdate: '' });
});

test('each import creates a version, and later updates continue from it', async () => {
  const stack = await createStack(app);
  for (const size of [1, 2]) await ok(send(stack, deployment(size)));
  const update = await startUpdate(app, stack);
  expect(update.version).toBe(3);
  expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(2);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  for (const version of [1, 2, 3])
    expect((await exportState(app, stack, version)).json.deployment.resources).toHaveLength(version);
});

describe('a rejected import changes nothing', () => {
  test.each([
    ['no JSON', '{"version":3,'],
    ['nothing', ''],
    ['an array', '[]'],
    ['no deployment', '{"version":3}'],
    ['a deployment that is not an object', '{"version":3,"deployment":[]}'],
    ['a null deployment', '{"version":3,"deployment":null}'],
    ['no version', '{"deployment":{}}'],
    ['version 0', '{"version":0,"deployment":{}}'],
    ['version 5', '{"version":5,"deployment":{}}'],
    ['a version in quotes', '{"version":"3","deployment":{}}'],
    ['resources that are no list', '{"version":3,"deployment":{"resources":{}}}'],
    ['two documents', '{"version":3,"deployment":{}}{}'],
  ])('%s returns 400', async (_name, body) => {
    const stack = await createStack(app);
    await ok(send(stack, deployment(1)));
    const response = await send(stack, body);
    expect([response.status, response.json.code]).toEqual([400, 400]);
    expect((await getStack(app, stack)).version).toBe(1);
    expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(1);
  });

  test('returns 409 while an update is created or runs, but not beside a preview of the CLI', async () => {
    const stack = await createStack(app);
    await ok(send(stack, deployment(1)));
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    const waiting = await send(stack, deployment(2));
    expect([waiting.status, waiting.json.code]).toEqual([409, 409]);
    await ok(cancel(app, stack, { path: `${stack.path}/update/${json.updateID}` }));
    const update = await startUpdate(app, stack);
    const small = await send(stack, deployment(2));
    const large = await send(stack, deployment(20_000));
    expect([small.status, large.status]).toEqual([409, 409]);
    expect((await exportState(app, stack)).json.deployment.resources).toHaveLength(1);
    await ok(complete(app, update));
    await startUpdate(app, stack, { kind: 'preview' });
    await ok(send(stack, deployment(3)));
  });

  test('returns 413 above the limit, by Content-Length or after inflating', async () => {
    await using small = await createTestApp({ settings: { HOLDFAST_MAX_BODY_BYTES: '100000' } });
    const stack = await createStack(small);
    for (const body of [{ body: deployment(3_000) }, gzipped(deployment(3_000))]) {
      const response = await small.call('POST', `${stack.path}/import`, { auth: stack.auth, ...body });
      expect([response.status, response.json.code]).toEqual([413, 413]);
    }
    expect((await getStack(small, stack)).version).toBe(0);
    await ok(small.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(100) }));
  });

  test('returns 404 without a stack', async () => {
    const stack = await createStack(app);
    expect((await send({ ...stack, path: `${stack.path}x` }, deployment(1))).status).toBe(404);
    expect((await app.call('GET', `${stack.path}x/export`, { auth: stack.auth })).status).toBe(404);
  });
});

test('a stack without state exports the empty document', async () => {
  const stack = await createStack(app);
  expect((await exportState(app, stack)).text).toBe('{"version":3,"deployment":{"resources":null}}');
});
