import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { lookAtSite } from '../../src/shared/platform/site/site-watch.ts';
import { bytesOf } from '../../src/shared/state/checkpoints/body-buffer.ts';
import { secondStoreTasks } from '../../src/workers/state/second-store.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runAdminWith } from '../support/admin.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { complete, saveState } from '../support/update-calls.ts';

/** Two sites: each has its database and its store, which is the second store of the other. */
let folder: string;
let oldDatabase: TestDatabase;
let newDatabase: TestDatabase | null;
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-site-'));
  oldDatabase = await createTestDatabase();
  newDatabase = null;
});
afterEach(async () => {
  await oldDatabase[Symbol.asyncDispose]();
  await newDatabase?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const dataDirOf = (name: 'old' | 'new'): string => path.join(folder, name);
const secondStoreOf = (name: 'old' | 'new'): string => path.join(dataDirOf(name === 'old' ? 'new' : 'old'), 'blobs');

const openSite = (name: 'old' | 'new', database: TestDatabase): Promise<TestApp> =>
  createTestApp({
    database,
    dataDir: dataDirOf(name),
    settings: {
      HOLDFAST_INLINE_BYTES: '1',
      HOLDFAST_SECOND_STORE: secondStoreOf(name),
      blobGraceSeconds: 1,
      HOLDFAST_BLOB_RETENTION_SECONDS: '1',
    },
  });

const runSite = (app: TestApp, name: 'old' | 'new', ...words: string[]) =>
  runAdminWith({ HOLDFAST_SECOND_STORE: secondStoreOf(name) }, app, 'site', ...words);

async function writeState(app: TestApp): Promise<TestStack> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  return stack;
}

/** The store, which refuses to write this blob. */
function refusing(store: BlobStore, key: string): BlobStore {
  const put: BlobStore['put'] = (each, ...rest) =>
    each === key ? Promise.reject(new Error('refused')) : store.put(each, ...rest);
  return new Proxy(store, {
    get: (_, name: keyof BlobStore) => (name === 'put' ? put : store[name]?.bind(store)),
  });
}

test('a promoted site has every blob, and the old one refuses writes, also of running updates, and sweeps nothing', async () => {
  let stack: TestStack;
  {
    await using app = await openSite('old', oldDatabase);
    stack = await writeState(app);
  }
  newDatabase = await createTestDatabase(oldDatabase);
  await using old = await openSite('old', oldDatabase);
  const running = await startUpdate(old, stack);
  await using promoted = await openSite('new', newDatabase);
  expect(await lookAtSite(old.context)).toBe(true);
  const { code, stderr, stdout } = await runSite(promoted, 'new', 'promote', '--yes', '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ role: 'primary', term: 1, blobs: { copies: 'by the servers', blobs: 0 } });

  expect(await lookAtSite(promoted.context)).toBe(true);
  expect(await storedKeys(promoted)).toEqual(expect.arrayContaining([...(await storedKeys(old))]));
  await ok(promoted.call('GET', `${stack.path}/export`, { auth: stack.auth }));

  expect(await lookAtSite(old.context)).toBe(false);
  const refused = await saveState(old, running, 4);
  expect(refused.status).toBe(503);
  expect(await old.context.metrics.registry.metrics()).toMatch(/^holdfast_site_fenced 1$/m);
  expect(await query(old, 'select 1 from installation where outgoing_held_since is not null')).toHaveLength(1);
  await query(old, 'delete from stacks');
  await letBlobsAge(old, 12);
  const before = await storedKeys(promoted);
  expect(await sweepBlobs(old.context)).toBe(0);
  expect(await storedKeys(promoted)).toEqual(before);
  expect(JSON.parse((await runSite(old, 'old', 'status', '--json')).stdout).role).toBe('replaced');

  // The old site is the right one again.
  expect((await runSite(old, 'old', 'promote', '--yes')).code).toBe(0);
  expect(await lookAtSite(old.context)).toBe(true);
  expect(await lookAtSite(promoted.context)).toBe(false);
});

test('the second store catches up once it is back', async () => {
  await using old = await openSite('old', oldDatabase);
  const { mirror } = old.context;
  const broken = path.join(secondStoreOf('old'), 'away');
  if (!mirror) throw new Error('there is no second store');
  renameSync(secondStoreOf('old'), broken.replace('/blobs/away', '/away'));
  writeFileSync(secondStoreOf('old'), 'no folder');
  await writeState(old);
  const due = `select key from blob_copies_due where key not like 'owners/%'`;
  expect((await query(old, due)).length).toBeGreaterThan(0);
  rmSync(secondStoreOf('old'));
  renameSync(broken.replace('/blobs/away', '/away'), secondStoreOf('old'));
  const [copy, compare] = secondStoreTasks(old.context, mirror);
  const claim = { place: null, holder: 'test' };
  const { signal } = new AbortController();
  await copy?.run(signal, claim);
  expect(await query(old, 'select key from blob_copies_due')).toEqual([]);
  expect(await mirror.second.findAbsent(await storedKeys(old))).toEqual([]);
  // What was written without the setting is found by the comparison.
  const [key] = await storedKeys(old);
  await mirror.second.delete(key as string);
  expect(await compare?.run(signal, claim)).toBe(1);
  await copy?.run(signal, claim);
  expect(await mirror.second.findAbsent([key as string])).toEqual([]);
});

test('a blob that cannot be copied does not keep the others from the second store', async () => {
  await using old = await openSite('old', oldDatabase);
  const { mirror } = old.context;
  if (!mirror) throw new Error('there is no second store');
  for (let count = 0; count < 3; count++) await writeState(old);
  const keys = (await query<{ key: string }>(old, 'select key from blobs order by key')).map(({ key }) => key);
  for (const key of keys) await mirror.second.delete(key);
  const [bad] = keys;
  await query(
    old,
    `insert into blob_copies_due (key, is_deletion, bytes, noted_at)
     select key, false, 0, clock_timestamp() - make_interval(secs => case when key = $1 then 60 else 0 end) from blobs`,
    [bad],
  );
  const [copy] = secondStoreTasks(old.context, { ...mirror, second: refusing(mirror.second, bad as string) });
  expect(await copy?.run(new AbortController().signal, { place: null, holder: 'test' })).toBe(keys.length - 1);
  expect(await query(old, 'select key from blob_copies_due')).toEqual([{ key: bad }]);
});

test('a blob that is written again after its deletion stays in both stores', async () => {
  await using old = await openSite('old', oldDatabase);
  const { blobs, mirror } = old.context;
  if (!mirror) throw new Error('there is no second store');
  const key = 'audit/again';
  const write = () => blobs.put(key, bytesOf(Buffer.from('again'))());
  await write();
  const away = path.join(folder, 'away');
  renameSync(secondStoreOf('old'), away);
  writeFileSync(secondStoreOf('old'), 'no folder');
  await blobs.delete(key);
  await write();
  rmSync(secondStoreOf('old'));
  renameSync(away, secondStoreOf('old'));
  const [copy] = secondStoreTasks(old.context, mirror);
  await copy?.run(new AbortController().signal, { place: null, holder: 'test' });
  expect([await mirror.main.findAbsent([key]), await mirror.second.findAbsent([key])]).toEqual([[], []]);
});
