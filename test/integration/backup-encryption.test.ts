import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { openBackup } from '../../src/shared/backup/backup-list.ts';
import { backupKeys, type Manifest } from '../../src/shared/backup/manifest.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { backUpOnSchedule } from '../../src/workers/backup/scheduled-backup.ts';
import { damageOf } from '../support/backup-damage.ts';
import { runBackup } from '../support/backups.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

// Backups that are encrypted to an age recipient. The server that makes them cannot read them.

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-encrypted-'));
const location = path.join(home, 'backups');
const identityFile = path.join(home, 'identity.txt');
const source = () => ({ databaseUrl: app.database.url, dataDir: app.dataDir });
let recipient: string;
let stack: TestStack;
let target: FileBlobStore;

const save = async (note: string): Promise<void> => {
  const update = await startUpdate(app, stack);
  const body = deployment(3_000, note.repeat(2_000));
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
  await ok(complete(app, update));
};
const create = async (...args: string[]): Promise<Manifest> => {
  const { code, stderr, stdout } = await runBackup(source(), 'create', '--to', location, '--json', ...args);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as Manifest;
};
const exported = async (of: TestApp) => (await ok(of.call('GET', `${stack.path}/export`, { auth: stack.auth }))).text;

beforeAll(async () => {
  const identity = await generateX25519Identity();
  recipient = await identityToRecipient(identity);
  writeFileSync(identityFile, `# public key: ${recipient}\n${identity}\n`);
  stack = await createStack(app);
  await save('x');
  target = await FileBlobStore.open({ directory: location });
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('tables, blobs and the contents of the manifest are encrypted; a backup in plain beside them stays whole', async () => {
  const plain = await create();
  const encrypted = await create('--recipient', recipient);
  for (const { object } of encrypted.tables)
    expect((await readSmall(target, object.key)).toString('latin1')).toMatch(/^age-encryption\.org\/v1\n/);
  const { blobs } = await target.list(backupKeys.blobs);
  const copies = blobs.filter(({ key }) => key.startsWith(encrypted.blobPrefix));
  expect(copies).toHaveLength(encrypted.blobs.count);
  for (const { key } of copies)
    expect((await readSmall(target, key)).toString('latin1')).toMatch(/^age-encryption\.org\/v1\n/);
  const manifest = (await readSmall(target, backupKeys.manifest(encrypted.id))).toString();
  expect(manifest).not.toContain(encrypted.installation);
  expect(manifest).not.toContain('organizations');
  expect(await damageOf(target, plain.id)).toEqual([]);
}, 120_000);

test('backups by the command and by the schedule are encrypted to the recipients of the settings', async () => {
  const to = path.join(home, 'by-settings');
  const settings = { HOLDFAST_BACKUP_RECIPIENTS: recipient };
  const { code, stdout } = await runBackup({ ...source(), settings }, 'create', '--to', to, '--json');
  expect([code, (JSON.parse(stdout) as Manifest).recipients]).toEqual([0, [recipient]]);
  const scheduled = path.join(home, 'by-schedule');
  const { config, db } = app.context;
  const context = { ...app.context, config: { ...config, backup: { ...config.backup, recipients: [recipient] } } };
  const task = backUpOnSchedule(context, scheduled, createBackgroundTaskRepository(db));
  await task.run(new AbortController().signal, { position: null, holder: '' });
  const store = await FileBlobStore.open({ directory: scheduled });
  expect((await openBackup(store, null)).recipients).toEqual([recipient]);
  await store.close();
}, 120_000);

test('the next encrypted backup copies only new blobs, without the identity', async () => {
  const before = new Map((await target.list(backupKeys.blobs)).blobs.map(({ key, modifiedAt }) => [key, +modifiedAt]));
  await save('y');
  const next = await create('--recipient', recipient);
  const { blobs } = await target.list(backupKeys.blobs);
  const fresh = blobs.filter(({ key, modifiedAt }) => before.get(key) !== +modifiedAt);
  expect(fresh.length).toBeGreaterThan(0);
  expect(fresh.length).toBeLessThan(next.blobs.count);
}, 120_000);

test('an encrypted backup is verified and restored with the identity only', async () => {
  const { id } = await openBackup(target, null);
  const nothing = { dataDir: path.join(home, 'nothing') };
  const unknown = await runBackup(nothing, 'verify', '--from', location);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining(`is encrypted to ${recipient}`)]);
  const strange = path.join(home, 'strange.txt');
  writeFileSync(strange, await generateX25519Identity());
  const refused = await runBackup(nothing, 'verify', '--from', location, '--identity', strange);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('cannot be decrypted')]);

  const verified = await runBackup(nothing, 'verify', '--from', location, '--identity', identityFile, '--json');
  expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([0, { backup: id, problems: [] }]);

  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'restored');
  const options = ['--from', location, '--identity', identityFile, '--json'];
  const restored = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', ...options);
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  expect(JSON.parse(restored.stdout)).toMatchObject({ backup: id, missingMasterKeys: [], writtenAfter: null });
  await using copy = await createTestApp({
    database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    dataDir,
  });
  expect(await exported(copy)).toBe(await exported(app));
}, 240_000);

test('a damaged encrypted object is found and named', async () => {
  const { blobs } = await target.list(backupKeys.blobs);
  const key = blobs.findLast((blob) => blob.key.includes('/age-'))?.key as string;
  const bytes = await readSmall(target, key);
  await target.put(
    key,
    (async function* () {
      yield bytes.subarray(0, -1);
    })(),
  );
  const options = ['--from', location, '--identity', identityFile];
  const { code, stdout } = await runBackup({ dataDir: path.join(home, 'nothing') }, 'verify', ...options);
  expect([code, stdout]).toEqual([1, expect.stringContaining(key)]);
}, 120_000);

test('a text that is no recipient is refused', async () => {
  const { code, stderr } = await runBackup(source(), 'create', '--to', location, '--recipient', 'age1nobody');
  expect([code, stderr]).toEqual([1, expect.stringContaining('age1nobody is not an age recipient')]);
});
