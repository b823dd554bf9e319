import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, getStack, resourceNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, createTestApp, type TestApp, type TestResponse, testApp } from '../support/test-app.ts';
import { append, cancel, complete, getUpdate, saveState } from '../support/update-calls.ts';

const app = testApp({ settings: { HOLDFAST_BEGIN_UPDATE: 'true' } });

const program = { name: 'proj', runtime: 'yaml', options: { dryRun: false }, metadata: { message: 'all at once' } };

function begin(stack: TestStack, body: object = {}, on: TestApp = app): Promise<TestResponse> {
  return on.call('POST', `${stack.path}/begin-update`, {
    auth: stack.auth,
    body: { updateKind: 'update', program, ...body },
  });
}

function running(stack: TestStack, { json }: TestResponse): RunningUpdate {
  const path = `${stack.path}/update/${json.updateID}`;
  return { id: json.updateID, path, lease: `update-token ${json.token}`, version: json.version };
}

test('without the setting the route does not exist and is not advertised', async () => {
  await using plain = await createTestApp();
  const stack = await createStack(plain);
  expect((await begin(stack, {}, plain)).status).toBe(404);
  const capabilities = async (on: TestApp): Promise<object[]> =>
    (await ok(on.call('GET', '/api/capabilities'))).json.capabilities;
  const offer = { capability: 'begin-update', version: 1 };
  expect(await capabilities(plain)).not.toContainEqual(offer);
  expect(await capabilities(app)).toContainEqual(offer);
});

describe('the single call', () => {
  test('answers like the four calls it replaces, and the update works as usual', async () => {
    const stack = await createStack(app);
    const first = await ok(begin(stack, { tags: { colour: 'blue' }, journalVersion: 1 }));
    const update = running(stack, first);
    const shown = await getStack(app, stack);
    expect(first.json).toEqual({
      version: 1,
      token: expect.stringMatching(/^lease-/),
      tokenExpiration: expect.any(Number),
      journalVersion: 1,
      updateID: expect.any(String),
      requiredPolicies: [],
      messages: [],
      stack: shown,
      deployment: { version: 3, deployment: { resources: null } },
    });
    expect(shown).toMatchObject({
      activeUpdate: update.id,
      tags: { colour: 'blue' },
      currentOperation: { kind: 'update' },
    });
    expect(await getUpdate(app, stack, update)).toMatchObject({
      status: 'running',
      kind: 'update',
      message: 'all at once',
    });
    await ok(append(app, update, creation(1, 'a', stack)));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['a']);

    const second = await ok(begin(stack));
    expect(second.json).toMatchObject({ version: 2, stack: { version: 1, tags: { colour: 'blue' } } });
    expect(second.json).not.toHaveProperty('journalVersion');
    const exported = await app.call('GET', `${stack.path}/export`, { auth: stack.auth });
    expect(second.text).toContain(`"deployment":${exported.text}`);
    await ok(saveState(app, running(stack, second), 2));
    await ok(complete(app, running(stack, second)));
    expect(await exportedNames(app, stack, 2)).toEqual(['r0', 'r1']);
  });

  test.each(['update', 'refresh', 'destroy', 'resource-import'])(
    'acquires the lock for the kind %s',
    async (updateKind) => {
      const stack = await createStack(app);
      const update = running(stack, await ok(begin(stack, { updateKind })));
      expect((await getUpdate(app, stack, update)).kind).toBe(updateKind === 'resource-import' ? 'update' : updateKind);
      const refused = await begin(stack);
      expect(refused.status).toBe(409);
      expect(refused.json.message).toMatch(/^Conflict: Another update is currently in progress\./);
      const separate = await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
      expect(separate.json.message).toMatch(/^Conflict: Another update is currently in progress\./);
      await ok(cancel(app, stack, update));
      await ok(begin(stack));
    },
  );

  test.each([
    ['preview', {}],
    ['update', { program: { ...program, options: { dryRun: true } } }],
  ])('a preview under the name %s runs beside an update and creates no version', async (updateKind, body) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'a', stack)));
    const preview = await ok(begin(stack, { updateKind, journalVersion: 1, ...body }));
    expect(preview.json).toMatchObject({ version: 0, stack: { activeUpdate: update.id } });
    expect(preview.json).not.toHaveProperty('journalVersion');
    await ok(complete(app, running(stack, preview)));
    await ok(complete(app, update));
    expect((await getStack(app, stack)).version).toBe(1);
    const idle = await ok(begin(stack, { updateKind, ...body }));
    expect(idle.json).toMatchObject({ version: 1, stack: { activeUpdate: '' } });
    expect(resourceNames(idle.json.deployment)).toEqual(['a']);
  });

  test('in the contract’s dialect answers in it, and a preview acquires the lock', async () => {
    const stack = await createStack(app);
    const call = () =>
      app.call('POST', `${stack.path}/begin-update`, {
        auth: stack.auth,
        accept: contractAccept,
        body: { updateKind: 'preview' },
      });
    const { json } = await ok(call());
    expect(json).toMatchObject({ version: 0, tokenExpiration: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect((await call()).status).toBe(409);
  });

  test('starts from the state that a cancelled update left in its journal', async () => {
    const stack = await createStack(app);
    const left = await startUpdate(app, stack, { journal: true });
    await ok(append(app, left, creation(1, 'kept', stack)));
    await ok(cancel(app, stack, left));
    const { json } = await ok(begin(stack, { journalVersion: 1 }));
    expect(resourceNames(json.deployment)).toEqual(['kept']);
    const update = { ...running(stack, { json } as TestResponse) };
    await ok(append(app, update, creation(1, 'added', stack)));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['added', 'kept'].sort());
  });

  test('leaves a large state, or one that does not fit into memory, to the export', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 5, 'x'.repeat(500_000)));
    await ok(complete(app, update));
    const { json } = await ok(begin(stack));
    expect(json).not.toHaveProperty('deployment');
    await ok(cancel(app, stack, running(stack, { json } as TestResponse)));

    const other = await createStack(app);
    const { bufferedBodyBytes, config } = app.context;
    await bufferedBodyBytes.acquire(config.limits.bufferedBodyBytes, null);
    try {
      const beside = await ok(begin(other));
      expect(beside.json).not.toHaveProperty('deployment');
      await ok(cancel(app, other, running(other, beside)));
    } finally {
      bufferedBodyBytes.release(config.limits.bufferedBodyBytes);
    }
    expect((await ok(begin(other))).json).toHaveProperty('deployment');
    expect(bufferedBodyBytes.used).toBe(0);
  });
});

describe('rejected calls leave nothing behind', () => {
  const count = async (stack: TestStack): Promise<number> => {
    const rows = await query(
      app,
      `select count(*)::int as n from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
       join organizations o on o.id = p.organization_id where o.name = $1`,
      [stack.organization],
    );
    return (rows[0] as { n: number }).n;
  };

  test.each<[string, object, number]>([
    ['an unknown kind', { updateKind: 'rename' }, 400],
    ['no kind', { updateKind: null }, 400],
    ['bad tags', { tags: { a: 1 } }, 400],
    ['a bad message', { program: { metadata: { message: 'a\0b' } } }, 400],
    ['an invalid program', { program: 'x' }, 400],
    ['too large a field', { program: { name: 'x'.repeat(1024 * 1024) } }, 413],
  ])('%s', async (_name, body, status) => {
    const stack = await createStack(app);
    expect((await begin(stack, body)).status).toBe(status);
    expect(await count(stack)).toBe(0);
    expect((await getStack(app, stack)).activeUpdate).toBe('');
    expect((await ok(begin(stack))).json.version).toBe(1);
  });

  test('a caller without permission', async () => {
    const stack = await createStack(app);
    const viewer = `token ${await app.createUser(stack.organization, 'viewer')}`;
    const stranger = (await createStack(app)).auth;
    const statuses = [];
    for (const auth of [viewer, stranger, 'token wrong', 'update-token wrong'])
      statuses.push((await begin({ ...stack, auth })).status);
    expect(statuses).toEqual([403, 404, 401, 401]);
    expect((await begin({ ...stack, path: `${stack.path}-none` })).status).toBe(404);
    expect(await count(stack)).toBe(0);
  });

  test('a quota', async () => {
    await using limited = await createTestApp({
      settings: { HOLDFAST_BEGIN_UPDATE: 'true', HOLDFAST_QUOTA_UPDATES: '1' },
    });
    const stack = await createStack(limited);
    const first = running(stack, await ok(begin(stack, { updateKind: 'preview' }, limited)));
    const separate = await limited.call('POST', `${stack.path}/preview`, { auth: stack.auth, body: {} });
    const refused = await begin(stack, { updateKind: 'preview' }, limited);
    expect([refused.status, refused.json.message]).toEqual([separate.status, separate.json.message]);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    await ok(complete(limited, first));
    await ok(begin(stack, { updateKind: 'preview' }, limited));
  });

  test('a state that cannot be read', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await ok(saveState(app, update, 1));
    await ok(complete(app, update));
    await query(
      app,
      `update checkpoints set inline_bytes = '\\x00' where stack_id = (select stack_id from updates where id = $1)`,
      [update.id],
    );
    expect((await begin(stack)).status).toBeGreaterThanOrEqual(500);
    expect((await getStack(app, stack)).activeUpdate).toBe('');
    expect(await count(stack)).toBe(1);
    expect(app.context.bufferedBodyBytes.used).toBe(0);
  });
});

describe('between reading the state and the transaction', () => {
  /** Runs `work` once, after the state was read. */
  function meanwhile(work: () => Promise<void>): () => number {
    const { states } = app.context;
    const readHead = states.readHead.bind(states);
    let reads = 0;
    states.readHead = async (ref) => {
      const head = await readHead(ref);
      if (++reads === 1) await work();
      return head;
    };
    return () => {
      states.readHead = readHead;
      return reads;
    };
  }

  test('an update that begins and ends with a new state: the response never has an outdated state', async () => {
    const stack = await createStack(app);
    const restore = meanwhile(async () => {
      const update = await startUpdate(app, stack);
      await ok(saveState(app, update, 2));
      await ok(complete(app, update));
    });
    const { json } = await ok(begin(stack));
    expect(restore()).toBe(1);
    expect(json).toMatchObject({ version: 2, stack: { version: 1 } });
    expect(json).not.toHaveProperty('deployment');
    expect(await exportedNames(app, stack)).toEqual(['r0', 'r1']);
  });

  test('an update that was cancelled with entries in its journal: the new update starts from a state that includes them', async () => {
    const stack = await createStack(app);
    const restore = meanwhile(async () => {
      const update = await startUpdate(app, stack, { journal: true });
      await ok(append(app, update, creation(1, 'kept', stack)));
      await query(app, `update updates set expires_at = now() - interval '1 second' where id = $1`, [update.id]);
      // Like the sweep, which leaves the journal to the next reader.
      await query(app, `update updates set status = 'cancelled', ended_at = now(), lease_hash = null where id = $1`, [
        update.id,
      ]);
      await query(app, `update stacks set active_update_id = null, stack_version = 1 where active_update_id = $1`, [
        update.id,
      ]);
    });
    const begun = await ok(begin(stack, { journalVersion: 1 }));
    expect(restore()).toBe(2);
    expect(resourceNames(begun.json.deployment)).toEqual(['kept']);
    const update = running(stack, begun);
    await ok(append(app, update, creation(1, 'added', stack)));
    await ok(complete(app, update));
    expect((await exportedNames(app, stack)).sort()).toEqual(['added', 'kept']);
  });

  test('a running update: 409, and nothing is locked', async () => {
    const stack = await createStack(app);
    const restore = meanwhile(async () => void (await startUpdate(app, stack)));
    expect((await begin(stack)).status).toBe(409);
    expect(restore()).toBe(1);
    expect(app.context.bufferedBodyBytes.used).toBe(0);
  });

  test('one of four concurrent calls succeeds', async () => {
    for (let round = 0; round < 4; round++) {
      const stack = await createStack(app);
      const answers = await Promise.all([1, 2, 3, 4].map(() => begin(stack)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
      const winner = answers.find(({ status }) => status === 200) as TestResponse;
      expect((await getStack(app, stack)).activeUpdate).toBe(winner.json.updateID);
      await ok(complete(app, running(stack, winner)));
    }
  });
});

test('a state is the same document, whatever its bytes', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const text = JSON.stringify(deployment(1)).replace('"r0"', '"\\u0072😀\\u0000"').replace('}]', ', "a":1e2 }]');
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: text }));
  await ok(complete(app, update));
  const exported = await app.call('GET', `${stack.path}/export`, { auth: stack.auth });
  expect((await ok(begin(stack))).text).toContain(exported.text);
});
