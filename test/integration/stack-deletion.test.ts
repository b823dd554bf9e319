import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StackService } from '../../src/api/stacks/stack-service.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { testTrail } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { deleteStack } from '../support/deleted-stacks.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { creation } from '../support/journal-entries.ts';
import { listRoutes } from '../support/routes.ts';
import { callerOf, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse, testApp, testReplica } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

/** Two replicas: one must not serve from memory what the other has deleted. */
const app = testApp();
const replica = testReplica(app);

const createNamed = (on: TestApp, { auth, organization, project, stack }: TestStack) =>
  ok(on.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName: stack } }));
const eventBatch = { events: [{ sequence: 0, timestamp: 1, stdoutEvent: { message: 'x', color: '' } }] };
const sendEvents = (on: TestApp, update: { path: string; lease: string }): Promise<TestResponse> =>
  on.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: eventBatch });
const encrypt = (on: TestApp, stack: TestStack): Promise<TestResponse> =>
  on.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'QQ==' } });
const finished = (on: TestApp): Promise<number> => createStackDeletion(on.context, { pauseMs: 0, runMs: 600_000 })();

/** Bodies that the routes would accept; `{}` for the others. */
const bodies: Readonly<Record<string, object>> = {
  tags: { name: 'a', value: 'b' },
  ':tag': { value: 'b' },
  rename: { newName: 'other' },
  config: { environment: 'e' },
  encrypt: { plaintext: 'QQ==' },
  decrypt: { ciphertext: 'QQ==' },
  'batch-encrypt': { plaintexts: ['QQ=='] },
  'batch-decrypt': { ciphertexts: ['QQ=='] },
  'begin-update': { updateKind: 'update', program: {} },
  renew_lease: { duration: 300 },
  complete: { status: 'succeeded' },
  import: deployment(1),
  batch: eventBatch,
  approvals: { commit: 'c'.repeat(40) },
  ':approvalId': { reason: 'reviewed' },
  'legal-hold': { reason: 'a dispute' },
};
const leaseRoutes = /\/(checkpoint\w*|journalentries|events\/batch|renew_lease|complete)$/;
/** They log what a client reports and do not look up a stack. */
const blindRoutes = /\/log-(batch-)?decryption$/;

describe('a deleted stack', () => {
  test.each(['before', 'after'])('is not found by any route, %s its rows are deleted', async (when) => {
    const stack = await createStack(app);
    const ciphertext = (await ok(encrypt(replica, stack))).json.ciphertext as string;
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
    const update = await startUpdate(replica, stack);
    await ok(sendEvents(replica, update));
    await ok(complete(replica, update));
    await ok(deleteStack(app, stack));
    if (when === 'after') expect(await finished(app)).toBe(1);

    const walked: string[] = [];
    for (const route of listRoutes(app.app)) {
      const [method, pattern] = route.split(' ') as [string, string];
      if (!pattern.includes('/:stack') || blindRoutes.test(pattern)) continue;
      const url = pattern
        .replace(/:kind\([^)]*\)\$?\)?/, 'update')
        .replace(':organization', stack.organization)
        .replace(':project', stack.project)
        .replace(/:stackVersion/, '1')
        .replace(/:stack(?=\/|$)/, stack.stack)
        .replace(':updateId', update.id);
      const last = url.split('/').at(-1) as string;
      const isLease = leaseRoutes.test(url);
      const body =
        last === 'decrypt'
          ? { ciphertext }
          : last === 'batch-decrypt'
            ? { ciphertexts: [ciphertext] }
            : (bodies[last] ?? {});
      const { status } = await replica.call(method, url, {
        auth: isLease ? update.lease : stack.auth,
        ...(method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { body }),
      });
      expect({ route, url, status }).toEqual({ route, url, status: isLease ? 403 : 404 });
      walked.push(url);
    }
    expect(walked.filter((url) => leaseRoutes.test(url))).toHaveLength(7);
    expect(walked.length).toBeGreaterThan(30);
    const listed = await ok(
      replica.call('GET', `/api/user/stacks?organization=${stack.organization}`, { auth: stack.auth }),
    );
    expect(listed.json.stacks).toEqual([]);
    // So that `pulumi new` can take its name.
    const project = await replica.call('HEAD', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth });
    expect(project.status).toBe(404);
    if (when === 'before') expect(await finished(app)).toBe(1);
  });

  test('frees its name at once for a new stack that inherits nothing', async () => {
    const stack = await createStack(app);
    const ids: string[] = [];
    for (let round = 1; round <= 3; round++) {
      ids.push((await getStack(replica, stack)).id);
      const { ciphertext } = (await ok(encrypt(replica, stack))).json;
      await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(round) }));
      const update = await startUpdate(app, stack);
      await ok(sendEvents(app, update));
      await ok(complete(app, update));
      await ok(deleteStack(app, stack));
      await createNamed(replica, stack);

      expect(await getStack(app, stack)).toMatchObject({ version: 0, activeUpdate: '' });
      const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
      expect(exported.text).toBe('{"version":3,"deployment":{"resources":null}}');
      const history = await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
      expect(history.json.updates).toEqual([]);
      for (const url of [`${stack.path}/export/1`, update.path, `${update.path}/events`])
        expect((await app.call('GET', url, { auth: stack.auth })).status).toBe(404);
      expect((await cancel(app, stack, update)).status).toBe(404);
      expect((await sendEvents(app, update)).status).toBe(403);
      expect((await complete(app, update)).status).toBe(403);
      const decrypted = await replica.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext } });
      expect(decrypted.status).toBe(400);
    }
    expect(new Set([...ids, (await getStack(app, stack)).id]).size).toBe(4);
    const listed = await ok(
      app.call('GET', `/api/user/stacks?organization=${stack.organization}`, { auth: stack.auth }),
    );
    expect(listed.json.stacks).toHaveLength(1);
    const again = await app.call('POST', `/api/stacks/${stack.organization}/proj`, {
      auth: stack.auth,
      body: { stackName: stack.stack },
    });
    expect([again.status, again.json.message]).toEqual([409, expect.stringContaining('already exists')]);

    expect(await finished(app)).toBe(3);
    expect((await ok(encrypt(app, stack))).status).toBe(200);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  });

  test('frees its name for a rename, and its former names decrypt nothing', async () => {
    const stack = await createStack(app);
    const { ciphertext } = (await ok(encrypt(app, stack))).json;
    await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }));
    const moved = { ...stack, path: `/api/stacks/${stack.organization}/proj/moved` };
    const decrypt = () => replica.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body: { ciphertext } });
    expect((await decrypt()).status).toBe(200);
    await ok(deleteStack(app, moved));
    expect((await decrypt()).status).toBe(404);
    await createNamed(app, stack);
    expect((await decrypt()).status).toBe(400);
    await ok(replica.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }));
    await ok(deleteStack(app, moved));
    expect(await finished(app)).toBe(2);
  });

  test('ends the leases of previews that run beside', async () => {
    const stack = await createStack(app);
    const waiting = await ok(app.call('POST', `${stack.path}/preview`, { auth: stack.auth, body: {} }));
    const preview = await startUpdate(replica, stack, { kind: 'preview' });
    await ok(sendEvents(replica, preview));
    await ok(deleteStack(app, stack));
    const renew = (on: TestApp) =>
      on.call('POST', `${preview.path}/renew_lease`, { auth: preview.lease, body: { duration: 300 } });
    for (const on of [app, replica]) {
      expect((await sendEvents(on, preview)).status).toBe(403);
      expect((await renew(on)).status).toBe(403);
      expect((await complete(on, preview)).status).toBe(403);
    }
    const start = `${stack.path}/update/${waiting.json.updateID}`;
    expect((await app.call('POST', start, { auth: stack.auth, body: {} })).status).toBe(404);
    const events = await query(app, 'select 1 from engine_events where update_id = $1', [preview.id]);
    expect(events).toHaveLength(1);
    expect(await finished(app)).toBe(1);
  });

  test('disappears from the list of stacks, also between two pages', async () => {
    const stack = await createStack(app);
    await query(
      app,
      `insert into stacks (project_id, name) select project_id, 'x' || to_char(i, 'fm000') from stacks, generate_series(1, 250) i where id = $1`,
      [(await getStack(app, stack)).id],
    );
    const list = (token = '') =>
      ok(
        app.call('GET', `/api/user/stacks?organization=${stack.organization}&continuationToken=${token}`, {
          auth: stack.auth,
        }),
      ).then(({ json }) => json as { stacks: { stackName: string }[] });
    expect((await list()).stacks).toHaveLength(251);
    // As after a page that ended with this stack.
    const [last, token] = ['x200', Buffer.from(`${stack.organization}/proj/x200`).toString('base64url')];
    for (const name of [last, 'x230'])
      await ok(deleteStack(app, { ...stack, path: `/api/stacks/${stack.organization}/proj/${name}` }));
    expect((await list()).stacks).toHaveLength(249);
    const rest = await list(token);
    expect(rest.stacks).toHaveLength(49);
    expect(rest.stacks.map(({ stackName }) => stackName)).not.toContain('x230');
    expect(await finished(app)).toBe(2);
  });

  test('gets no new data key', async () => {
    const stack = await createStack(app);
    const { id } = await getStack(app, stack);
    await ok(deleteStack(app, stack));
    // Like a call that found the stack just before.
    await expect(app.context.cipher.encrypt(id, [Buffer.from('a')])).rejects.toThrow('deleted');
    expect(await query(app, 'select 1 from encryption_keys where stack_id = $1', [id])).toEqual([]);
    expect(await finished(app)).toBe(1);
  });
});

describe('resources in a journal that is not compacted', () => {
  /** A stack whose update ended after the stack was reclaimed: only its journal has the resource. */
  async function createTail(): Promise<{ stack: TestStack; updateId: string; stackId: string }> {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'only-in-the-journal', stack)));
    await query(app, `update updates set status = 'cancelled', ended_at = now(), lease_hash = null where id = $1`, [
      update.id,
    ]);
    await query(app, 'update stacks set active_update_id = null, stack_version = 1 where active_update_id = $1', [
      update.id,
    ]);
    return { stack, updateId: update.id, stackId: (await getStack(app, stack)).id };
  }
  const settledBefore = () => new StackService(app.context, async () => {});

  test('keep their stack from being deleted unless forced', async () => {
    const { stack, updateId, stackId } = await createTail();
    const caller = await callerOf(app, stack);
    await expect(
      settledBefore().delete(caller, stack, { keepResources: true }, testTrail('stack.delete')),
    ).rejects.toThrow('still being compacted');
    expect((await getStack(app, stack)).id).toBe(stackId);
    await app.context.compactor.compact(updateId);
    const kept = await app.call('DELETE', `${stack.path}?force=false`, { auth: stack.auth });
    expect([kept.status, kept.json.message]).toEqual([400, 'Bad Request: Stack still contains resources.']);
    expect((await deleteStack(app, stack)).status).toBe(204);
    expect(await finished(app)).toBe(1);
  });

  test('are compacted first by the call itself', async () => {
    const { stack } = await createTail();
    const kept = await app.call('DELETE', `${stack.path}?force=false`, { auth: stack.auth });
    expect([kept.status, kept.json.message]).toEqual([400, 'Bad Request: Stack still contains resources.']);
  });

  test('are not needed for a forced delete, which works even if they cannot be compacted', async () => {
    const { stack, updateId } = await createTail();
    const broken = await query<{ id: string }>(
      app,
      `insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
       select stack_id, '', 1, 1, 'zstd', 1, 'broken' from updates where id = $1 returning id`,
      [updateId],
    );
    await query(app, 'update updates set base_checkpoint_id = $2 where id = $1', [updateId, broken[0]?.id]);
    const refused = await app.call('DELETE', `${stack.path}?force=false`, { auth: stack.auth });
    expect(refused).toMatchObject({ status: 409, text: expect.stringContaining('is damaged') });
    expect((await deleteStack(app, stack)).status).toBe(204);
    expect(await finished(app)).toBe(1);
  });

  test('are not compacted any more once their stack is deleted', async () => {
    const { stack, updateId, stackId } = await createTail();
    const caller = await callerOf(app, stack);
    await settledBefore().delete(caller, stack, { keepResources: false }, testTrail('stack.delete'));
    expect(await app.context.compactions.claimUncompacted(1_000)).not.toContain(updateId);
    await expireLeases(app.context);
    await app.context.compactor.compact(updateId);
    expect(await query(app, 'select 1 from checkpoints where stack_id = $1', [stackId])).toEqual([]);
    expect(await query(app, 'select 1 from journal_entries where update_id = $1', [updateId])).toHaveLength(2);
    expect(await finished(app)).toBe(1);
  });
});

test('an import that was running when its stack was deleted is rejected and does not affect the next stack of that name', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-gated-'));
  const store = await openGatedBlobs(directory);
  try {
    await using gated = await createTestApp({
      settings: { HOLDFAST_INLINE_BYTES: '1', HOLDFAST_DIRECT_BYTES: '1' },
      overrides: { blobs: store.blobs },
    });
    const stack = await createStack(gated);
    store.shut();
    const late = gated.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(2)) });
    await until(() => store.waiting() === 1, 'the import is stored, not committed');
    await ok(deleteStack(gated, stack));
    await createNamed(gated, stack);
    store.open();
    expect((await late).status).toBe(404);
    expect(await getStack(gated, stack)).toMatchObject({ version: 0 });
    expect(await query(gated, 'select 1 from checkpoints')).toEqual([]);
    expect(await query(gated, 'select 1 from updates')).toEqual([]);
    expect(await finished(gated)).toBe(1);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('a compaction that was running when its stack was deleted leaves no checkpoint', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-gated-'));
  const store = await openGatedBlobs(directory);
  try {
    const settings = { HOLDFAST_INLINE_BYTES: '1' };
    await using gated = await createTestApp({ settings, overrides: { blobs: store.blobs } });
    const stack = await createStack(gated);
    const update = await startUpdate(gated, stack, { journal: true });
    await ok(append(gated, update, creation(1, 'late', stack)));
    store.shut();
    await ok(cancel(gated, stack, update));
    const late = gated.context.compactor.compact(update.id);
    await until(() => store.waiting() > 0, 'the compaction is stored, not committed');
    await ok(deleteStack(gated, stack));
    store.open();
    await late;
    expect(await query(gated, 'select 1 from checkpoints')).toEqual([]);
    // The compaction that the cancellation asked for may still hold the stack for a moment.
    await until(async () => (await finished(gated)) === 1, 'the stack is deleted');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('one of several concurrent deletes succeeds, and so does one of the following creates', async () => {
  const stack = await createStack(app);
  const deletes = await Promise.all([app, replica, app, replica].map((on) => deleteStack(on, stack)));
  expect(deletes.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404]);
  const creates = await Promise.all(
    [app, replica, app, replica].map((on) =>
      on.call('POST', `/api/stacks/${stack.organization}/proj`, { auth: stack.auth, body: { stackName: stack.stack } }),
    ),
  );
  expect(creates.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  expect(await finished(app)).toBe(1);
});
