import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { DeletedStackRestorer } from '../../src/shared/state/deleted-stack-restorer.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { listEvents } from '../support/audit.ts';
import { blobRowKeys, letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { countRows, createFilledStack, deleteStack, noRows } from '../support/deleted-stacks.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, saveState } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';
import { rowsOf } from '../support/whole-stack.ts';

const settings = {
  HOLDFAST_DELETED_STACK_DAYS: '7',
  HOLDFAST_INLINE_BYTES: '1',
  blobGraceSeconds: 1,
  journalGraceSeconds: 0,
  eventArchiveDelaySeconds: 1,
};
/** Two replicas: one must not serve from memory what the other has changed. */
let app: TestApp;
let replica: TestApp;
let stack: TestStack;
beforeAll(async () => {
  app = await createTestApp({ settings });
  replica = await createTestApp({ settings, database: app.database, dataDir: app.dataDir });
});
beforeEach(async () => {
  stack = await createStack(app);
});
afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

const deletedPath = ({ organization }: TestStack) => `/api/orgs/${organization}/deleted-stacks`;
const listDeleted = async (on: TestApp, of: TestStack) =>
  (await ok(on.call('GET', deletedPath(of), { auth: of.auth }))).json.deletedStacks;
const restore = (on: TestApp, of: TestStack, id: string, body: object = {}) =>
  on.call('POST', `${deletedPath(of)}/${id}/restore`, { auth: of.auth, body });
const purge = (on: TestApp, of: TestStack, id: string) =>
  on.call('DELETE', `${deletedPath(of)}/${id}`, { auth: of.auth });
const importState = (of: TestStack, count: number, note = '') =>
  ok(app.call('POST', `${of.path}/import`, { auth: of.auth, ...gzipped(deployment(count, note)) }));
const encrypt = async (of: TestStack) =>
  (await ok(app.call('POST', `${of.path}/encrypt`, { auth: of.auth, body: { plaintext: 'QQ==' } }))).json.ciphertext;
const decrypt = (on: TestApp, of: TestStack, ciphertext: string) =>
  on.call('POST', `${of.path}/decrypt`, { auth: of.auth, body: { ciphertext } });
const createNamed = (of: TestStack, stackName = of.stack) =>
  app.call('POST', `/api/stacks/${of.organization}/proj`, { auth: of.auth, body: { stackName } });
const purgeDue = (on: TestApp = app) => createStackDeletion(on.context, { pauseMs: 0, runMs: 600_000 })();
const named = (of: TestStack, name: string): TestStack => ({ ...of, stack: name, path: of.path.replace(/dev$/, name) });

async function runUpdate(of: TestStack, count: number): Promise<void> {
  const update = await startUpdate(app, of);
  await ok(saveState(app, update, count));
  const events = [{ sequence: 0, timestamp: 1, stdoutEvent: { message: 'x', color: '' } }];
  await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
  await ok(complete(app, update));
}

/** Deletes the stack as `pulumi stack rm --force` does. Returns its id. */
async function remove(of: TestStack): Promise<string> {
  const { id } = await getStack(app, of);
  await ok(deleteStack(app, of));
  return id as string;
}

/** As after all days in which the stack could be restored. */
const letTimePass = (id: string) =>
  query(app, `update stacks set restorable_until = clock_timestamp() - interval '1 second' where id = $1`, [id]);

/** Every sweep that deletes something, long after the deletion. */
async function sweepEverything(): Promise<void> {
  await query(app, `update updates set ended_at = ended_at - interval '3 days' where ended_at is not null`);
  await query(app, `update checkpoints set encode_at = now() where encode_at is not null`);
  for (let round = 0; round < 3; round++) {
    await expireLeases(app.context);
    await archiveEvents(app.context);
    await encodeVersions(app.context);
    await purgeDue();
    await letBlobsAge(app, 100);
    await sweepBlobs(app.context);
  }
}

describe('a deleted stack with resources', () => {
  test('is listed, and comes back with every row that it had', async () => {
    const ciphertext = await encrypt(stack);
    await importState(stack, 3);
    await runUpdate(stack, 4);
    await runUpdate(stack, 5);
    await ok(app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }));
    const moved = named(stack, 'moved');
    await ok(app.call('PATCH', `${moved.path}/tags`, { auth: stack.auth, body: { owner: 'ada' } }));
    await createHook(app, moved, 'stack', { payloadUrl: 'https://203.0.113.1/hook' });
    const { id } = await getStack(app, moved);
    await app.context.indexer.index(id);
    const [rows, exported] = [await rowsOf(app, id), await exportState(app, moved)];
    const history = await ok(app.call('GET', `${moved.path}/updates`, { auth: stack.auth }));
    expect(Object.values(rows).flat().length).toBeGreaterThan(20);

    await remove(moved);
    expect((await app.call('GET', moved.path, { auth: stack.auth })).status).toBe(404);
    expect((await decrypt(app, stack, ciphertext)).status).toBe(404);
    const [listed, ...others] = await listDeleted(replica, stack);
    expect(others).toEqual([]);
    const deletedAt = Date.parse(listed.deletedAt);
    expect(Date.parse(listed.restorableUntil) - deletedAt).toBeCloseTo(7 * 86_400_000, -3);
    expect(listed).toEqual({
      ...{ id, projectName: 'proj', stackName: 'moved', version: 4, resourceCount: 5, nameTaken: false },
      deletedAt: listed.deletedAt,
      deletedBy: expect.stringMatching(/^admin-/),
      restorableUntil: listed.restorableUntil,
    });

    const restored = await ok(restore(replica, stack, id));
    expect(restored.json).toEqual({ orgName: stack.organization, projectName: 'proj', stackName: 'moved' });
    expect(await rowsOf(app, id)).toEqual(rows);
    expect((await exportState(app, moved)).text).toBe(exported.text);
    expect((await ok(app.call('GET', `${moved.path}/updates`, { auth: stack.auth }))).json).toEqual(history.json);
    // Under its former name, too.
    for (const path of [stack, moved]) expect((await decrypt(replica, path, ciphertext)).json.plaintext).toBe('QQ==');
    expect(await listDeleted(app, stack)).toEqual([]);
    // The index of states looks at it again.
    expect(await query(app, 'select 1 from state_index_due where stack_id = $1', [id])).toHaveLength(1);
    await runUpdate(moved, 6);
    const events = await listEvents(app, stack.organization);
    expect(events.find(({ action }) => action === 'stack.undelete')).toMatchObject({
      object: `${stack.organization}/proj/moved`,
      details: { stackId: id, deletedAt: listed.deletedAt, to: `${stack.organization}/proj/moved` },
    });
  });

  test('survives every sweep, and nothing of it is left when its time is over', async () => {
    await using own = await createTestApp({ settings });
    const [before, beforeStack] = [app, stack];
    app = own;
    try {
      stack = await createStack(app);
      for (let version = 1; version <= 3; version++) await importState(stack, 3, 'x'.repeat(version * 1_000));
      await runUpdate(stack, 4);
      const journaled = await startUpdate(app, stack, { journal: true });
      await ok(append(app, journaled, creation(1, 'journaled', stack)));
      await ok(complete(app, journaled));
      const exports = await Promise.all([1, 2, 3, 4, 5].map((version) => exportState(app, stack, version)));
      const keys = await storedKeys(app);
      const id = await remove(stack);
      await sweepEverything();
      // Its events are archived meanwhile.
      expect(await storedKeys(app)).toEqual(expect.arrayContaining(keys));
      // What is to be encoded is not forgotten.
      const due = await query(app, 'select 1 from checkpoints where encode_at > now()');
      expect(due.length).toBeGreaterThan(3);
      await ok(restore(app, stack, id));
      for (const [index, exported] of exports.entries())
        expect((await exportState(app, stack, index + 1)).text).toBe(exported.text);
      await sweepEverything();
      for (const [index, exported] of exports.entries())
        expect((await exportState(app, stack, index + 1)).text).toBe(exported.text);

      await remove(stack);
      await letTimePass(id);
      await sweepEverything();
      expect(await countRows(app)).toEqual(noRows);
      expect(await storedKeys(app)).toEqual([]);
      expect(await blobRowKeys(app)).toEqual([]);
      expect((await restore(app, stack, id)).status).toBe(404);
    } finally {
      [app, stack] = [before, beforeStack];
    }
  });

  test('keeps what its interrupted update has written, although nothing was compacted', async () => {
    await importState(stack, 1);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'interrupted', stack)));
    await query(app, `update updates set status = 'cancelled', ended_at = now(), lease_hash = null where id = $1`, [
      update.id,
    ]);
    await query(app, 'update stacks set active_update_id = null, stack_version = 2 where active_update_id = $1', [
      update.id,
    ]);
    const id = await remove(stack);
    await sweepEverything();
    const renamed = await restore(app, stack, id, { stackName: 'other' });
    expect([renamed.status, renamed.json.message]).toEqual([409, expect.stringContaining('under its own name')]);
    await ok(restore(replica, stack, id));
    expect((await exportedNames(app, stack)).sort()).toEqual(['interrupted', 'r0']);
  });

  test('ends what ran beside it: no lease of before is valid afterwards', async () => {
    const waiting = await ok(app.call('POST', `${stack.path}/preview`, { auth: stack.auth, body: {} }));
    const preview = await startUpdate(replica, stack, { kind: 'preview' });
    const id = await remove(stack);
    await ok(restore(app, stack, id));
    for (const on of [app, replica]) {
      const renewed = await on.call('POST', `${preview.path}/renew_lease`, {
        auth: preview.lease,
        body: { duration: 9 },
      });
      expect(renewed.status).toBe(403);
      expect((await complete(on, preview)).status).toBe(403);
    }
    const start = `${stack.path}/preview/${waiting.json.updateID}`;
    expect((await app.call('POST', start, { auth: stack.auth, body: {} })).status).toBe(409);
    await runUpdate(stack, 1);
  });

  test('can no longer be restored when its restore period is over, or was ended', async () => {
    const ciphertext = await encrypt(stack);
    await importState(stack, 2);
    const id = await remove(stack);
    await letTimePass(id);
    expect(await listDeleted(app, stack)).toEqual([]);
    const late = await restore(app, stack, id);
    expect([late.status, late.json.message]).toEqual([409, expect.stringContaining('can no longer be restored')]);

    await createNamed(stack);
    await importState(stack, 2);
    await encrypt(stack);
    const second = await remove(stack);
    expect((await purge(replica, stack, second)).status).toBe(204);
    // Its secrets are gone with the call.
    expect(await query(app, 'select 1 from encryption_keys where stack_id = $1', [second])).toEqual([]);
    expect((await restore(app, stack, second)).status).toBe(409);
    expect((await purge(app, stack, second)).status).toBe(409);
    const events = await listEvents(app, stack.organization);
    expect(events.find(({ action }) => action === 'stack.purge')).toMatchObject({
      object: `${stack.organization}/proj/dev`,
      details: { stackId: second },
    });
    expect(await purgeDue()).toBe(2);
    for (const call of [restore, purge]) expect((await call(app, stack, second)).status).toBe(404);
    await createNamed(stack);
    expect((await decrypt(app, stack, ciphertext)).status).toBe(400);
  });
});

describe('a name that is taken', () => {
  test('needs another one, which the error offers; the state gets it', async () => {
    const ciphertext = await encrypt(stack);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { 'pulumi:project': 'proj' } }));
    await importState(stack, 2);
    const id = await remove(stack);
    await ok(createNamed(stack));
    await ok(createNamed(stack, 'dev-restored'));
    expect(await listDeleted(app, stack)).toMatchObject([{ nameTaken: true }]);
    const taken = await restore(app, stack, id);
    expect([taken.status, taken.json.message]).toEqual([
      409,
      expect.stringMatching(/already exists.*'dev-restored-2'/),
    ]);
    expect((await restore(app, stack, id, { stackName: 'dev-restored' })).status).toBe(409);
    expect((await restore(app, stack, id, { stackName: '../x' })).status).toBe(400);

    await ok(restore(replica, stack, id, { projectName: 'attic', stackName: 'old' }));
    const old = { ...stack, project: 'attic', stack: 'old', path: `/api/stacks/${stack.organization}/attic/old` };
    const { json } = await exportState(app, old);
    expect(json.deployment.resources.map(({ urn }: { urn: string }) => urn)).toEqual([
      'urn:pulumi:old::attic::pulumi:index:Stash::r0',
      'urn:pulumi:old::attic::pulumi:index:Stash::r1',
    ]);
    expect(await getStack(app, old)).toMatchObject({ id, version: 2, tags: { 'pulumi:project': 'attic' } });
    // Its secrets may still say the path of before, where another stack is now.
    for (const path of [old, stack]) expect((await decrypt(app, path, ciphertext)).json.plaintext).toBe('QQ==');
    expect(await exportedNames(app, old, 1)).toEqual(['r0', 'r1']);
    await runUpdate(old, 3);
    await runUpdate(stack, 1);
  });

  test('does not make two stacks of one', async () => {
    await importState(stack, 1);
    const id = await remove(stack);
    const answers = await Promise.all([
      restore(app, stack, id),
      restore(replica, stack, id),
      restore(app, stack, id, { stackName: 'a' }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404]);
    const live = await query(app, 'select 1 from stacks where id = $1 and deleted_at is null', [id]);
    expect(live).toHaveLength(1);
  });
});

describe('at the same time', () => {
  const rounds = 6;

  test('a restore and a creation of its name: one of them gets it', async () => {
    for (let round = 0; round < rounds; round++) {
      const own = await createStack(app);
      await importState(own, 1);
      const id = await remove(own);
      await ok(createNamed(own, 'other'));
      const rename = () =>
        replica.call('POST', `${named(own, 'other').path}/rename`, { auth: own.auth, body: { newName: 'dev' } });
      const [restored, ...takers] = await Promise.all([restore(app, own, id), createNamed(own), rename()]);
      const all = [restored, ...takers];
      expect(all.filter(({ status }) => status < 300)).toHaveLength(1);
      expect(all.filter(({ status }) => status === 409)).toHaveLength(2);
      const named_ = await query(
        app,
        `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
         where o.name = $1 and s.name = 'dev' and s.deleted_at is null`,
        [own.organization],
      );
      expect(named_).toHaveLength(1);
      if (restored?.status !== 200) await ok(restore(replica, own, id, { stackName: 'back' }));
    }
  });

  test('a restore and the end of its time: it is whole, or gone', async () => {
    const outcomes = new Set<number>();
    for (let round = 0; round < rounds; round++) {
      const own = await createFilledStack(app, { updates: 2, events: 5, entries: 0 });
      const exported = await exportState(app, own, 2);
      const rows = await rowsOf(app, own.stackId);
      await ok(deleteStack(app, own));
      const [restored, ended] = await Promise.all([restore(app, own, own.stackId), purge(replica, own, own.stackId)]);
      outcomes.add(restored.status);
      await purgeDue();
      if (restored.status === 200) {
        expect(ended.status).toBe(404);
        expect(await rowsOf(app, own.stackId)).toEqual(rows);
        expect((await exportState(app, own, 2)).text).toBe(exported.text);
      } else {
        expect([restored.status, ended.status]).toEqual([409, 204]);
        expect(Object.values(await rowsOf(app, own.stackId)).flat()).toEqual([]);
      }
    }
    expect([...outcomes].every((status) => status === 200 || status === 409)).toBe(true);
  });

  test('a restore that waits for the sweep finds out that it is too late', async () => {
    const own = await createFilledStack(app, { updates: 1, events: 1, entries: 0 });
    await ok(deleteStack(app, own));
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    await client.query('begin');
    await client.query('update stacks set restorable_until = null, deleted_checkpoint_id = null where id = $1', [
      own.stackId,
    ]);
    const waiting = restore(app, own, own.stackId);
    const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await query(app, waits)).length > 0, 'the restore waits');
    await client.query('commit');
    await client.end();
    expect((await waiting).status).toBe(409);
    expect(await purgeDue()).toBe(1);
  });

  test('the sweep leaves alone what a restore has locked, and what was restored', async () => {
    const own = await createFilledStack(app, { updates: 1, events: 1, entries: 0 });
    await ok(deleteStack(app, own));
    await letTimePass(own.stackId);
    const deleted = createDeletedStackRepository(app.context.db);
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    await client.query('begin');
    await client.query('select 1 from stacks where id = $1 for update', [own.stackId]);
    expect(await deleted.begin(own.stackId)).toBe(false);
    await client.query('update stacks set deleted_at = null, restorable_until = null where id = $1', [own.stackId]);
    await client.query('commit');
    await client.end();
    expect(await deleted.begin(own.stackId)).toBe(false);
    expect(await app.context.db.inTransaction((tx) => createDeletedStackRepository(tx).lock(own.stackId))).toBe(false);
  });

  test('the sweep leaves alone, and decryptable, what was deleted anew or held since it was listed', async () => {
    const own = await createFilledStack(app, { updates: 0, events: 0, entries: 0 });
    await ok(deleteStack(app, own));
    const deleted = createDeletedStackRepository(app.context.db);
    const keys = () => query(app, 'select id from encryption_keys where stack_id = $1', [own.stackId]);
    expect(await deleted.begin(own.stackId)).toBe(false);
    await letTimePass(own.stackId);
    const hold = `update stacks set held_at = now(), held_by = 'ada', hold_reason = 'audit' where id = $1`;
    await query(app, hold, [own.stackId]);
    expect(await deleted.begin(own.stackId)).toBe(false);
    expect(await keys()).toHaveLength(1);
    await query(app, 'update stacks set held_at = null, held_by = null, hold_reason = null where id = $1', [
      own.stackId,
    ]);
    expect(await deleted.begin(own.stackId)).toBe(true);
    expect(await keys()).toEqual([]);
    expect(await purgeDue()).toBe(1);
  });
});

test('a restore under another name finds out that the stack was used and deleted again meanwhile', async () => {
  await importState(stack, 2);
  const id = await remove(stack);
  const [reached, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = () => {
    reached.resolve();
    return goOn.promise;
  };
  const restoration = { organization: stack.organization, id, project: null, stack: 'late', requestedBy: null };
  const restored = new DeletedStackRestorer(app.context).restore(restoration, { hold, record: async () => {} });
  const refused = expect(restored).rejects.toMatchObject({ status: 409 });
  await reached.promise;
  await ok(restore(replica, stack, id));
  await importState(stack, 5);
  await remove(stack);
  goOn.resolve();
  await refused;
  await ok(restore(app, stack, id));
  expect(await exportedNames(app, stack)).toHaveLength(5);
});

test('the sweep looks again whether a blob is unreferenced', async () => {
  await importState(stack, 3);
  const id = (await getStack(app, stack)).id as string;
  const mark = `update blobs set unreferenced_since = now() - interval '9 days'
    where key in (select blob_key from checkpoints where stack_id = $1) returning key`;
  const [marked] = await query<{ key: string }>(app, mark, [id]);
  await sweepBlobs(app.context);
  expect(await storedKeys(app)).toContain(marked?.key);
  const found = 'select unreferenced_since as since, pending_deletion_since as pending from blobs where key = $1';
  expect(await query(app, found, [marked?.key])).toEqual([{ since: null, pending: null }]);
});

describe('a process that is killed', () => {
  /** Runs each transaction up to its end, and then fails as a connection that breaks before the commit. */
  async function withoutCommit<T>(work: () => Promise<T>): Promise<T> {
    const { db } = app.context as unknown as {
      db: { inTransaction: (run: (tx: never) => Promise<unknown>) => unknown };
    };
    const original = db.inTransaction;
    db.inTransaction = (run) =>
      original(async (tx) => {
        await run(tx);
        throw new Error('the connection broke');
      });
    try {
      return await work();
    } finally {
      db.inTransaction = original;
    }
  }

  test.each([
    ['a restore', () => restore(app, stack, id)],
    ['a restore under another name', () => restore(app, stack, id, { stackName: 'other' })],
    ['a purge', () => purge(app, stack, id)],
  ])('during %s has changed nothing', async (_name, call) => {
    await encrypt(stack);
    await importState(stack, 2);
    id = await remove(stack);
    const rows = await rowsOf(app, id);
    expect((await withoutCommit(call)).status).toBe(500);
    expect(await rowsOf(app, id)).toEqual(rows);
    await ok(restore(app, stack, id));
    expect(await exportedNames(app, stack)).toEqual(['r0', 'r1']);
  });
  let id = '';

  test('after the sweep has begun: the next run deletes the rest', async () => {
    const own = await createFilledStack(app, { updates: 2, events: 5, entries: 5 });
    await ok(deleteStack(app, own));
    await letTimePass(own.stackId);
    expect(await createDeletedStackRepository(app.context.db).begin(own.stackId)).toBe(true);
    expect((await restore(app, own, own.stackId)).status).toBe(409);
    expect(await purgeDue()).toBe(1);
    expect(Object.values(await rowsOf(app, own.stackId)).flat()).toEqual([]);
  });
});

test('a stack is only for admins of its organization to restore', async () => {
  const id = await remove(stack);
  const stranger = await createStack(app);
  const elsewhere = { ...stack, auth: stranger.auth };
  for (const call of [restore, purge]) {
    expect((await call(app, stranger, id)).status).toBe(404);
    expect((await call(app, elsewhere, id)).status).toBe(404);
    for (const role of ['member', 'viewer'] as const) {
      const { auth } = await person(app, stack.organization, role);
      expect((await call(app, { ...stack, auth }, id)).status).toBe(403);
    }
    expect((await call(app, stack, 'none')).status).toBe(404);
  }
  await ok(restore(app, stack, id));
});

test('it is not counted among the stacks, and its bytes are; a restore needs a place', async () => {
  const limited = { ...settings, HOLDFAST_QUOTA_STACKS: '1', HOLDFAST_QUOTA_BYTES: '1000000' };
  await using own = await createTestApp({ settings: limited, database: app.database, dataDir: app.dataDir });
  await importState(stack, 3);
  const measured = async () => {
    const { id: organizationId } = (
      await query<{ id: string }>(app, 'select id from organizations where name = $1', [stack.organization])
    )[0] as { id: string };
    await createStorageRepository(app.context.db).measure(organizationId);
    return createQuotaRepository(app.context.db).findKeptBytes(stack.organization);
  };
  const before = await measured();
  expect(before).toBeGreaterThan(0);
  const id = await remove(stack);
  expect(await measured()).toBe(before);
  await ok(createNamed(stack, 'next'));
  const full = await restore(own, stack, id);
  expect([full.status, full.json.message]).toEqual([409, expect.stringContaining('may have 1 stacks')]);
  await remove(named(stack, 'next'));
  await ok(restore(own, stack, id));
  await remove(stack);
  await ok(purge(app, stack, id));
  expect(await measured()).toBeLessThan(before);
});

test('lists have pages, the last deleted first', async () => {
  const { id } = await getStack(app, stack);
  await query(
    app,
    `insert into stacks (project_id, name, deleted_at, restorable_until, restorable_in, deleted_by)
     select s.project_id, 'x' || to_char(i, 'fm000'), now() - i * interval '1 minute', now() + interval '1 day', p.organization_id, 'ada'
     from stacks s join projects p on p.id = s.project_id, generate_series(1, 250) i where s.id = $1`,
    [id],
  );
  const names: string[] = [];
  let token: string | null = '';
  do {
    const url = `${deletedPath(stack)}?continuationToken=${token}`;
    const { json } = await ok(app.call('GET', url, { auth: stack.auth }));
    names.push(...json.deletedStacks.map(({ stackName }: { stackName: string }) => stackName));
    token = json.continuationToken;
  } while (token !== null);
  expect(names).toEqual(Array.from({ length: 250 }, (_, index) => `x${String(index + 1).padStart(3, '0')}`));
  const wrong = await app.call('GET', `${deletedPath(stack)}?continuationToken=x`, { auth: stack.auth });
  expect(wrong.status).toBe(400);
});

test('without days, a stack is deleted for good', async () => {
  const none = { ...settings, HOLDFAST_DELETED_STACK_DAYS: '0' };
  await using own = await createTestApp({ settings: none, database: app.database, dataDir: app.dataDir });
  await importState(stack, 1);
  const { id } = await getStack(app, stack);
  await ok(deleteStack(own, stack));
  expect(await listDeleted(app, stack)).toEqual([]);
  expect((await restore(app, stack, id)).status).toBe(409);
  expect(await purgeDue()).toBeGreaterThan(0);
  expect((await restore(app, stack, id)).status).toBe(404);
});

test('webhooks are notified that a stack was restored', async () => {
  await createHook(app, stack, 'organization', { payloadUrl: 'https://203.0.113.1/hook' });
  const id = await remove(stack);
  await ok(restore(app, stack, id));
  const notified = await query(
    app,
    'select event, stack from webhook_events where stack_id = $1 order by occurred_at',
    [id],
  );
  expect(notified).toEqual([
    { event: 'stack_deleted', stack: 'dev' },
    { event: 'stack_restored', stack: 'dev' },
  ]);
});

test('a row that an operator deletes by SQL takes all that belongs to the stack with it', async () => {
  await importState(stack, 2);
  await runUpdate(stack, 3);
  const id = await remove(stack);
  await query(app, 'delete from stacks where id = $1', [id]);
  expect(await rowsOf(app, id)).toEqual({});
  expect(await purgeDue()).toBe(0);
});
