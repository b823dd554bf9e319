import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { createDueIndexRepository } from '../../src/shared/search/due-index-repository.ts';
import { createStateIndexRepository } from '../../src/shared/search/state-index-repository.ts';
import { fillHistory, HistoryRound, indexDue } from '../../src/workers/search/index-states.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { indexedChanges, indexedRows, stackId, stateOf, type TestResource } from '../support/state-index.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

let app: TestApp;
let replica: TestApp;
let stack: TestStack;
beforeAll(async () => {
  app = await createTestApp();
  replica = await createTestApp({ database: app.database, dataDir: app.dataDir });
});
afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await query(app, 'delete from state_index_due', []);
  stack = await createStack(app);
});

const due = () => indexDue(app.context, { delaySeconds: 0, backlog: new BytePace(0) });
const index = async () => app.context.indexer.index(await stackId(app, stack));

/** One update that writes these states, one after the other. */
async function up(...states: TestResource[][]): Promise<number> {
  const update = await startUpdate(app, stack);
  for (const resources of states)
    await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: stateOf(stack, resources) }));
  await ok(complete(app, update));
  return update.version;
}

const bucket = (inputs: object, more: Partial<TestResource> = {}): TestResource => ({
  name: 'bucket',
  inputs,
  ...more,
});
const ciphertext = 'v1:c2VjcmV0IHRleHQ=';
const secret = (text: string) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext: text,
});

test('resources of the newest state are rows, and each version has what it changed, by names of properties', async () => {
  const provider = { type: 'pulumi:providers:test', name: 'p', id: 'p1', inputs: { version: '4.2.0' } };
  await up([
    provider,
    bucket({ tags: { Owner: 'ann', 'a.b': 1 }, rules: [{ port: 80 }] }, { id: 'one', provider: 'p' }),
    { name: 'old' },
  ]);
  await up([
    provider,
    bucket(
      { tags: { Owner: 'bob', 'a.b': 2 }, rules: [{ port: 80 }, {}], password: secret(ciphertext) },
      { id: 'one', provider: 'p', protect: true },
    ),
    { name: 'new', parent: 'bucket', dependencies: ['bucket'] },
  ]);
  expect(await due()).toBe(1);
  expect(await due()).toBe(0);
  // The first time, only the newest version is compared with the one before.
  expect(await indexedChanges(app, stack)).toEqual([
    {
      version: 2,
      name: 'bucket',
      change: 'updated',
      paths: ['protect', 'inputs.tags.Owner', 'inputs.tags["a.b"]', 'inputs.rules[1]', 'inputs.password'],
    },
    { version: 2, name: 'new', change: 'created', paths: [] },
    { version: 2, name: 'old', change: 'deleted', paths: [] },
  ]);
  const rows = await indexedRows(app, stack);
  const byName = new Map(rows.map((row) => [row.name, row]));
  expect([...byName.keys()].sort()).toEqual(['bucket', 'new', 'p']);
  expect(byName.get('bucket')).toMatchObject({ is_protected: true, is_custom: true, provider: byName.get('p')?.key });
  expect(byName.get('new')).toMatchObject({
    parent: byName.get('bucket')?.key,
    dependencies: [byName.get('bucket')?.key],
  });
  expect(byName.get('p')).toMatchObject({ provider_version: '4.2.0' });
  await up([provider, bucket({ rules: [] }, { id: 'other', provider: 'p' })]);
  await up([bucket({ rules: [] }, { id: 'other', provider: 'p', modified: '2026-02-02T02:02:02Z' })]);
  await due();
  expect((await indexedChanges(app, stack)).filter(({ version }) => version > 2)).toEqual([
    expect.objectContaining({ version: 3, name: 'bucket', change: 'replaced' }),
    { version: 3, name: 'new', change: 'deleted', paths: [] },
    { version: 4, name: 'p', change: 'deleted', paths: [] },
  ]);
  // No values: neither secret nor other.
  const everything = JSON.stringify([
    await query(app, 'select * from stack_resources', []),
    await query(app, 'select * from resource_changes', []),
  ]);
  for (const value of [ciphertext, 'ann', 'bob', '"80"']) expect(everything).not.toContain(value);
});

test('what versions have changed from before the index is recorded later, as far as their states exist', async () => {
  for (const inputs of [{ a: 1 }, { a: 2 }, { a: 2, b: 1 }, { a: 3, b: 1 }, { a: 3, b: 1, c: 1 }])
    await up([bucket(inputs), ...('b' in inputs ? [{ name: 'late' }] : [])]);
  await due();
  const versions = async () =>
    (await indexedChanges(app, stack)).map(({ change, name, version }) => [version, name, change]);
  expect(await versions()).toEqual([[5, 'bucket', 'updated']]);
  const rows = await indexedRows(app, stack);
  // Retention has deleted the state of the first version, so what the second one has changed is not known.
  await query(app, 'update updates set state_deleted_at = now() where stack_id = $1 and stack_version = 1', [
    await stackId(app, stack),
  ]);
  const fill = (backlog: BytePace) => fillHistory(app.context, { backlog, history: new HistoryRound() });
  expect(await fill(new BytePace(0))).toBe(0);
  // Two processes may do the same.
  // A turn ends after a second, however far it has come.
  const fillAll = async (): Promise<void> => {
    while ((await fill(new BytePace(1e12))) > 0);
  };
  await Promise.all([1, 2].map(fillAll));
  expect(await versions()).toEqual([
    [3, 'bucket', 'updated'],
    [3, 'late', 'created'],
    [4, 'bucket', 'updated'],
    [5, 'bucket', 'updated'],
  ]);
  expect((await indexedChanges(app, stack))[0]).toMatchObject({ paths: ['inputs.b'] });
  expect(await indexedRows(app, stack)).toEqual(rows);
  expect(await fill(new BytePace(1e12))).toBe(0);
  await up([bucket({ a: 4 })]);
  await due();
  expect((await versions()).at(-1)).toEqual([6, 'late', 'deleted']);
});

test('a step writes only rows that differ', async () => {
  const resources = Array.from({ length: 50 }, (_, at) => ({ name: `r${at}`, inputs: { at } }));
  await up(resources);
  await index();
  const writers = async () =>
    new Map((await query(app, 'select key, xmin::text from stack_resources', [])).map(({ key, xmin }) => [key, xmin]));
  const before = await writers();
  await up(resources.map((resource, at) => (at === 7 ? { ...resource, inputs: { at: -1 } } : resource)));
  await index();
  const after = await writers();
  expect([...after].filter(([key, xmin]) => before.get(key) !== xmin)).toHaveLength(1);
});

test('many checkpoints are one stack that is due, and the index follows a running update', async () => {
  const update = await startUpdate(app, stack);
  const write = (name: string) =>
    ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: stateOf(stack, [{ name }]) }));
  for (let count = 0; count < 5; count++) await write(`r${count}`);
  expect(await query(app, 'select stack_id from state_index_due', [])).toHaveLength(1);
  await due();
  expect((await indexedRows(app, stack)).map(({ name }) => name)).toEqual(['r4']);
  expect(await indexedChanges(app, stack)).toEqual([]);
  // Committed while a worker has the stack: due again afterwards.
  const rows = createDueIndexRepository(app.context.db);
  await write('r5');
  const claim = '00000000-0000-4000-8000-000000000001';
  const options = { claim, claimSeconds: 60, delaySeconds: 0, limit: 1, withBacklog: false };
  expect(await rows.claim(options)).toHaveLength(1);
  expect(await rows.claim(options)).toHaveLength(0);
  await index();
  await write('r6');
  await rows.release(await stackId(app, stack), claim);
  expect(await due()).toBe(1);
  expect((await indexedRows(app, stack)).map(({ name }) => name)).toEqual(['r6']);
  await ok(complete(app, update));
  await due();
  expect(await indexedChanges(app, stack)).toEqual([{ version: 1, name: 'r6', change: 'created', paths: [] }]);
});

test('of two processes that index a stack, neither overwrites the rows of the other', async () => {
  await up([{ name: 'a' }]);
  const id = await stackId(app, stack);
  const rows = createStateIndexRepository(app.context.db);
  await index();
  const read = await rows.open(id);
  const [state] = await rows.listStates(id, 1, 1);
  await up([{ name: 'b' }]);
  await Promise.all([app.context.indexer.index(id), replica.context.indexer.index(id)]);
  expect((await indexedRows(app, stack)).map(({ name }) => name)).toEqual(['b']);
  if (!read || !state) throw new Error('nothing is indexed');
  const none = { batches: () => [] };
  const counts = { created: 0, updated: 0, replaced: 0, deleted: 0 };
  const late = { state, resourceCount: 0, skipped: 0, written: none, removed: [], changes: { ...none, counts } };
  expect(await app.context.db.inTransaction((tx) => createStateIndexRepository(tx).write(id, read, late))).toBe(false);
  expect((await rows.open(id))?.version).toBe(2);
});

test('imports, renames and journals are versions, too; a rename changes no resource', async () => {
  await ok(
    app.call('POST', `${stack.path}/import`, {
      auth: stack.auth,
      body: stateOf(stack, [{ name: 'a', parent: 'root' }]),
    }),
  );
  await index();
  const before = await indexedRows(app, stack);
  const body = { newName: 'other', newProject: stack.project };
  await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body }));
  stack = { ...stack, stack: 'other', path: stack.path.replace('/dev', '/other') };
  await index();
  const after = await indexedRows(app, stack);
  expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
  expect(after[0]?.urn).toContain('urn:pulumi:other::');
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'journaled', stack)));
  await ok(complete(app, update));
  await due();
  expect((await indexedChanges(app, stack)).map(({ version, name }) => [version, name])).toEqual([
    [1, 'a'],
    [3, 'journaled'],
  ]);
});

test('the rows of a deleted stack go with it, and nothing is written for it later', async () => {
  await up([{ name: 'a' }]);
  await index();
  const id = await stackId(app, stack);
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  expect(await app.context.indexer.index(id)).toEqual({ versions: 0, bytes: 0 });
  const { createStackDeletion } = await import('../../src/workers/stacks/delete-stacks.ts');
  await createStackDeletion(app.context, { runMs: 120_000 })();
  for (const table of ['stack_resources', 'resource_changes', 'version_changes', 'state_indexes', 'state_index_due'])
    expect(await query(app, `select 1 from ${table} where stack_id = $1`, [id])).toEqual([]);
});

test('a state that cannot be read is tried again later, and the others are indexed', async () => {
  await up([{ name: 'a' }]);
  await query(
    app,
    `update checkpoints set inline_bytes = '\\x00', damaged_at = now(), checked_at = now() where stack_id = $1`,
    [await stackId(app, stack)],
  );
  const broken = stack;
  stack = await createStack(app);
  await up([{ name: 'b' }]);
  expect(await due()).toBe(1);
  expect((await indexedRows(app, stack)).map(({ name }) => name)).toEqual(['b']);
  const [row] = await query(app, 'select failures from state_index_due where stack_id = $1', [
    await stackId(app, broken),
  ]);
  expect(row).toEqual({ failures: 1 });
});

/** Makes the newest state of the stack unreadable. */
const damage = async () =>
  query(
    app,
    `update checkpoints set inline_bytes = '\\x00', damaged_at = now(), checked_at = now() where stack_id = $1`,
    [await stackId(app, stack)],
  );
const dueRow = async () =>
  (
    await query(
      app,
      `select failures, extract(epoch from claimed_until - clock_timestamp())::integer as seconds, claim is not null as "isClaimed"
       from state_index_due where stack_id = $1`,
      [await stackId(app, stack)],
    )
  )[0];

test('a stack that could not be indexed is tried again as soon as something is committed', async () => {
  await up([{ name: 'a' }]);
  await damage();
  expect(await due()).toBe(0);
  await query(app, `update state_index_due set failures = 9, claimed_until = now() + interval '1 hour'`, []);
  await up([{ name: 'b' }]);
  // Nobody has tried the new state.
  expect(await dueRow()).toMatchObject({ failures: 0, isClaimed: false });
  expect(await due()).toBe(1);
  expect((await indexedRows(app, stack)).map(({ name }) => name)).toEqual(['b']);
});

test('a failure does not count if something was committed during the attempt', async () => {
  await up([{ name: 'a' }]);
  const id = await stackId(app, stack);
  const rows = createDueIndexRepository(app.context.db);
  const claim = randomUUID();
  await rows.claim({ claim, claimSeconds: 120, delaySeconds: 0, limit: 1, withBacklog: true });
  await query(app, `update state_index_due set failures = 9`, []);
  await up([{ name: 'b' }]);
  await rows.postpone(id, claim);
  expect(await dueRow()).toMatchObject({ failures: 0, isClaimed: false });
});

test('a worker that is stopped while it indexes a stack gives it back, without a failure', async () => {
  const stops = {
    'between two versions': async () => ({ versions: 0, bytes: 0 }),
    'during a statement': () => Promise.reject(new Error('aborted')),
  };
  for (const end of Object.values(stops)) {
    await query(app, 'delete from state_index_due', []);
    await up([{ name: 'a' }]);
    const stop = new AbortController();
    const index = () => {
      stop.abort();
      return end();
    };
    const context = { ...app.context, indexer: { index } as unknown as typeof app.context.indexer };
    expect(await indexDue(context, { signal: stop.signal, delaySeconds: 0, backlog: new BytePace(0) })).toBe(0);
    expect(await dueRow()).toMatchObject({ failures: 0, isClaimed: false });
  }
});

test('an index with more resources than the bound, of an earlier release, is not read, and written anew', async () => {
  await up([{ name: 'a' }, { name: 'b' }]);
  await index();
  const id = await stackId(app, stack);
  await query(app, 'update state_indexes set resource_count = 300000 where stack_id = $1', [id]);
  // As one that was never written.
  expect(await app.context.indexer.isRight(id)).toBeNull();
  const writtenIn = async () =>
    (await query(app, `select xmin::text from stack_resources where stack_id = $1 and name = 'a'`, [id]))[0];
  const before = await writtenIn();
  await up([{ name: 'a' }, { name: 'c' }]);
  await index();
  expect(await writtenIn()).not.toEqual(before);
  expect((await indexedRows(app, stack)).map(({ name }) => name).toSorted()).toEqual(['a', 'c']);
  expect((await indexedChanges(app, stack)).filter(({ version }) => version === 2)).toMatchObject([
    { name: 'b', change: 'deleted' },
    { name: 'c', change: 'created' },
  ]);
  expect(await app.context.indexer.isRight(id)).toBe(true);
});

test('a stack that ends each process that indexes it has ever longer claims, whatever is committed', async () => {
  await up([{ name: 'a' }]);
  const rows = createDueIndexRepository(app.context.db);
  const claimed = async () => {
    const claim = randomUUID();
    return rows.claim({ claim, claimSeconds: 120, delaySeconds: 0, limit: 1, withBacklog: true });
  };
  for (let killed = 0; killed < 8; killed++) {
    expect(await claimed()).toHaveLength(1);
    await query(app, `update state_index_due set claimed_until = now()`, []);
  }
  expect(await claimed()).toHaveLength(1);
  await up([{ name: 'b' }]);
  expect((await dueRow())?.['seconds']).toBeGreaterThan(3500);
  expect(await claimed()).toEqual([]);
});

test('a blob store that is away counts as no failure of the stacks', async () => {
  await up([{ name: 'a' }]);
  const away = new BlobStoreUnavailableError('throttled', 'away');
  const context = {
    ...app.context,
    blobs: { check: async () => Promise.reject(away) } as unknown as typeof app.context.blobs,
    indexer: { index: async () => Promise.reject(away) } as unknown as typeof app.context.indexer,
  };
  for (let attempt = 0; attempt < 3; attempt++) {
    await query(app, 'update state_index_due set claimed_until = null', []);
    expect(await indexDue(context, { delaySeconds: 0, backlog: new BytePace(0) })).toBe(0);
  }
  expect(await dueRow()).toEqual({ failures: 0, seconds: expect.any(Number), isClaimed: false });
  expect((await dueRow())?.['seconds']).toBeLessThan(31);
});

test('after any sequence of states, the index is what it would be if it were built from them anew', async () => {
  const resource = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    inputs: fc.record(
      { x: fc.integer({ min: 0, max: 2 }), deep: fc.record({ y: fc.boolean() }) },
      { requiredKeys: [] },
    ),
    id: fc.constantFrom('1', '2'),
    delete: fc.constantFrom(false, false, true),
    parent: fc.constantFrom(undefined, 'a', 'b'),
  });
  const state = fc.uniqueArray(resource, {
    selector: ({ delete: isDeleted, id, name }) => (isDeleted ? `${name}${id}` : name),
    maxLength: 4,
  });
  const version = fc.record({
    states: fc.array(fc.tuple(state, fc.boolean()), { minLength: 1, maxLength: 3 }),
    isIndexed: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(version, { minLength: 1, maxLength: 4 }), async (versions) => {
      stack = await createStack(app);
      // From before the first version on.
      await index();
      for (const { isIndexed, states } of versions) {
        const update = await startUpdate(app, stack);
        for (const [resources, isIndexedHere] of states) {
          await ok(
            app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: stateOf(stack, resources) }),
          );
          if (isIndexedHere) await index();
        }
        await ok(complete(app, update));
        if (isIndexed) await index();
      }
      await index();
      const [rows, changes] = [await indexedRows(app, stack), await indexedChanges(app, stack)];
      await app.context.indexer.rebuild(await stackId(app, stack), { allVersions: false });
      expect([await indexedRows(app, stack), await indexedChanges(app, stack)]).toEqual([rows, changes]);
      await app.context.indexer.rebuild(await stackId(app, stack), { allVersions: true });
      expect([await indexedRows(app, stack), await indexedChanges(app, stack)]).toEqual([rows, changes]);
    }),
    { numRuns: 8 },
  );
});
