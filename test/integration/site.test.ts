import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { checkSite } from '../../src/shared/platform/site/site-watch.ts';
import { takeStore } from '../../src/shared/state/blobs/store-ownership.ts';
import { secondStoreTasks } from '../../src/workers/state/second-store-tasks.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runAdminWith } from '../support/admin.ts';
import { readEverything, writeEverything } from '../support/all-documents.ts';
import { damageOf, openPlain } from '../support/backup-damage.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { flipBit } from '../support/damage.ts';
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

const openSite = (name: 'old' | 'new', database: TestDatabase, option = ''): Promise<TestApp> =>
  createTestApp({
    database,
    dataDir: dataDirOf(name),
    settings: {
      HOLDFAST_INLINE_BYTES: '1',
      HOLDFAST_SECOND_STORE: secondStoreOf(name) + option,
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
  expect(await checkSite(old.context)).toBe(true);
  const { code, stderr, stdout } = await runSite(promoted, 'new', 'promote', '--yes', '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ role: 'primary', term: 1, blobs: { copies: 'by the servers', blobs: 0 } });

  expect(await checkSite(promoted.context)).toBe(true);
  const begun = await startUpdate(promoted, await createStack(promoted));
  const again = await runSite(promoted, 'new', 'promote', '--yes');
  expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^This site writes already\..* term 1\./s)]);
  await ok(saveState(promoted, begun, 1));
  await ok(complete(promoted, begun));
  expect(await storedKeys(promoted)).toEqual(expect.arrayContaining([...(await storedKeys(old))]));
  await ok(promoted.call('GET', `${stack.path}/export`, { auth: stack.auth }));

  expect(await checkSite(old.context)).toBe(false);
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

  const recorded = `select action, outcome from audit_events where action like 'site.%'`;
  expect(await query(promoted, recorded)).toEqual([{ action: 'site.promote', outcome: 'done' }]);
  expect(await query(old, recorded)).toEqual([{ action: 'site.replace', outcome: 'refused' }]);
  expect((await runSite(promoted, 'new', 'demote', '--wait', '0')).code).toBe(0);
  expect(await query(promoted, recorded)).toContainEqual({ action: 'site.demote', outcome: 'done' });

  // The old site is the right one again.
  expect((await runSite(old, 'old', 'promote', '--yes')).code).toBe(0);
  expect(await checkSite(old.context)).toBe(true);
  expect(await checkSite(promoted.context)).toBe(false);
});

test('a site whose Postgres was promoted uses its own store, not where the other one has moved its blobs', async () => {
  let stack: TestStack;
  {
    await using app = await openSite('old', oldDatabase);
    stack = await writeState(app);
    // Moved by the old site, and away with it.
    await query(app, `insert into blob_places (phase, main_id, main_url) values ('settled', gen_random_uuid(), $1)`, [
      path.join(folder, 'moved'),
    ]);
  }
  newDatabase = await createTestDatabase(oldDatabase);
  // Its servers do not start before.
  const promoted = { database: newDatabase, dataDir: dataDirOf('new') } as TestApp;
  // Where its own store is away, nobody knows who has moved the blobs.
  renameSync(secondStoreOf('old'), path.join(folder, 'away'));
  const unknown = await runSite(promoted, 'new', 'promote', '--yes');
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringMatching(/does not answer.*--own-store/) });
  expect(await query(promoted, 'select phase from blob_places')).toEqual([{ phase: 'settled' }]);
  renameSync(path.join(folder, 'away'), secondStoreOf('old'));
  const refused = await runSite(promoted, 'new', 'promote', '--yes');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('--own-store') });
  expect((await runSite(promoted, 'new', 'promote', '--yes', '--own-store')).code).toBe(0);
  expect(await query(promoted, 'select 1 from blob_places')).toEqual([]);
  await using started = await openSite('new', newDatabase);
  await ok(started.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  const before = (await storedKeys(started)).length;
  await writeState(started);
  expect((await storedKeys(started)).length).toBeGreaterThan(before);
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
  const waiting = (await query(old, 'select key from blob_copies_due')).length;
  const { blobs } = JSON.parse((await runSite(old, 'old', 'status', '--json')).stdout);
  expect(blobs).toMatchObject({ copies: 'by the servers', blobs: waiting, bytes: expect.any(Number) });
  expect(blobs.bytes).toBeGreaterThan(0);
  expect((await runSite(old, 'old', 'status')).stdout).toContain(`${waiting} blobs (`);
  const metrics = (await old.context.metrics.registry.metrics()).split('\n');
  expect(metrics).toContain(`holdfast_second_store_waiting_blobs ${waiting}`);
  const { notes } = await fsck(old.context, { fixes: false, sample: null, ring: null });
  expect(notes).toContainEqual(expect.stringMatching(/^\d+ objects wait to be copied to the other store/));
  const [copy, compare] = secondStoreTasks(old.context, mirror);
  const claim = { position: null, holder: 'test' };
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
  expect(await copy?.run(new AbortController().signal, { position: null, holder: 'test' })).toBe(keys.length - 1);
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
  await copy?.run(new AbortController().signal, { position: null, holder: 'test' });
  expect([await mirror.main.findAbsent([key]), await mirror.second.findAbsent([key])]).toEqual([[], []]);
});

test('a blob that is noted again while the task looks at it still waits', async () => {
  await using old = await openSite('old', oldDatabase);
  const { blobRows, blobs, mirror } = old.context;
  if (!mirror) throw new Error('there is no second store');
  const key = 'checkpoints/aa/late';
  const claim = { position: null, holder: 'test' };
  const { signal } = new AbortController();
  const away = path.join(folder, 'away');
  // The row precedes the upload: the comparison has found it.
  await blobRows.insert(key, null);
  const [, compare] = secondStoreTasks(old.context, mirror);
  await compare?.run(signal, claim);
  const stat: BlobStore['stat'] = async (at) => {
    const found = await mirror.second.stat(at);
    if (at === key && !existsSync(away)) {
      renameSync(secondStoreOf('old'), away);
      writeFileSync(secondStoreOf('old'), 'no folder');
      await blobs.put(key, bytesOf(Buffer.from('late'))());
    }
    return found;
  };
  const second: BlobStore = new Proxy(mirror.second, {
    get: (store, name: keyof BlobStore) => (name === 'stat' ? stat : store[name]?.bind(store)),
  });
  const [copy] = secondStoreTasks(old.context, { ...mirror, second });
  await copy?.run(signal, claim);
  expect(await query(old, 'select key from blob_copies_due')).toEqual([{ key }]);
  rmSync(secondStoreOf('old'));
  renameSync(away, secondStoreOf('old'));
  await secondStoreTasks(old.context, mirror)[0]?.run(signal, claim);
  expect(await query(old, 'select key from blob_copies_due')).toEqual([]);
  expect(await mirror.second.findAbsent([key])).toEqual([]);
});

test('a copy of the database that does not own the stores deletes in neither what it has noted', async () => {
  const age = `update installation set store_nonce_at = store_nonce_at - interval '2 minutes'`;
  const key = 'audit/noted';
  {
    await using old = await openSite('old', oldDatabase);
    await old.context.blobs.put(key, bytesOf(Buffer.from('needed'))());
    await sweepBlobs(old.context);
  }
  newDatabase = await createTestDatabase(oldDatabase);
  {
    await using old = await openSite('old', oldDatabase);
    await query(old, age);
    await sweepBlobs(old.context);
  }
  await using copy = await openSite('old', newDatabase);
  const { mirror } = copy.context;
  if (!mirror) throw new Error('there is no second store');
  await query(
    copy,
    `insert into blob_copies_due (key, is_deletion, bytes)
     select $1, true, 0 union all select 'audit/gone-' || n, true, 0 from generate_series(1, 250) n`,
    [key],
  );
  const [task] = secondStoreTasks(copy.context, mirror);
  const settle = () => task?.run(new AbortController().signal, { position: null, holder: 'test' });
  const absent = async () => [...(await mirror.main.findAbsent([key])), ...(await mirror.second.findAbsent([key]))];
  expect(await settle()).toBe(0);
  expect(await absent()).toEqual([]);
  await takeStore(copy.context);
  await query(copy, 'update blob_copies_due set try_at = now()');
  expect(await settle()).toBe(251);
  expect(await absent()).toEqual([key, key]);
});

test('with a strict second store, a write that needs a blob is refused while that store is away', async () => {
  {
    await using old = await openSite('old', oldDatabase, '?strict=true');
    const stack = await writeState(old);
    const update = await startUpdate(old, stack);
    takeAway(secondStoreOf('old'));
    for (let attempt = 0; attempt < 2; attempt++) {
      const refused = await saveState(old, update, 4);
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.stringMatching(/^[1-9]\d*$/)]);
      expect(refused.json.message).toContain('The blob store of the second site is down');
    }
    const { text } = await ok(old.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(text).toContain('r2');
    expect(text).not.toContain('r3');
    expect(await query(old, `select key from blob_copies_due where not is_deletion`)).toEqual([]);
  }
  bringBack(secondStoreOf('old'));
  await using again = await openSite('old', oldDatabase, '?strict=true');
  await writeState(again);
  // The object of the refused write is swept.
  const used = await query<{ key: string }>(again, 'select key from blobs where unreferenced_since is null');
  expect(used.length).toBeGreaterThan(1);
  expect(await again.context.mirror?.second.findAbsent(used.map(({ key }) => key))).toEqual([]);
});

function takeAway(store: string): void {
  renameSync(store, path.join(folder, 'away'));
  writeFileSync(store, 'no folder');
}

function bringBack(store: string): void {
  rmSync(store);
  renameSync(path.join(folder, 'away'), store);
}

test('while the first store is away, all reads and a backup go on from the second one', async () => {
  await using old = await openSite('old', oldDatabase);
  const written = await writeEverything(old);
  const before = await readEverything(old, written);
  const first = path.join(dataDirOf('old'), 'blobs');
  takeAway(first);
  expect(await readEverything(old, written)).toEqual(before);
  const target = await FileBlobStore.open({ directory: path.join(folder, 'backups') });
  await backUp({ source: old.context, recipients: [], target });
  const { missingBlobs, blobs } = await openPlain(target);
  expect([missingBlobs, blobs.count]).toEqual([[], expect.any(Number)]);
  expect(blobs.count).toBeGreaterThan(5);
  expect(await damageOf(target)).toEqual([]);
  bringBack(first);
});

test('what the first store has damaged or lost is read from the second one, and repaired', async () => {
  await using old = await openSite('old', oldDatabase);
  const { mirror } = old.context;
  if (!mirror) throw new Error('there is no second store');
  const written = await writeEverything(old);
  const before = await readEverything(old, written);
  const rows = await query<{ key: string }>(old, 'select key from blobs where unreferenced_since is null order by key');
  const keys = rows.map(({ key }) => key);
  expect(keys.length).toBeGreaterThan(5);
  for (const [at, key] of keys.entries()) {
    const bytes = await readSmall(mirror.main, key);
    if (at % 3 === 2) await mirror.main.delete(key);
    else await mirror.main.put(key, bytesOf(at % 3 === 0 ? flipBit(bytes, bytes.length >> 1, 2) : bytes.subarray(1))());
  }
  expect(await readEverything(old, written)).toEqual(before);
  const [copy] = secondStoreTasks(old.context, mirror);
  await copy?.run(new AbortController().signal, { position: null, holder: 'test' });
  for (const key of keys) expect(await readSmall(mirror.main, key)).toEqual(await readSmall(mirror.second, key));
  expect(await query(old, 'select 1 from checkpoints where damaged_at is not null')).toEqual([]);
});

test('fsck compares both stores, and repairs each from the other where a hash proves it', async () => {
  await using old = await openSite('old', oldDatabase);
  const { mirror } = old.context;
  if (!mirror) throw new Error('there is no second store');
  const written = await writeEverything(old);
  const before = await readEverything(old, written);
  const rows = await query<{ key: string }>(old, 'select key from blobs where unreferenced_since is null order by key');
  const keys = rows.map(({ key }) => key);
  const ways = ['damaged', 'lost'].flatMap((how) => [mirror.main, mirror.second].map((store) => ({ how, store })));
  for (const [at, key] of keys.entries()) {
    const { how, store } = ways[at % ways.length] as (typeof ways)[number];
    if (how === 'lost') await store.delete(key);
    else await store.put(key, bytesOf(flipBit(await readSmall(store, key), 9, 2))());
  }
  const run = async (fixes: boolean) => (await fsck(old.context, { fixes, sample: null, ring: null })).findings;
  const kinds = (findings: Awaited<ReturnType<typeof run>>) =>
    [...new Set(findings.filter(({ kind }) => kind.startsWith('copy-')).map(({ kind }) => kind))].sort();
  expect(kinds(await run(false))).toEqual(['copy-differs', 'copy-missing']);
  expect((await run(true)).filter(({ isFixed }) => !isFixed)).toEqual([]);
  expect(await run(false)).toEqual([]);
  for (const key of keys) expect(await readSmall(mirror.main, key)).toEqual(await readSmall(mirror.second, key));
  expect(await readEverything(old, written)).toEqual(before);
});
