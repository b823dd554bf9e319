import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { reconcileOnce } from '../../src/cli/admin/reconcile-command.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { takeStore } from '../../src/shared/state/blobs/store-ownership.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runAdminCommand } from '../support/admin.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { complete, saveState } from '../support/update-calls.ts';

/** One bucket, which is never restored. */
let dataDir: string;
/** The database that continues, and its backup. */
let original: TestDatabase;
let backup: TestDatabase | null;
beforeEach(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-restore-'));
  original = await createTestDatabase();
  backup = null;
});
afterEach(async () => {
  await original[Symbol.asyncDispose]();
  await backup?.[Symbol.asyncDispose]();
  rmSync(dataDir, { recursive: true, force: true });
});

function openApp(database: TestDatabase, retentionSeconds = 86_400): Promise<TestApp> {
  return createTestApp({
    database,
    dataDir,
    settings: {
      HOLDFAST_INLINE_BYTES: '1',
      blobGraceSeconds: 1,
      HOLDFAST_BLOB_RETENTION_SECONDS: String(retentionSeconds),
    },
  });
}

/** One update that writes `count` resources. */
async function update(app: TestApp, stack: TestStack, count: number): Promise<void> {
  const running = await startUpdate(app, stack);
  await ok(saveState(app, running, count));
  await ok(complete(app, running));
}

const exportAll = (app: TestApp, stacks: TestStack[]): Promise<string[]> =>
  Promise.all(stacks.map(async (stack) => (await exportState(app, stack)).text));

async function sweepAfter(app: TestApp, hours: number): Promise<void> {
  await letBlobsAge(app, hours);
  await sweepBlobs(app.context);
  await letBlobsAge(app, 0.01);
  await sweepBlobs(app.context);
}

/** Two stacks of two versions, backed up during a third; then everything is superseded or deleted, and swept. */
async function writeOn(retentionSeconds: number): Promise<{ stacks: TestStack[]; before: string[]; after: string }> {
  let stacks: TestStack[];
  let before: string[];
  let upload: Awaited<ReturnType<TestApp['context']['documents']['save']>>;
  {
    await using app = await openApp(original, retentionSeconds);
    stacks = [await createStack(app), await createStack(app)];
    for (const stack of stacks) for (const count of [1, 2]) await update(app, stack, count);
    before = await exportAll(app, stacks);
    const text = JSON.stringify(deployment(5));
    upload = await app.context.documents.save(bytesOf(Buffer.from(text)));
  }
  backup = await createTestDatabase(original);
  await using app = await openApp(original, retentionSeconds);
  const [kept, deleted] = stacks as [TestStack, TestStack];
  await ok(app.call('DELETE', `${deleted.path}?force=true`, { auth: deleted.auth }));
  const running = await startUpdate(app, kept);
  for (const count of [3, 4]) await ok(saveState(app, running, count));
  // Like the commit of the pending upload.
  await query(
    app,
    `update checkpoints c set blob_key = $1, sha256 = $2, size_bytes = $3, stored_bytes = $4
     from updates u where u.id = $5 and c.id = u.checkpoint_id`,
    [upload.blobKey, upload.sha256, upload.sizeBytes, upload.storedBytes, running.id],
  );
  await ok(complete(app, running));
  await query(app, 'delete from updates where stack_version < 3');
  await sweepAfter(app, 12);
  return { stacks, before, after: (await exportState(app, kept)).text };
}

async function reconcileNow(app: TestApp): Promise<string | null> {
  return reconcileOnce(app.context.db, app.context.config, {
    adoptAll: false,
    print: () => {},
    log: { write: () => {} },
  });
}

test('a database restored to a point within the retention finds every state in the current bucket', async () => {
  const { stacks, before, after } = await writeOn(86_400);
  {
    await using restored = await openApp(backup as TestDatabase);
    expect(await exportAll(restored, stacks)).toEqual(before);
    expect(await reconcileNow(restored)).toBeNull();
    // Objects written since the backup are kept as long, and so are pending uploads: a better restore point may be
    // found.
    const objects = await storedKeys(restored);
    await takeStore(restored.context);
    await sweepAfter(restored, 11);
    expect(await storedKeys(restored)).toEqual(objects);
    expect(await exportAll(restored, stacks)).toEqual(before);
  }
  await using better = await openApp(original);
  expect((await exportState(better, stacks[0] as TestStack)).text).toBe(after);
  expect(await reconcileNow(better)).toBeNull();
});

test('beyond the retention, states are missing, and the reconciling command reports it', async () => {
  const { stacks } = await writeOn(1);
  await using restored = await openApp(backup as TestDatabase, 1);
  const [kept] = stacks as [TestStack];
  expect((await restored.call('GET', `${kept.path}/export`, { auth: kept.auth })).status).toBeGreaterThanOrEqual(500);
  expect(await reconcileNow(restored)).toMatch(/^[1-9] blobs are missing/);
});

test('a database restored to before the purge of a stack has time to restore the stack', async () => {
  await using app = await openApp(original);
  const [first, second] = [await createStack(app), await createStack(app)];
  for (const stack of [first, second]) {
    await update(app, stack, 2);
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  }
  const isOver = `update stacks set restorable_until = now() - interval '3 days' where deleted_at is not null`;
  const restore = async ({ organization }: TestStack) => {
    const of =
      'select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id';
    const [row] = await query<{ id: string }>(app, `${of} where o.name = $1`, [organization]);
    return (await runAdminCommand(app, 'deleted', 'restore', row?.id ?? '', '--organization', organization)).code;
  };
  for (const [command, stack] of [
    ['after-restore', first],
    ['take-over', second],
  ] as const) {
    await query(app, isOver);
    expect(await restore(stack)).toBe(1);
    expect(await runAdminCommand(app, command)).toMatchObject({ code: 0 });
    expect(await restore(stack)).toBe(0);
    await exportState(app, stack);
  }
}, 120_000);
