import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { cancel, complete, getUpdate, saveState } from '../support/update-calls.ts';

const app = testApp();

const create = (stack: TestStack, kind = 'update', body: object = {}) =>
  app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, body });

async function created(stack: TestStack, kind = 'update', body: object = {}): Promise<{ id: string; path: string }> {
  const id = (await ok(create(stack, kind, body))).json.updateID as string;
  return { id, path: `${stack.path}/update/${id}` };
}

describe('from create to complete', () => {
  test.each(['update', 'refresh', 'destroy'])(
    '%s acquires the lock, creates a version, and frees the stack',
    async (kind) => {
      const stack = await createStack(app);
      const { json } = await ok(create(stack, kind));
      expect(json).toEqual({ updateID: expect.any(String), requiredPolicies: [], messages: [] });
      const update = { id: json.updateID as string, path: `${stack.path}/update/${json.updateID}` };
      expect(await getUpdate(app, stack, update)).toMatchObject({
        status: 'not started',
        kind,
        continuationToken: '0',
      });
      expect((await getStack(app, stack)).activeUpdate).toBe(update.id);
      const started = await ok(app.call('POST', update.path, { auth: stack.auth, body: {} }));
      const running = { ...update, lease: `update-token ${started.json.token}`, version: started.json.version };
      expect(await getUpdate(app, stack, update)).toMatchObject({ status: 'running', endTime: 0, version: 1 });
      await ok(saveState(app, running, 2));
      expect((await getStack(app, stack)).version).toBe(0);
      await ok(complete(app, running));
      expect(await getStack(app, stack)).toMatchObject({ activeUpdate: '', version: 1 });
      expect(await getUpdate(app, stack, update)).toMatchObject({
        updateID: update.id,
        status: 'succeeded',
        kind,
        result: 'succeeded',
        version: 1,
        continuationToken: null,
        endTime: expect.any(Number),
      });
    },
  );

  test.each([
    ['preview', {}],
    ['update', { options: { dryRun: true } }],
    ['refresh', { options: { dryRun: true } }],
    ['destroy', { options: { dryRun: true } }],
  ])('a preview under the name %s runs beside an update and creates no version', async (kind, body) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    const preview = await created(stack, kind, body);
    const started = await ok(
      app.call('POST', preview.path, { auth: stack.auth, body: { journalVersion: 1, tags: { by: 'preview' } } }),
    );
    expect(started.json).toMatchObject({ version: 0, token: expect.stringMatching(/./) });
    expect(started.json).not.toHaveProperty('journalVersion');
    const lease = `update-token ${started.json.token}`;
    for (const [path, content] of [
      ['checkpoint', { version: 3, deployment: {} }],
      ['journalentries', { entries: [] }],
    ] as const)
      expect((await app.call('PATCH', `${preview.path}/${path}`, { auth: lease, body: content })).status).toBe(409);
    await ok(app.call('POST', `${preview.path}/events/batch`, { auth: lease, body: { events: [] } }));
    await ok(app.call('POST', `${preview.path}/complete`, { auth: lease, body: { status: 'succeeded' } }));
    expect(await getStack(app, stack)).toMatchObject({ activeUpdate: update.id, version: 0, tags: { by: 'preview' } });
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['r0']);
  });

  test('the path of an update may contain its kind', async () => {
    const stack = await createStack(app);
    const { id } = await created(stack, 'destroy');
    await ok(app.call('POST', `${stack.path}/destroy/${id}`, { auth: stack.auth, body: {} }));
  });

  test('the program, environment and configuration are accepted in any size and with nulls', async () => {
    const stack = await createStack(app);
    const body = {
      name: 'p',
      runtime: 'nodejs',
      main: null,
      description: null,
      options: { localPolicyPackPaths: [], color: 'raw', dryRun: false, parallel: 2 ** 31 - 1, unheardOf: {} },
      config: { 'ns:key': { string: 'x'.repeat(1_000_000), secret: false, object: false } },
      metadata: { message: 'hello', environment: { 'git.head': 'abc' } },
      unheardOf: 1,
    };
    const update = await created(stack, 'update', body);
    expect((await getUpdate(app, stack, update)).message).toBe('hello');
  });

  test('the start may omit the body, and replaces the tags if it has them', async () => {
    const stack = await createStack(app);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { a: '1' } }));
    const first = await created(stack);
    await ok(app.call('POST', first.path, { auth: stack.auth }));
    expect((await getStack(app, stack)).tags).toEqual({ a: '1' });
    await ok(cancel(app, stack, first));
    const second = await created(stack);
    expect((await app.call('POST', second.path, { auth: stack.auth, body: { tags: { b: 2 } } })).status).toBe(400);
    await ok(app.call('POST', second.path, { auth: stack.auth, body: { tags: { b: '2' } } }));
    expect((await getStack(app, stack)).tags).toEqual({ b: '2' });
    const events = await query(
      app,
      `select details::jsonb -> 'names' as names from audit_events where action = 'stack.tags' and object = $1 order by number desc limit 1`,
      [stack.path.slice('/api/stacks/'.length)],
    );
    expect(events).toEqual([{ names: ['b'] }]);
  });

  test('a start with an invalid tag about waiting keeps the stack’s, and warns', async () => {
    const stack = await createStack(app);
    const tags = (body: object) => ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body }));
    await tags({ 'lock-wait': '5m' });
    const update = await created(stack);
    const started = await ok(
      app.call('POST', update.path, {
        auth: stack.auth,
        body: { tags: { 'lock-wait': '10min', supersede: 'all', a: '1' } },
      }),
    );
    expect(started.headers['x-pulumi-warning']).toMatch(/^The tag lock-wait must be .* The tag supersede must be /);
    expect((await getStack(app, stack)).tags).toEqual({ 'lock-wait': '5m', a: '1' });
    await tags({ 'lock-wait': '5m', a: '1', b: '2' });
  });
});

describe('versions', () => {
  test('each update creates the next one, failed and cancelled ones too; export returns the state that each left', async () => {
    const stack = await createStack(app);
    const first = await startUpdate(app, stack);
    await ok(saveState(app, first, 1));
    await ok(complete(app, first));
    const failed = await startUpdate(app, stack);
    await ok(saveState(app, failed, 2));
    await ok(saveState(app, failed, 3));
    await ok(complete(app, failed, 'failed'));
    const cancelled = await startUpdate(app, stack);
    await ok(saveState(app, cancelled, 4));
    await ok(cancel(app, stack, cancelled));
    // Writes nothing and keeps the previous state.
    const idle = await startUpdate(app, stack);
    await ok(complete(app, idle));
    const preview = await startUpdate(app, stack, { kind: 'preview' });
    await ok(complete(app, preview));
    expect([first, failed, cancelled, idle, preview].map(({ version }) => version)).toEqual([1, 2, 3, 4, 4]);
    const counts = [];
    for (const version of [1, 2, 3, 4]) counts.push((await exportedNames(app, stack, version)).length);
    expect(counts).toEqual([1, 3, 4, 4]);
    expect((await getStack(app, stack)).version).toBe(4);
  });

  test('an update that was never started creates none', async () => {
    const stack = await createStack(app);
    const { path } = await created(stack);
    await ok(cancel(app, stack, { path }));
    expect((await getStack(app, stack)).version).toBe(0);
    expect((await startUpdate(app, stack)).version).toBe(1);
  });

  test('a stored checkpoint has its version while its update runs', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 2));
    expect(await exportedNames(app, stack, 1)).toHaveLength(2);
  });

  test('missing versions return 404', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(complete(app, update));
    for (const version of ['0', '2', '-1', '1.0', 'x', '01', '99999999999'])
      expect((await app.call('GET', `${stack.path}/export/${version}`, { auth: stack.auth })).status).toBe(404);
    expect((await exportState(app, stack, 1)).text).toBe('{"version":3,"deployment":{"resources":null}}');
  });
});

describe('a second call', () => {
  test('create returns 409 while an update is created or runs', async () => {
    const stack = await createStack(app);
    const { path } = await created(stack);
    for (const kind of ['update', 'refresh', 'destroy']) {
      const refused = await create(stack, kind);
      expect([refused.status, refused.json.code]).toEqual([409, 409]);
    }
    await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
    expect((await create(stack)).status).toBe(409);
  });

  test('start returns 409 for an update that runs or has ended', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const start = () => app.call('POST', update.path, { auth: stack.auth, body: {} });
    expect((await start()).status).toBe(409);
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    expect((await start()).json.code).toBe(409);
  });

  test('complete with the same status succeeds, with another it returns 403', async () => {
    for (const status of ['succeeded', 'failed', 'cancelled']) {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      for (let time = 1; time <= 3; time++) expect((await complete(app, update, status)).status).toBe(204);
      const other = await complete(app, update, status === 'failed' ? 'succeeded' : 'failed');
      expect([other.status, other.json.code]).toEqual([403, 403]);
      expect((await getUpdate(app, stack, update)).status).toBe(status);
      expect((await getStack(app, stack)).version).toBe(1);
    }
  });

  test('complete also succeeds when another update is running, and does not affect that one', async () => {
    const stack = await createStack(app);
    const first = await startUpdate(app, stack);
    await ok(complete(app, first));
    const second = await startUpdate(app, stack);
    await ok(complete(app, first));
    expect((await getStack(app, stack)).activeUpdate).toBe(second.id);
  });

  test('cancel succeeds; cancelling an ended update also succeeds and changes nothing', async () => {
    const stack = await createStack(app);
    const cancelled = await startUpdate(app, stack);
    for (let time = 1; time <= 3; time++) expect((await cancel(app, stack, cancelled)).status).toBe(204);
    expect(await getUpdate(app, stack, cancelled)).toMatchObject({ status: 'cancelled', result: 'failed' });
    const finished = await startUpdate(app, stack);
    await ok(complete(app, finished));
    expect((await cancel(app, stack, finished)).status).toBe(204);
    expect((await getUpdate(app, stack, finished)).status).toBe('succeeded');
    expect((await complete(app, finished)).status).toBe(204);
  });
});

test('statuses unknown to complete return 400', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  for (const status of ['running', 'not started', '', 'SUCCEEDED'])
    expect((await complete(app, update, status)).status).toBe(400);
  expect((await getUpdate(app, stack, update)).status).toBe('running');
});

test('missing updates return 404', async () => {
  const stack = await createStack(app);
  const other = await createStack(app);
  const foreign = await startUpdate(app, other);
  for (const id of [foreign.id, '00000000-0000-4000-8000-000000000000', 'x', foreign.id.toUpperCase()]) {
    const path = `${stack.path}/update/${id}`;
    for (const [method, url] of [
      ['GET', path],
      ['POST', path],
      ['POST', `${path}/cancel`],
      ['GET', `${path}/events`],
    ] as const)
      expect({ id, url, status: (await app.call(method, url, { auth: stack.auth })).status }).toEqual({
        id,
        url,
        status: 404,
      });
  }
  expect((await app.call('POST', `${stack.path}x/update`, { auth: stack.auth, body: {} })).status).toBe(404);
});
