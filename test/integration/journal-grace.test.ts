import { readdirSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { deleteKeptJournals } from '../../src/workers/state/compact-journals.ts';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

const inBlobs = { HOLDFAST_INLINE_BYTES: '1' };

const entryCount = async (app: TestApp, update: RunningUpdate): Promise<number> =>
  (await query(app, 'select 1 from journal_entries where update_id = $1', [update.id])).length;

async function readBack(app: TestApp, update: RunningUpdate): Promise<void> {
  await until(
    async () =>
      (await query(app, 'select 1 from journals where update_id = $1 and compacted_at is not null', [update.id]))
        .length === 1,
    'the compaction was read back',
  );
}

/** A stack with `base` (r0, r1) and an update of it that adds `new` and removes r0. */
async function updated(app: TestApp): Promise<{ stack: TestStack; update: RunningUpdate }> {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, [...creation(1, 'new', stack), beginning(3, 3), removal(4, 3, 0)]));
  await ok(complete(app, update));
  await readBack(app, update);
  return { stack, update };
}

async function rebuild({ context }: TestApp, { id }: RunningUpdate): Promise<boolean> {
  return context.compactor.rebuild(id, (await context.updates.find(id))?.checkpointId ?? null);
}

/** Makes the update's checkpoint unreadable, as a power cut may do to a file that was not synced. */
async function damage(app: TestApp, update: RunningUpdate): Promise<void> {
  const [row] = await query<{ blob_key: string }>(
    app,
    'select c.blob_key from updates u join checkpoints c on c.id = u.checkpoint_id where u.id = $1',
    [update.id],
  );
  const name = row?.blob_key.replaceAll('/', '~');
  const file = readdirSync(app.dataDir, { recursive: true, encoding: 'utf8' }).find(
    (each) => path.basename(each) === name,
  );
  truncateSync(path.join(app.dataDir, file as string), 20);
}

test('a compacted journal is kept for the grace period and is not compacted again meanwhile', async () => {
  await using app = await createTestApp({ settings: { journalGraceSeconds: 600 } });
  const { update } = await updated(app);
  const empty = await createStack(app);
  const idle = await startUpdate(app, empty, { journal: true });
  await ok(cancel(app, empty, idle));
  await until(async () => (await query(app, 'select 1 from journals')).length === 1, 'nothing is kept without entries');
  await expireLeases(app.context);
  expect([await entryCount(app, update), await app.context.compactions.claimUncompacted(10)]).toEqual([4, []]);
  await query(app, `update journals set compacted_at = compacted_at - interval '590 seconds'`);
  await expireLeases(app.context);
  expect(await entryCount(app, update)).toBe(4);
  await query(app, `update journals set compacted_at = compacted_at - interval '20 seconds'`);
  await expireLeases(app.context);
  expect([await entryCount(app, update), await query(app, 'select 1 from journals')]).toEqual([0, []]);
});

test('the journal of a stack that was deleted before its state was read back is read back while it can be restored', async () => {
  await using app = await createTestApp({
    settings: { journalGraceSeconds: 600, HOLDFAST_DELETED_STACK_DAYS: '7' },
  });
  const { stack, update } = await updated(app);
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await query(app, 'update journals set compacted_at = null, next_compaction_at = null');
  expect(await app.context.compactions.claimUncompacted(10)).toEqual([update.id]);
  await app.context.compactor.compact(update.id);
  await readBack(app, update);
  // Entries that are in no state need the stack.
  await query(app, 'update journals set compacted_at = null, next_compaction_at = null, compacted_entries = 0');
  expect(await app.context.compactions.claimUncompacted(10)).toEqual([]);
});

test('only the state that an ended update still has, with all entries of its journal, counts as read back', async () => {
  await using app = await createTestApp({ settings: { journalGraceSeconds: 600 } });
  const { update } = await updated(app);
  const { compactions } = app.context;
  const [row] = await query<{ id: string; base: string }>(
    app,
    `update journals j set compacted_at = null from updates u where u.id = j.update_id and j.update_id = $1
     returning u.checkpoint_id as id, u.base_checkpoint_id as base`,
    [update.id],
  );
  expect(await compactions.markCompacted(update.id, row?.base as string)).toBe(false);
  await query(app, 'update journals set entry_count = entry_count + 1 where update_id = $1', [update.id]);
  expect(await compactions.markCompacted(update.id, row?.id as string)).toBe(false);
  await query(app, 'update journals set entry_count = entry_count - 1 where update_id = $1', [update.id]);
  expect(await compactions.markCompacted(update.id, row?.id as string)).toBe(true);
});

test('a damaged state is rebuilt from its base and its journal, wherever the stack refers to it', async () => {
  await using app = await createTestApp({ settings: inBlobs });
  const { stack, update } = await updated(app);
  const next = await startUpdate(app, stack, { journal: true });
  await ok(append(app, next, [beginning(1, 1), removal(2, 1, 1)]));
  await damage(app, update);
  expect(await rebuild(app, update)).toBe(true);
  expect(await exportedNames(app, stack, 2)).toEqual(['new', 'r1']);
  await ok(complete(app, next));
  expect(await exportedNames(app, stack)).toEqual(['new']);
  expect(await exportedNames(app, stack, 1)).toEqual(['r0', 'r1']);
  const dangling = await query(
    app,
    `select 1 from updates where kind <> 'import' and (base_checkpoint_id is null or checkpoint_id is null)`,
  );
  expect(dangling).toEqual([]);
});

test('the newest state stays the newest after its repair; the state of a prefix gets no more entries', async () => {
  await using app = await createTestApp({ settings: inBlobs });
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, [...creation(1, 'one', stack), removal(3, 3, 9), ...creation(4, 'two', stack)]));
  await ok(cancel(app, stack, update));
  await readBack(app, update);
  await damage(app, update);
  expect(await rebuild(app, update)).toBe(true);
  expect(await exportedNames(app, stack)).toEqual(['one']);
});

test('a state is not rebuilt when the journal is gone or incomplete', async () => {
  await using app = await createTestApp({ settings: { journalGraceSeconds: 0 } });
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'one', stack)));
  expect(await rebuild(app, update)).toBe(false);
  await ok(complete(app, update));
  await until(async () => (await query(app, 'select 1 from journals')).length === 0, 'journal deleted');
  expect(await rebuild(app, update)).toBe(false);
  expect(await exportedNames(app, stack)).toEqual(['one']);
});

test('a journal is deleted although a hundred older ones cannot be, and the task fails because of them', async () => {
  await using app = await createTestApp({ settings: { journalGraceSeconds: 600 } });
  await createStack(app);
  await query(
    app,
    `with made as (
       insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at)
       select s.id, 'update', true, 'succeeded', now(), now() from stacks s, generate_series(1, 101) i returning id, stack_id
     ), numbered as (select *, row_number() over () as n from made)
     insert into journals (update_id, stack_id, entry_count, compacted_entries, compacted_at)
     select id, stack_id, n, n, now() - make_interval(days => 200 - n::integer) from numbered`,
  );
  await query(app, `create function refuse() returns trigger language plpgsql as $$ begin raise 'a fault'; end $$`);
  await query(
    app,
    'create trigger refuse before delete on journals for each row when (old.entry_count <= 100) execute function refuse()',
  );
  await expect(deleteKeptJournals(app.context)).rejects.toThrow('a fault');
  expect(await query(app, 'select 1 from journals where entry_count > 100')).toEqual([]);
  await query(app, 'drop function refuse cascade');
  await deleteKeptJournals(app.context);
  expect(await query(app, 'select 1 from journals')).toEqual([]);
});

test('a state that does not read back correctly is rebuilt before its journal may be deleted', async () => {
  const tearing: { next: boolean } = { next: false };
  await using database = await createTestApp({ settings: inBlobs });
  const files = await openBlobStore({ kind: 'files', directory: path.join(database.dataDir, 'torn') });
  const blobs: BlobStore = new Proxy(files, {
    get: (store, name) => {
      if (name !== 'put' || !tearing.next) {
        const value = Reflect.get(store, name) as unknown;
        return typeof value === 'function' ? value.bind(store) : value;
      }
      tearing.next = false;
      return (key: string, body: AsyncIterable<Buffer>) =>
        store.put(
          key,
          (async function* () {
            for await (const chunk of body) yield chunk.subarray(0, 30);
          })(),
        );
    },
  });
  await using app = await createTestApp({
    settings: { ...inBlobs, journalGraceSeconds: 0 },
    database: database.database,
    overrides: { blobs },
  });
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'one', stack)));
  tearing.next = true;
  await ok(cancel(app, stack, update));
  await until(async () => (await entryCount(app, update)) === 0, 'the journal has served');
  expect([tearing.next, await exportedNames(app, stack)]).toEqual([false, ['one']]);
});
