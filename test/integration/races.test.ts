import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { createCheckpointRepository } from '../../src/shared/state/checkpoints/checkpoint-repository.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { letBlobsAge } from '../support/blob-rows.ts';
import { holdInserts, query } from '../support/database.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate } from '../support/state.ts';
import { createTestApp, isClustered, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, getUpdate, saveState, saveVerbatim } from '../support/update-calls.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-races-'));
let gated: Awaited<ReturnType<typeof openGatedBlobs>>;
let app: TestApp;
beforeAll(async () => {
  gated = await openGatedBlobs(directory);
  app = await createTestApp({
    // Every state document goes to the blob store, so that its put can be held.
    settings: { HOLDFAST_INLINE_BYTES: '1', blobGraceSeconds: 1, HOLDFAST_BLOB_RETENTION_SECONDS: '1' },
    overrides: { blobs: gated.blobs },
  });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const statuses = async (calls: Promise<{ status: number }>[]) =>
  (await Promise.all(calls)).map(({ status }) => status).sort();

const checkpointCount = async (update: RunningUpdate): Promise<number> =>
  (await query(app, 'select 1 from checkpoints where update_id = $1', [update.id])).length;

/** Runs `work` once `parallel` puts wait, then resumes them all. */
async function whileStored<T>(parallel: number, calls: Promise<T>[], work: () => Promise<unknown>): Promise<T[]> {
  try {
    await until(() => gated.waiting() === parallel, `${parallel} puts wait`);
    await work();
  } finally {
    gated.open();
  }
  return Promise.all(calls);
}

describe('two writers on one update', () => {
  test('with the same sequence number: both succeed, and exactly one counts completely', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    gated.shut();
    const writes = [2, 3].map((count) => saveVerbatim(app, update, 1, deployment(count)));
    const answers = await whileStored(2, writes, async () => {});
    expect(answers.map(({ status }) => status)).toEqual([204, 204]);
    expect([2, 3]).toContain((await exportedNames(app, stack)).length);
    const [row] = await query(app, 'select checkpoint_sequence from updates where id = $1', [update.id]);
    expect(row).toEqual({ checkpoint_sequence: 1 });
    expect(await checkpointCount(update)).toBe(1);
  });

  test('with different numbers: the higher one stays, whichever is last', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    gated.shut();
    const late = saveVerbatim(app, update, 1, deployment(1));
    await until(() => gated.waiting() === 1, 'a put waits');
    gated.open();
    gated.shut();
    const both = [late, saveVerbatim(app, update, 2, deployment(2))];
    expect(await whileStored(1, both, async () => {})).toMatchObject([{ status: 204 }, { status: 204 }]);
    expect(await exportedNames(app, stack)).toHaveLength(2);
  });

  test('many full checkpoints at once: one of them is the state, and no row is left over', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    for (let round = 1; round <= 3; round++) {
      const writes = Array.from({ length: 6 }, (_, index) => saveState(app, update, index + 1));
      expect(new Set(await statuses(writes))).toEqual(new Set([204]));
    }
    await ok(saveState(app, update, 9));
    expect(await exportedNames(app, stack)).toHaveLength(9);
    expect(await checkpointCount(update)).toBe(1);
  });

  test('a delta whose base is replaced meanwhile is rejected or applies to the new base', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const text = (value: string) => `{"version":3,"deployment":{"resources":[],"x":"${value}"}}`;
    await ok(saveVerbatim(app, update, 1, JSON.parse(text('a'))));
    const at = text('a').indexOf('"a"') + 1;
    const place = (offset: number) => ({ line: 1, column: 1, offset });
    const delta = app.call('PATCH', `${update.path}/checkpointdelta`, {
      auth: update.lease,
      body: {
        version: 3,
        checkpointHash: createHash('sha256').update(text('b')).digest('hex'),
        sequenceNumber: 3,
        deploymentDelta: [{ Span: { uri: '', start: place(at), end: place(at + 1) }, NewText: 'b' }],
      },
    });
    gated.shut();
    const [answer] = await whileStored(1, [delta], () =>
      query(
        app,
        `with c as (insert into checkpoints (stack_id, update_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
           select stack_id, id, sha256($3::bytea), length($3::bytea), length($2::bytea), 'zstd', 0, $2::bytea from updates where id = $1 returning id)
         update updates set checkpoint_id = c.id, checkpoint_sequence = 2 from c where updates.id = $1`,
        [update.id, zstdCompressSync(text('other')), Buffer.from(text('other'))],
      ),
    );
    expect(answer?.status).toBe(400);
    expect((await getUpdate(app, stack, update)).status).toBe('running');
  });
});

describe('a checkpoint in flight', () => {
  test.each(['cancelled', 'completed', 'expired', 'deleted'])(
    'changes nothing once its update is %s: 403',
    async (end) => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack);
      await ok(saveState(app, update, 1));
      gated.shut();
      const [answer] = await whileStored(1, [saveState(app, update, 7)], async () => {
        if (end === 'completed') await ok(complete(app, update));
        else if (end === 'expired')
          await query(app, 'update updates set expires_at = now() where id = $1', [update.id]);
        else await ok(cancel(app, stack, update));
        if (end === 'deleted') await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
      });
      expect([answer?.status, answer?.json.code]).toEqual([403, 403]);
      if (end !== 'deleted') expect(await exportedNames(app, stack)).toEqual(['r0']);
    },
  );

  test('of a cancelled update does not affect the next one', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    gated.shut();
    const flying = saveState(app, update, 7);
    await until(() => gated.waiting() === 1, 'the put waits');
    await ok(cancel(app, stack, update));
    const next = await startUpdate(app, stack);
    gated.open();
    expect((await flying).status).toBe(403);
    await ok(saveState(app, next, 2));
    await ok(complete(app, next));
    expect(await exportedNames(app, stack)).toHaveLength(2);
    expect(await exportedNames(app, stack, 1)).toEqual([]);
  });

  test.each(['marked', 'deleted'])('whose blob the sweep has %s is not committed; a retry succeeds', async (how) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    gated.shut();
    const [answer] = await whileStored(1, [saveState(app, update, 3)], async () => {
      // A sweep that stopped halfway, or a complete one.
      if (how === 'marked') {
        await query(
          app,
          'update blobs set pending_deletion_since = now(), delete_at = now() where not exists (select 1 from checkpoints where blob_key = key)',
        );
      } else {
        await letBlobsAge(app);
        expect(await sweepBlobs(app.context)).toBeGreaterThanOrEqual(1);
      }
    });
    // A worker retries its job itself.
    if (isClustered()) {
      expect(answer?.status).toBe(204);
    } else {
      expect(answer?.status).toBe(503);
      expect(answer?.headers['retry-after']).toBeDefined();
      expect(await exportedNames(app, stack)).toEqual([]);
      await ok(saveState(app, update, 3));
    }
    expect(await exportedNames(app, stack)).toHaveLength(3);
  });

  test('whose blob is marked between its upload and its commit is not committed', async () => {
    const update = await startUpdate(app, await createStack(app));
    const [fence] = await query<{ stackId: string; updateId: string; epoch: number }>(
      app,
      'select stack_id as "stackId", id as "updateId", epoch from updates where id = $1',
      [update.id],
    );
    if (!fence) throw new Error('There is no update');
    const blobKey = `checkpoints/aa/${update.id}`;
    await app.context.blobRows.insert(blobKey, null);
    await gated.blobs.put(blobKey, once(Buffer.from('x')));
    const document = {
      sha256: Buffer.alloc(32),
      sizeBytes: 1,
      storedBytes: 1,
      codec: 'zstd',
      inlineBytes: null,
      blobKey,
    };
    const commit = () =>
      createCheckpointRepository(app.context.db).commit(
        fence,
        { document, resourceCount: 0 },
        { sequenceNumber: null, arrivalSequence: null, baseCheckpointId: null },
      );
    const mark = 'update blobs set pending_deletion_since = $2 where key = $1';
    await query(app, mark, [blobKey, new Date()]);
    expect(await commit()).toBeNull();
    expect(await checkpointCount(update)).toBe(0);
    await query(app, mark, [blobKey, null]);
    expect(await commit()).not.toBeNull();
    expect(await checkpointCount(update)).toBe(1);
  });
});

test('the sweep deletes superseded blobs and no others', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  for (const count of [1, 2, 3]) await ok(saveState(app, update, count));
  await letBlobsAge(app);
  await Promise.all([sweepBlobs(app.context), sweepBlobs(app.context)]);
  expect(await sweepBlobs(app.context)).toBe(0);
  await letBlobsAge(app);
  await sweepBlobs(app.context);
  const orphans = 'select key from blobs b where not exists (select 1 from checkpoints c where c.blob_key = b.key)';
  expect(await query(app, orphans)).toEqual([]);
  expect(await exportedNames(app, stack)).toHaveLength(3);
  const rows = await query<{ key: string }>(app, 'select key from blobs');
  const { blobs } = await gated.blobs.list('checkpoints/');
  expect(blobs.map(({ key }) => key).sort()).toEqual(rows.map(({ key }) => key).sort());
});

describe('compactions', () => {
  test('two at once produce one state', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'one', stack)));
    gated.shut();
    const compacts = [1, 2].map(() => app.context.compactor.compact(update.id));
    // The second waits for the first.
    await whileStored(1, compacts, async () => {});
    expect(await checkpointCount(update)).toBe(1);
    expect(await exportedNames(app, stack)).toEqual(['one']);
  });

  test.each([
    [1, 3],
    [3, 1],
  ])(
    'an entry that is committed while a compaction commits is not lost (first entry %i, late entry %i)',
    async (first, sequenceId) => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack, { journal: true });
      await ok(append(app, update, creation(first, 'one', stack)));
      // Stops the next append between its lock and its commit.
      await using gate = await holdInserts(app, 'journal_entries');
      const late = append(app, update, creation(sequenceId, 'late', stack));
      await gate.reached(1);
      const compacting = app.context.compactor.compact(update.id);
      await gate.reached(2);
      await gate.release();
      await ok(late);
      await compacting;
      await ok(complete(app, update));
      expect((await exportedNames(app, stack)).sort()).toEqual(['late', 'one']);
    },
  );
});

test('reads during writes always return one consistent state', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 1));
  let writing = true;
  const read = async () => {
    while (writing) {
      const { json } = await exportState(app, stack);
      const inputs = json.deployment.resources.map((one: { inputs: { input: string } }) => one.inputs.input[0]);
      expect(new Set(inputs).size).toBe(1);
    }
  };
  const readers = [read(), read()];
  for (let round = 0; round < 15; round++) await ok(saveState(app, update, 40, 'abcdefghijklmno'[round]));
  writing = false;
  await Promise.all(readers);
  expect((await getStack(app, stack)).activeUpdate).toBe(update.id);
});
