import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { findDamage } from '../../src/shared/backup/backup-content.ts';
import { type FoundBackup, findBackups, openBackup, readVerification } from '../../src/shared/backup/backup-list.ts';
import { createBlobHoldRepository } from '../../src/shared/backup/blob-hold-repository.ts';
import { BackupError, type Manifest, places } from '../../src/shared/backup/manifest.ts';
import { once } from '../../src/shared/backup/stored-bytes.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { describeLoss } from '../../src/shared/updates/lease.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { runBackup } from '../support/backups.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { chainAll } from '../support/chain-all.ts';
import { flipBit, spread } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { creation } from '../support/journal-entries.ts';
import { PolicyCalls, smallArchive } from '../support/policy-packs.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

// An installation with states in rows and in the blob store, history, secrets, events, a policy pack and a running update.

const app = testApp({ settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' } });
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-backup-'));
const place = path.join(home, 'backups');
let stack: TestStack;
let running: RunningUpdate;
let target: BlobStore;
let manifest: Manifest;

const source = () => ({ databaseUrl: app.database.url, dataDir: app.dataDir });
const exportOf = async (of: TestApp, version?: number) =>
  (await ok(of.call('GET', `${stack.path}/export${version === undefined ? '' : `/${version}`}`, { auth: stack.auth })))
    .text;

async function save(of: TestApp, resources: number, note: string): Promise<void> {
  const update = await startUpdate(of, stack);
  await ok(of.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(resources, note) }));
  await ok(complete(of, update));
}

beforeAll(async () => {
  stack = await createStack(app);
  await save(app, 3, 'small');
  // Above the size of documents in rows.
  await save(app, 3_000, 'x'.repeat(2_000));
  await save(app, 2_500, 'y'.repeat(2_000));
  await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'c2VjcmV0' } }));
  await new PolicyCalls(app, stack).publish({ archive: smallArchive });
  running = await startUpdate(app, stack, { journal: true });
  await ok(append(app, running, creation(1, 'saved', stack)));
  await chainAll(app);
  const { code, stderr } = await runBackup(source(), 'create', '--to', place);
  expect([code, stderr]).toEqual([0, '']);
  target = await FileBlobStore.open({ directory: place });
  manifest = await openBackup(target, null);
}, 240_000);
afterAll(async () => {
  await target?.close();
  rmSync(home, { recursive: true, force: true });
});

test('a backup is verified: restored into a temporary Postgres, with all states read', async () => {
  const [backup] = await findBackups(target);
  expect(await readVerification(target, backup as FoundBackup)).toBeNull();
  const { code, stdout, stderr } = await runBackup({ dataDir: path.join(home, 'nothing') }, 'verify', '--from', place);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(
    /^Backup \w+ was restored .* [1-9]\d* documents, [1-9]\d* audit events, [1-9]\d* data keys .* no faults\.\n$/,
  );
  const [verified] = await findBackups(target);
  expect(await readVerification(target, verified as FoundBackup)).toBeGreaterThan(Date.now() - 120_000);
}, 120_000);

test('with other master keys, the verification fails and says so', async () => {
  const settings = { HOLDFAST_MASTER_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  const { code, stderr, stdout } = await runBackup(
    { dataDir: path.join(home, 'nothing'), settings },
    'verify',
    '--from',
    place,
  );
  expect(code).toBe(1);
  expect(stdout + stderr).toMatch(/master key/i);
}, 120_000);

test('a backup is restored elsewhere with each byte, and the running update ends with the reason', async () => {
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'restored');
  const restored = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', place);
  expect(restored.stderr).toBe('');
  expect(restored.stdout).toContain(`Restored backup ${manifest.id}`);
  expect(restored.stdout).toContain('Ended 1 update.');
  await using copy = await createTestApp({
    database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    dataDir,
    settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' },
  });
  for (const version of [1, 2, 3]) expect(await exportOf(copy, version)).toBe(await exportOf(app, version));
  const late = await append(copy, running, creation(3, 'late', stack));
  expect([late.status, late.json.message]).toEqual([403, expect.stringContaining(describeLoss('database-restored'))]);
  // Sequences go on, and triggers and foreign keys are there again.
  await save(copy, 2, 'next');
  expect(await exportOf(copy)).toContain('next');
  const schema = `select count(*)::integer as keys from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`;
  expect(await query(copy, schema)).toEqual(await query(app, schema));
  expect(await query(copy, `select tgname from pg_trigger where tgenabled = 'D'`)).toEqual([]);

  const keyless = await runBackup(
    { dataDir: path.join(home, 'keyless'), settings: { HOLDFAST_MASTER_KEYS: '' } },
    ...['restore', '--from', place],
  );
  expect(keyless.stdout).toContain(`The master keys ${manifest.masterKeys.join(', ')} are needed, and not here`);

  const again = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', place);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('The database is not empty')]);
}, 240_000);

test('a restore that fails leaves an empty database, and is repeated', async () => {
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'failed');
  const table = manifest.tables.find(({ name }) => name === 'updates') as Manifest['tables'][number];
  const file = await fileOf(table.object.key);
  const bytes = await readFile(file);
  await writeFile(file, bytes.subarray(0, bytes.length - 9));
  const failed = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', place);
  await writeFile(file, bytes);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(table.object.key)]);
  const repeated = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', place);
  expect([repeated.code, repeated.stderr]).toEqual([0, '']);
}, 240_000);

test('the next backup copies only new blobs, and pruning leaves what the newest needs', async () => {
  const other = path.join(home, 'pruned');
  const create = async () => {
    const { code, stdout } = await runBackup(source(), 'create', '--to', other, '--json');
    expect(code).toBe(0);
    return JSON.parse(stdout) as Manifest;
  };
  const first = await create();
  await using store = await openStore(other);
  const copied = await copiedAt(store);
  const second = await create();
  expect(second.id > first.id).toBe(true);
  expect([...(await copiedAt(store))].filter(([key, at]) => copied.get(key) !== at)).toEqual([]);
  const { stdout } = await runBackup(source(), 'prune', '--from', other, '--keep', '1');
  expect(stdout).toMatch(/^Deleted 1 backup and 0 blobs/);
  expect((await findBackups(store)).map(({ id }) => id)).toEqual([second.id]);
  expect(await findDamage(store, await openBackup(store, null), () => {})).toEqual([]);
}, 240_000);

test('an interrupted backup is listed as incomplete, never restored, and goes with the next one', async () => {
  const other = path.join(home, 'interrupted');
  await using store = await openStore(other);
  await store.put(places.start('20200101t000000z'), once(Buffer.from('\n')));
  await store.put(places.table('20200101t000000z', 'stacks'), once(Buffer.from('half')));
  await store.put(places.blob('checkpoints/of-nobody'), once(Buffer.from('half')));
  const { stdout } = await runBackup(source(), 'list', '--from', other);
  expect(stdout).toBe('20200101t000000z  incomplete\n');
  for (const command of ['restore', 'verify']) {
    const { code, stderr } = await runBackup(source(), command, '20200101t000000z', '--from', other);
    expect([code, stderr]).toEqual([1, expect.stringContaining('incomplete')]);
  }
  const created = await runBackup(source(), 'create', '--to', other, '--keep', '3');
  expect(created.stdout).toContain('Deleted 1 backup and 1 blob.');
  expect((await findBackups(store)).map(({ isComplete }) => isComplete)).toEqual([true]);
}, 120_000);

test('a damaged list or manifest of an earlier backup does not hold up the next one, which is whole', async () => {
  const other = path.join(home, 'damaged');
  await using store = await openStore(other);
  for (const damaged of [null, /~blobs~/, /~manifest/]) {
    const names = (await listFiles(other)).filter((file) => damaged?.test(path.basename(file)));
    expect(names.length > 0).toBe(damaged !== null);
    for (const name of names) await writeFile(name, (await readFile(name)).subarray(0, -5));
    const { code, stderr } = await runBackup(source(), 'create', '--to', other);
    expect([code, stderr]).toEqual([0, '']);
    expect(await findDamage(store, await openBackup(store, null), () => {})).toEqual([]);
  }
}, 120_000);

test('while a backup is made, no blob becomes due for deletion', async () => {
  await query(
    app,
    `insert into blob_holds (held_until, ends_at) values (now() + interval '1 minute', now() + interval '1 hour')`,
  );
  const temporary = await startUpdate(app, await createStack(app));
  await ok(
    app.call('PATCH', `${temporary.path}/checkpoint`, {
      auth: temporary.lease,
      body: deployment(3_000, 'z'.repeat(2_000)),
    }),
  );
  await ok(
    app.call('PATCH', `${temporary.path}/checkpoint`, {
      auth: temporary.lease,
      body: deployment(3_000, 'w'.repeat(2_000)),
    }),
  );
  const before = await storedKeys(app);
  await letBlobsAge(app);
  await sweepBlobs(app.context);
  expect(await storedKeys(app)).toEqual(before);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  await sweepBlobs(app.context);
  expect((await storedKeys(app)).length).toBeLessThan(before.length);
});

test('holds of backups that ended without removing them are removed by the next', async () => {
  const holds = createBlobHoldRepository(app.context.db);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  const id = await holds.insert(60, 90);
  expect(await query(app, 'select id from blob_holds')).toEqual([{ id }]);
  expect(await holds.renew(id, 3_600)).toBe(true);
  const left = `select extract(epoch from held_until - now())::integer as seconds from blob_holds`;
  expect((await query<{ seconds: number }>(app, left))[0]?.seconds).toBeLessThanOrEqual(90);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  expect(await holds.renew(id, 60)).toBe(false);
  await holds.delete(id);
});

test('each damaged, missing, truncated or exchanged object of a backup is found and named', async () => {
  const files = await listFiles(place);
  expect(files.length).toBeGreaterThan(20);
  const mutate: Record<string, (file: string, bytes: Buffer, other: string) => Promise<void>> = {
    flipped: (file, bytes) => writeFile(file, flipBit(bytes, Math.floor(bytes.length / 2), 3)),
    truncated: (file, bytes) => writeFile(file, bytes.subarray(0, -1)),
    missing: (file) => rm(file),
    exchanged: async (file, _, other) => writeFile(file, await readFile(other)),
  };
  let mutations = 0;
  for (const [kind, change] of Object.entries(mutate)) {
    for (const at of spread(files.length, 30)) {
      const file = files[at] as string;
      if (isMark(file)) continue;
      const bytes = await readFile(file);
      const other = await findOther(files, bytes);
      await change(file, bytes, other);
      const problems = await openBackup(target, manifest.id).then(
        (found) => findDamage(target, found, () => {}),
        (error: unknown) => {
          if (error instanceof BackupError) return [error.message];
          throw error;
        },
      );
      await writeFile(file, bytes);
      expect([kind, file, problems.length > 0]).toEqual([kind, file, true]);
      mutations++;
    }
  }
  expect(mutations).toBeGreaterThanOrEqual(100);
  expect(await findDamage(target, await openBackup(target, manifest.id), () => {})).toEqual([]);
}, 120_000);

/** A file with other bytes: empty tables are equal. */
async function findOther(files: readonly string[], bytes: Buffer): Promise<string> {
  for (const file of files) if (!(await readFile(file)).equals(bytes)) return file;
  throw new Error('all files are equal');
}

async function openStore(directory: string): Promise<FileBlobStore & AsyncDisposable> {
  const store = await FileBlobStore.open({ directory });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

async function copiedAt(store: BlobStore): Promise<Map<string, number>> {
  const { blobs } = await store.list(places.blob(''));
  expect(blobs.length).toBeGreaterThan(1);
  return new Map(blobs.map(({ key, modifiedAt }) => [key, modifiedAt.getTime()]));
}

/** Objects that say what happened to a backup, and contain nothing of it. */
const isMark = (file: string): boolean => /~(started|verified)$/.test(file);

async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(path.join(directory, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/** The file of an object of the backup. */
async function fileOf(key: string): Promise<string> {
  const name = key.replaceAll('/', '~');
  return (await listFiles(place)).find((file) => path.basename(file) === name) as string;
}
