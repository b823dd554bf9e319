import { expect, test } from '@jest/globals';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, contractAccept, type TestResponse, testApp } from '../support/test-app.ts';
import { cancel, complete, saveState } from '../support/update-calls.ts';

const app = testApp();

const get = (stack: TestStack, path: string): Promise<TestResponse> =>
  app.call('GET', `${stack.path}/${path}`, { auth: stack.auth });
const list = async (stack: TestStack, parameters = ''): Promise<TestResponse['json'][]> =>
  (await ok(get(stack, `updates${parameters}`))).json.updates;

test('shows how each update was created and how it ended', async () => {
  const stack = await createStack(app);
  const config = {
    'ns:key': { string: 'v', secret: false, object: false },
    'ns:other': { string: '{"a":1}', secret: true, object: true },
  };
  const environment = { 'git.head': 'abc', 'pulumi.version': 'v3.255.0', __proto__x: 'y' };
  const { json } = await ok(
    app.call('POST', `${stack.path}/update`, {
      auth: stack.auth,
      body: { config, metadata: { message: 'first', environment } },
    }),
  );
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
  const update = { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: 1 };
  expect((await list(stack))[0]).toMatchObject({ result: 'in-progress', endTime: 0, version: 1 });
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  const now = Date.now() / 1000;
  const [info] = await list(stack);
  expect(info).toEqual({
    updateID: update.id,
    kind: 'update',
    message: 'first',
    environment,
    config,
    result: 'succeeded',
    status: 'succeeded',
    version: 1,
    startTime: expect.any(Number),
    endTime: expect.any(Number),
    resourceChanges: {},
    resourceCount: 3,
  });
  expect(Math.abs(now - info.startTime)).toBeLessThan(60);
  expect(info.endTime).toBeGreaterThanOrEqual(info.startTime);
  expect((await ok(get(stack, 'updates/latest'))).json).toEqual({ info });
});

test('the CLI gets what it can decode, and the contract what was sent', async () => {
  const stack = await createStack(app);
  const value = { string: 'v', secret: false, object: false };
  // Too large to be read at once.
  const large = { ...value, string: 'x'.repeat(300_000) };
  const config = {
    region: 'eu',
    'ns:number': 1,
    'ns:object': { ...value, string: '{', object: true },
    'ns:key': value,
  };
  const environment = { n: 1, nested: { a: 'b' }, 'git.head': 'abc' };
  for (const more of [{}, { 'ns:large': large }]) {
    const sent = { config: { ...config, ...more }, metadata: { message: '', environment } };
    const body = { auth: stack.auth, accept: contractAccept, body: sent };
    const { json } = await ok(app.call('POST', `${stack.path}/update`, body));
    const latest = async (accept: string) =>
      (await ok(app.call('GET', `${stack.path}/updates/latest`, { auth: stack.auth, accept }))).json.info;
    const readable = { config: { 'ns:key': value, ...more }, environment: { 'git.head': 'abc' } };
    expect((await list(stack))[0]).toMatchObject({ updateID: json.updateID, ...readable });
    const { config: shown, environment: shownEnvironment } = await latest(cliAccept);
    expect({ config: shown, environment: shownEnvironment }).toEqual(readable);
    expect(await latest(contractAccept)).toMatchObject({ config: sent.config, environment });
    await ok(cancel(app, stack, { path: `${stack.path}/update/${json.updateID}` }));
  }
});

test('newest first, without previews, with the result names used in histories', async () => {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(1)) }));
  await ok(complete(app, await startUpdate(app, stack, { kind: 'refresh' }), 'failed'));
  await ok(complete(app, await startUpdate(app, stack, { kind: 'preview' })));
  await ok(cancel(app, stack, await startUpdate(app, stack, { kind: 'destroy' })));
  await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
  expect((await list(stack)).map(({ kind, result, version }) => [kind, result, version])).toEqual([
    ['update', 'not-started', 3],
    ['destroy', 'failed', 3],
    ['refresh', 'failed', 2],
    ['import', 'succeeded', 1],
  ]);
});

test('an update that ended without having started is an entry; only to the contract, it is the last update of its stack', async () => {
  const stack = await createStack(app);
  const run = async (config: object) => {
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { config } }));
    return { id: json.updateID, path: `${stack.path}/update/${json.updateID}` };
  };
  const value = (string: string) => ({ 'ns:key': { string, secret: false, object: false } });
  const real = await run(value('used'));
  const { json: started } = await ok(app.call('POST', real.path, { auth: stack.auth, body: {} }));
  await ok(complete(app, { ...real, lease: `update-token ${started.token}`, version: 1 }, 'failed'));
  const lists = async (accept = cliAccept) =>
    (await ok(app.call('GET', `/api/user/stacks?project=${stack.project}`, { auth: stack.auth, accept }))).json.stacks;
  const before = await lists();
  const lastUpdate = { kind: 'update', startTime: expect.any(Number) };
  expect(await lists(contractAccept)).toMatchObject([{ lastUpdate: { ...lastUpdate, status: 'failed' } }]);
  const abandoned = await run(value('never used'));
  await ok(cancel(app, stack, abandoned));
  expect(await lists()).toEqual(before);
  const contract = { auth: stack.auth, accept: contractAccept, body: {} };
  const { json: preview } = await ok(app.call('POST', `${stack.path}/preview`, contract));
  const previewing = { activeUpdate: preview.updateID, lastUpdate: { ...lastUpdate, status: 'cancelled' } };
  expect(await lists(contractAccept)).toMatchObject([previewing]);
  await ok(cancel(app, stack, { path: `${stack.path}/update/${preview.updateID}` }));
  expect(await lists(contractAccept)).toMatchObject([{ ...previewing, activeUpdate: '' }]);
  expect((await list(stack)).map(({ updateID }) => updateID)).toEqual([abandoned.id, real.id]);
});

test('the latest update shows the CLI the configuration in force, whatever has recorded it', async () => {
  const stack = await createStack(app);
  const run = async (string: string, environment: object) => {
    const config = { 'ns:key': { string, secret: false, object: false } };
    const body = { config, metadata: { message: string, environment } };
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body }));
    return { id: json.updateID, path: `${stack.path}/update/${json.updateID}` };
  };
  const latest = async (at: TestStack = stack) =>
    (await ok(app.call('GET', `${at.path}/updates/latest`, { auth: stack.auth }))).json.info;
  const shown = ({ message, environment, config }: TestResponse['json']) => ({
    ...{ message, environment, value: config['ns:key']?.string },
  });
  const environments = { 'stack.environments': '[{"id":"e"}]' };
  // Too large to be read at once with its other texts.
  const large = 'x'.repeat(300_000);
  for (const string of ['used', large]) {
    const real = await run(string, { 'git.head': 'a', ...environments });
    const { json: started } = await ok(app.call('POST', real.path, { auth: stack.auth, body: {} }));
    await ok(complete(app, { ...real, lease: `update-token ${started.token}`, version: 1 }));
    const imported = await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
    expect(await latest()).toMatchObject({ updateID: imported.json.updateId, kind: 'import' });
    expect(shown(await latest())).toEqual({ message: '', environment: environments, value: string });
    const abandoned = await run('never used', { 'git.head': 'b', 'stack.environments': '[{"id":"other"}]' });
    expect(shown(await latest()).value).toBe('never used');
    await ok(cancel(app, stack, abandoned));
    expect((await latest()).updateID).toBe(abandoned.id);
    const inForce = { environment: { 'git.head': 'b', ...environments }, value: string };
    expect(shown(await latest())).toEqual({ message: 'never used', ...inForce });
  }
  await ok(complete(app, await startUpdate(app, stack, { kind: 'update' })));
  expect(shown(await latest()).value).toBeUndefined();
  const contract = { auth: stack.auth, accept: contractAccept };
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  const asStored = (await ok(app.call('GET', `${stack.path}/updates/latest`, contract))).json.info;
  expect(asStored).toMatchObject({ config: {}, environment: {} });
});

test('pages count from 1; pages beyond the end are empty', async () => {
  const stack = await createStack(app);
  for (let round = 1; round <= 5; round++)
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(round) }));
  const versions = async (parameters: string) => (await list(stack, parameters)).map(({ version }) => version);
  expect(await versions('')).toEqual([5, 4, 3, 2, 1]);
  expect(await versions('?pageSize=2&page=1')).toEqual([5, 4]);
  expect(await versions('?pageSize=2&page=3')).toEqual([1]);
  expect(await versions('?pageSize=2')).toEqual([5, 4]);
  expect(await versions('?pageSize=2&page=4')).toEqual([]);
  expect(await versions('?pageSize=2&page=999999')).toEqual([]);
  expect(await versions('?pageSize=0&page=1')).toEqual([5, 4, 3, 2, 1]);
  // As scripts get all of them.
  expect(await versions('?pageSize=100000&page=1')).toEqual([5, 4, 3, 2, 1]);
  expect(await versions('?pageSize=100000&page=2')).toEqual([]);
  for (const parameters of ['?pageSize=-1', '?pageSize=x', '?pageSize=2&page=-1', '?pageSize=1e3', '?pageSize=9999999'])
    expect((await get(stack, `updates${parameters}`)).status).toBe(400);
});

test('the latest update of a stack without updates is 404; an empty list is not', async () => {
  const stack = await createStack(app);
  const latest = await get(stack, 'updates/latest');
  expect([latest.status, latest.json.code]).toEqual([404, 404]);
  expect(await list(stack)).toEqual([]);
  expect((await app.call('GET', `${stack.path}x/updates`, { auth: stack.auth })).status).toBe(404);
  expect((await app.call('GET', `${stack.path}x/updates/latest`, { auth: stack.auth })).status).toBe(404);
});

test('the latest previews are listed separately', async () => {
  const stack = await createStack(app);
  const previews = [];
  for (let round = 0; round < 3; round++) previews.push((await startUpdate(app, stack, { kind: 'preview' })).id);
  const read = async (parameters: string) =>
    (await ok(get(stack, `updates/latest/previews${parameters}`))).json.updates;
  expect(await read('?asc=false&pageSize=1&page=1')).toEqual([{ updateID: previews[2] }]);
  expect(await read('?pageSize=2')).toEqual([{ updateID: previews[2] }, { updateID: previews[1] }]);
  expect((await get(stack, 'updates/latest/previews?pageSize=1001')).status).toBe(400);
});
