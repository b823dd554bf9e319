import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { beginReconcile, reconcile } from '../../src/shared/state/blobs/reconcile-blobs.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { reconcileInSlices } from '../../src/workers/state/reconcile.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { blobRowKeys, letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { type LateBlobs, openLateBlobs } from '../support/late-blobs.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { complete, saveState } from '../support/update-calls.ts';

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-late-'));
let late: LateBlobs;
let app: TestApp;
let stack: TestStack;
let inUse: string[];
beforeAll(async () => {
  late = await openLateBlobs(directory);
  app = await createTestApp({
    settings: {
      HOLDFAST_INLINE_BYTES: '1',
      blobGraceSeconds: 3600,
      HOLDFAST_BLOB_RETENTION_SECONDS: '3600',
    },
    overrides: { blobs: late.blobs },
  });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** A stack with a state in the store and one pending upload whose outcome is unknown. */
beforeEach(async () => {
  await late.arrive();
  await query(app, 'truncate checkpoints, journal_snapshots, blobs cascade');
  for (const key of await storedKeys(app)) await late.blobs.delete(key);
  stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 2));
  late.freeze();
  expect((await saveState(app, update, 3)).status).toBe(503);
  late.thaw();
  await ok(complete(app, update));
  inUse = await storedKeys(app);
  expect([inUse.length, late.onTheWay()]).toEqual([1, 1]);
});

async function sweepAfterADay(): Promise<void> {
  await letBlobsAge(app);
  await sweepBlobs(app.context);
}

async function runReconcile(options: { adoptAll?: boolean } = {}) {
  const { counts } = await reconcile(app.context, await beginReconcile(app.context, options), {
    objectsPerSecond: 1_000_000,
  });
  return counts;
}

describe('an upload that arrives after its blob was swept', () => {
  test('is deleted by the second deletion when it arrives within the grace period', async () => {
    await sweepAfterADay();
    await late.arrive();
    expect(await storedKeys(app)).toHaveLength(2);
    await sweepBlobs(app.context);
    expect(await storedKeys(app)).toHaveLength(2);
    await sweepAfterADay();
    expect(await storedKeys(app)).toEqual(inUse);
    expect(await blobRowKeys(app)).toEqual(inUse);
  });

  test('is found by the reconciling job when it arrives even later', async () => {
    await sweepAfterADay();
    await sweepAfterADay();
    expect(await blobRowKeys(app)).toEqual(inUse);
    await late.arrive();
    expect(await runReconcile()).toMatchObject({ objects: 2, rows: 2, adopted: 1, held: 0, missing: 0 });
    // Deleted only after its time as a row.
    await sweepBlobs(app.context);
    expect(await storedKeys(app)).toHaveLength(2);
    expect(await runReconcile()).toMatchObject({ objects: 2, adopted: 0 });
    await sweepAfterADay();
    expect(await storedKeys(app)).toEqual(inUse);
    await sweepAfterADay();
    expect(await blobRowKeys(app)).toEqual(inUse);
    expect(await exportedNames(app, stack)).toHaveLength(2);
  });

  test('is left to the sweep when its writer then asks for its row', async () => {
    const { blobRows, blobs } = app.context;
    for (const state of ['marked', 'forgotten']) {
      const key = `checkpoints/aa/late-${state}`;
      await blobRows.insert(key, null);
      await sweepAfterADay();
      if (state === 'forgotten') await sweepAfterADay();
      await blobs.put(
        key,
        (async function* () {
          yield Buffer.from('late');
        })(),
      );
      expect(await blobRows.isKept(key)).toBe(false);
      await blobRows.scheduleDeletion(key);
      await sweepBlobs(app.context);
      expect(await storedKeys(app)).not.toContain(key);
    }
  });
});

test('the row of a blob whose deletion was begun again stays; it waits no longer because the clock was set back', async () => {
  const { blobRows } = app.context;
  const key = 'checkpoints/aa/late-row';
  const rows = () =>
    query<{ isDeleted: boolean; due: Date; since: Date }>(
      app,
      'select deleted_at is not null as "isDeleted", delete_at as due, pending_deletion_since as since from blobs where key = $1',
      [key],
    );
  await blobRows.insert(key, null);
  await sweepAfterADay();
  const before = await rows();
  expect(before).toMatchObject([{ isDeleted: true, since: expect.any(Date) }]);
  // By a sweep in another process.
  await blobRows.markForDeletion([key]);
  expect(await rows()).toEqual(before);
  await blobRows.scheduleDeletion(key);
  await blobRows.delete(key);
  expect(await rows()).toMatchObject([{ isDeleted: false }]);
  await query(app, `update blobs set delete_at = now() + interval '10 days' where key = $1`, [key]);
  await sweepBlobs(app.context);
  expect(await rows()).toMatchObject([{ isDeleted: true }]);
});

describe('the reconciling job', () => {
  test('adopts no more objects than there are blobs in use, unless configured otherwise', async () => {
    await late.arrive();
    await sweepAfterADay();
    await sweepAfterADay();
    for (const name of ['one', 'two', 'three']) {
      await late.blobs.put(
        `checkpoints/aa/${name}`,
        (async function* () {
          yield Buffer.from(name);
        })(),
      );
    }
    expect(await runReconcile()).toMatchObject({ adopted: 1, held: 2 });
    expect(await runReconcile({ adoptAll: true })).toMatchObject({ adopted: 2, held: 0 });
  });

  test('deletes nothing when the database is empty, or when another installation uses the store', async () => {
    await late.arrive();
    const keys = await storedKeys(app);
    await query(app, 'truncate checkpoints, journal_snapshots, blobs cascade');
    expect(await runReconcile()).toMatchObject({ objects: 2, adopted: 0, held: 2 });
    const marker = 'installations/6f8f2f9e-0000-4000-8000-000000000000';
    await late.blobs.put(
      marker,
      (async function* () {
        yield Buffer.from('x');
      })(),
    );
    expect(await runReconcile({ adoptAll: true })).toMatchObject({ adopted: 0, held: 2 });
    await late.blobs.delete(marker);
    expect(await storedKeys(app)).toEqual(keys);
    expect(await blobRowKeys(app)).toEqual([]);
  });

  test('reports a blob that a state needs and the store does not have, but not a swept one', async () => {
    await sweepAfterADay();
    expect(await runReconcile()).toMatchObject({ missing: 0 });
    await late.blobs.delete(inUse[0] as string);
    expect(await runReconcile()).toMatchObject({ objects: 0, missing: 1 });
  });

  test('continues from the position that another process has recorded, and tolerates a second round beside it', async () => {
    await sweepAfterADay();
    await sweepAfterADay();
    await late.arrive();
    const parts = { ...app.context, blobs: await openBlobStore({ kind: 'files', directory, pageSize: 1 }) };
    const positions: string[] = [];
    const stopped = await reconcile(parts, await beginReconcile(parts), {
      objectsPerSecond: 1_000_000,
      onPage: async (position) => {
        positions.push(JSON.stringify(position));
        return false;
      },
    });
    expect(stopped).toMatchObject({ pass: 'objects', counts: { objects: 1, rows: 0 } });
    const rest = () => reconcile(parts, JSON.parse(positions[0] as string), { objectsPerSecond: 1_000_000 });
    const [one, two] = await Promise.all([rest(), rest()]);
    for (const ended of [one, two]) expect(ended).toMatchObject({ pass: 'done', counts: { objects: 2, rows: 2 } });
    expect(await blobRowKeys(app)).toEqual(await storedKeys(app));
  });

  test('marks rows created before there were marks', async () => {
    await query(app, 'update blobs set unreferenced_since = null');
    expect(await runReconcile()).toMatchObject({ marked: 1 });
    await sweepAfterADay();
    await sweepAfterADay();
    expect(await blobRowKeys(app)).toEqual(inUse);
    // As a release without marks condemns them.
    await query(app, `insert into blobs (key, pending_deletion_since) values ('checkpoints/aa/x', now())`);
    expect(await runReconcile()).toMatchObject({ marked: 1 });
    await sweepBlobs(app.context);
    await sweepAfterADay();
    expect(await blobRowKeys(app)).toEqual(inUse);
  });
});

test('an unfinished round in an unknown format is begun again, with its limit', async () => {
  const { context } = app;
  await query(app, 'truncate checkpoints, journal_snapshots, blobs cascade');
  const runs = createBackgroundTaskRepository(context.db);
  const task = reconcileInSlices(context, runs);
  const holder = randomUUID();
  await runs.claim('reconcile', holder, { claimSeconds: 60, everySeconds: 0 });
  // Without the limit of what may be adopted, all objects of a database that was lost would be left to the sweep.
  const position = JSON.stringify({ pass: 'objects', after: null, counts: {} });
  await task.run(new AbortController().signal, { holder, position });
  expect(await blobRowKeys(app)).toEqual([]);
  expect(JSON.parse((await runs.findResult('reconcile')) ?? '{}')).toMatchObject({ objects: 1, adopted: 0, held: 1 });
});

describe('a blob is marked', () => {
  const marks = async (): Promise<Record<string, boolean>> => {
    const rows = await query<{ key: string; marked: boolean }>(
      app,
      `select key, unreferenced_since is not null as marked from blobs where key like 'checkpoints/aa/%' order by key`,
    );
    return Object.fromEntries(rows.map(({ key, marked }) => [key.slice('checkpoints/aa/'.length), marked]));
  };

  test('until it is referred to, and once its stack is deleted', async () => {
    await query(app, `update blobs set unreferenced_since = null where unreferenced_since is not null`);
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    await createStackDeletion(app.context)();
    const rows = await query(app, 'select key from blobs where unreferenced_since is not null');
    expect(rows.map(({ key }) => key)).toEqual(inUse);
  });

  test('when a snapshot is replaced, or deleted with its update', async () => {
    await query(app, `insert into blobs (key) values ('checkpoints/aa/1'), ('checkpoints/aa/2')`);
    const update = await startUpdate(app, stack);
    const put = (key: string) =>
      query(
        app,
        `insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, blob_key)
         values ($1, 1, '', 1, 'zstd', $2)
         on conflict (update_id) do update set blob_key = excluded.blob_key`,
        [update.id, `checkpoints/aa/${key}`],
      );
    expect(await marks()).toEqual({ 1: true, 2: true });
    await put('1');
    expect(await marks()).toEqual({ 1: false, 2: true });
    await put('2');
    expect(await marks()).toEqual({ 1: true, 2: false });
    await query(app, 'update stacks set active_update_id = null');
    await query(app, 'delete from updates where id = $1', [update.id]);
    expect(await marks()).toEqual({ 1: true, 2: true });
  });
});
