import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { createStackRepository } from '../../src/shared/stacks/stack-repository.ts';
import { storeDeployment } from '../../src/shared/state/checkpoints/save-document.ts';
import { recordEdit } from '../../src/shared/state/record-edit.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

let app: TestApp;
beforeAll(async () => {
  // Every document goes to the blob store.
  app = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: '1' } });
});
afterAll(() => app[Symbol.asyncDispose]());

let stack: TestStack;
let stackId: string;
beforeEach(async () => {
  stack = await createStack(app);
  const { organization, project, stack: name } = stack;
  stackId = (await app.context.stacks.find({ organization, project, stack: name }))?.id ?? '';
});

const imported = () => storeDeployment(app.context.documents, bytesOf(Buffer.from(JSON.stringify(deployment(3)))));

/** A version with another state, recorded as an import. */
async function record(state?: Awaited<ReturnType<typeof imported>>): Promise<number> {
  const stored = state ?? (await imported());
  return app.context.db.inTransaction(async (tx) => {
    const locked = await createStackRepository(tx).lockById(stackId);
    if (!locked) throw new Error('There is no such stack');
    const version = { updateId: randomUUID(), kind: 'import', message: 'by a test', requestedBy: null } as const;
    return recordEdit(tx, locked, { ...version, state: stored });
  });
}

const recorded = async () => ({
  stack: await query(app, 'select stack_version, checkpoint_id from stacks where id = $1', [stackId]),
  updates: await query(app, 'select id from updates where stack_id = $1 order by id', [stackId]),
  checkpoints: await query(app, 'select id from checkpoints where stack_id = $1 order by id', [stackId]),
});

/** Ends the update without the effects of its end on the state. */
async function interrupt({ id }: RunningUpdate): Promise<void> {
  await query(app, `update updates set status = 'cancelled', ended_at = now() where id = $1`, [id]);
  await query(app, 'update stacks set active_update_id = null where id = $1', [stackId]);
}

test('writes update, checkpoint, head and version together', async () => {
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 1));
  await ok(complete(app, update));
  expect(await record()).toBe(2);
  expect(
    await query(
      app,
      'select stack_version, kind, status, message from updates where stack_version = 2 and stack_id = $1',
      [stackId],
    ),
  ).toEqual([{ stack_version: 2, kind: 'import', status: 'succeeded', message: 'by a test' }]);
  expect(JSON.parse((await exportState(app, stack)).text).deployment.resources).toHaveLength(3);
  const [head] = await query(
    app,
    `select s.stack_version, u.checkpoint_id = s.checkpoint_id as is_head, u.base_checkpoint_id is not null as has_base
     from stacks s join updates u on u.stack_id = s.id and u.stack_version = 2 where s.id = $1`,
    [stackId],
  );
  expect(head).toEqual({ stack_version: 2, is_head: true, has_base: true });
});

describe('changes nothing', () => {
  const refusals: Record<string, { prepare: () => Promise<void>; message: string }> = {
    'while an update holds the stack': {
      prepare: async () => {
        await startUpdate(app, stack);
      },
      message: 'Another update is currently in progress',
    },
    'while entries of an ended update are pending': {
      prepare: async () => {
        const update = await startUpdate(app, stack, { journal: true });
        await ok(append(app, update, creation(1, 'one', stack)));
        await interrupt(update);
      },
      message: 'still being compacted',
    },
    'while a journal could not be replayed': {
      prepare: async () => {
        const update = await startUpdate(app, stack, { journal: true });
        await ok(append(app, update, creation(1, 'one', stack)));
        await interrupt(update);
        await query(app, `update journals set compaction_error = 'it cannot be replayed' where update_id = $1`, [
          update.id,
        ]);
      },
      message: 'it cannot be replayed',
    },
  };

  test.each(Object.entries(refusals))('%s', async (_, { prepare, message }) => {
    await prepare();
    const before = await recorded();
    await expect(record()).rejects.toThrow(message);
    expect(await recorded()).toEqual(before);
  });

  test('when the sweep has pending deletion the stored state', async () => {
    const state = await imported();
    await query(app, 'update blobs set pending_deletion_since = now() where key = $1', [state.document.blobKey]);
    const before = await recorded();
    await expect(record(state)).rejects.toMatchObject({ status: 503 });
    expect(await recorded()).toEqual(before);
  });
});
