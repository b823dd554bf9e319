import { globSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { findBackups, openBackup, pruneBackups } from '../../src/shared/backup/backup-list.ts';
import { noteVerified, readBackupStatus } from '../../src/shared/backup/backup-status.ts';
import { backupKeys } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { backUpOnSchedule } from '../../src/workers/backup/scheduled-backup.ts';
import { runHoldfast, runInProcess } from '../support/admin.ts';
import { damageOf } from '../support/backup-damage.ts';
import { query } from '../support/database.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp, testApp } from '../support/test-app.ts';

// Two installations whose settings name the same location of backups, by mistake.

const dayMs = 24 * 3600 * 1000;
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-shared-'));
const settings = { HOLDFAST_BACKUP_KEEP: '1' };
const app = testApp({ settings });
const stranger = testApp({ settings });

beforeAll(async () => {
  await query(stranger, 'update installation set id = gen_random_uuid()');
  for (const each of [app, stranger]) {
    const update = await startUpdate(each, await createStack(each));
    const body = deployment(2_000, 'x'.repeat(1_000));
    await ok(each.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
    await each.context.blobs.put(`audit/${each === app ? 'ours' : 'theirs'}`, once(Buffer.from('one')));
  }
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

async function openLocation(name: string) {
  const location = path.join(home, name);
  return { location, store: await FileBlobStore.open({ directory: location }) };
}

/** The scheduled task of an installation, some days later. */
function scheduled({ context }: TestApp, location: string) {
  const runs = createBackgroundTaskRepository(context.db);
  const metrics = createMetrics();
  const at = { days: 0 };
  const now = () => Date.now() + at.days * dayMs;
  const task = backUpOnSchedule({ ...context, metrics }, location, runs, { local: now, now });
  return {
    runs,
    run: (days: number) => {
      at.days = days;
      return task.run(new AbortController().signal, { position: null, holder: '' });
    },
    overdueSeconds: async (): Promise<number> => {
      await task.observe?.();
      const found = await metrics.registry.getSingleMetric('holdfast_backup_overdue_seconds')?.get();
      return found?.values[0]?.value ?? Number.NaN;
    },
  };
}

test('an installation makes and deletes no backups where only another one has some, and says so', async () => {
  const { location, store } = await openLocation('taken');
  const ours = scheduled(app, location);
  await ours.run(0);
  const before = await findBackups(store);
  expect(before).toHaveLength(1);

  const theirs = scheduled(stranger, location);
  await expect(theirs.run(0)).rejects.toThrow('The location has backups of another installation');
  expect(await theirs.overdueSeconds()).toBe(Number.POSITIVE_INFINITY);
  expect((await readBackupStatus(theirs.runs)).backups).toMatchObject({ backups: [], failure: { count: 1 } });
  for (const words of [
    ['create', '--to', location, '--keep', '1'],
    ['prune', '--from', location, '--keep', '1'],
  ]) {
    const { code, stderr } = await runInProcess(stranger, 'backup', ...words);
    expect([code, stderr]).toEqual([1, expect.stringContaining('backups of another installation')]);
  }
  expect(await findBackups(store)).toEqual(before);
  await store.close();
}, 120_000);

test('installations that share a location count, delete and share only their own backups', async () => {
  const { location, store } = await openLocation('shared');
  const back = ({ context }: TestApp, target: BlobStore = store) => backUp({ source: context, recipients: [], target });
  // Both begin in an empty location.
  let isFirst = true;
  const put: BlobStore['put'] = async (...args) => {
    const stored = await store.put(...args);
    if (isFirst) {
      isFirst = false;
      await back(app);
    }
    return stored;
  };
  const slow = new Proxy<BlobStore>(store, {
    get: (of, name) => (name === 'put' ? put : Reflect.get(of, name).bind(of)),
  });
  const foreign = await back(stranger, slow);
  const listed = await runInProcess(app, 'backup', 'list', '--from', location);
  expect(listed.stdout.match(/, owner \w{16}$/gm)).toHaveLength(2);
  await expect(openBackup(store, null)).rejects.toThrow('There are backups of several installations');

  const ours = scheduled(app, location);
  for (const day of [0, 1, 2]) {
    // Nearest to the time of the next run.
    await back(stranger);
    await ours.run(day);
  }
  const owners = (await findBackups(store)).map(({ owner }) => owner);
  expect(owners.filter((each) => each === owners[0])).toHaveLength(4);
  expect(owners).toHaveLength(5);
  for (const { id } of await findBackups(store)) expect(await damageOf(store, id)).toEqual([]);

  const { backups } = (await readBackupStatus(ours.runs)).backups ?? {};
  expect(backups).toHaveLength(1);
  await noteVerified(ours.runs, { at: Date.now(), id: foreign.id, location });
  expect((await readBackupStatus(ours.runs)).backups?.lastVerifiedAt).toBeUndefined();
  // As on a host that has only the backups.
  const owner = owners[0] ?? '';
  const env = { PATH: process.env['PATH'], HOLDFAST_DATA_DIR: path.join(home, 'none') };
  const prune = (...words: string[]) =>
    runHoldfast(env, 'backup', 'prune', '--from', location, '--keep', '2', ...words);
  expect(await prune()).toMatchObject({ code: 1, stderr: expect.stringContaining('several installations') });
  expect(await prune('--owner', 'other')).toMatchObject({ code: 1, stderr: expect.stringContaining('no backups of') });
  expect(await findBackups(store)).toHaveLength(5);
  const pruned = await prune('--owner', owner, '--json');
  expect(JSON.parse(pruned.stdout).backups).toHaveLength(2);
  const refused = await runInProcess(app, 'backup', 'prune', '--from', location, '--keep', '1', '--owner', owner);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('only its backups are deleted') });
  const made = await runInProcess(stranger, 'backup', 'create', '--to', location);
  expect(made.stdout).toContain(`, owner ${owner}.`);
  expect((await pruneBackups(store, 1)).backups).toHaveLength(2);
  const left = (await findBackups(store)).map(({ id, owner }) => ({ id, owner }));
  expect(new Set(left.map(({ owner }) => owner)).size).toBe(2);
  for (const { id } of left) expect(await damageOf(store, id)).toEqual([]);
  await store.close();
}, 240_000);

test('a backup that goes on no more keeps no blobs, also one of an installation that is gone', async () => {
  const { location, store } = await openLocation('abandoned');
  const cut = new Proxy<BlobStore>(store, {
    get: (of, name) =>
      name === 'put'
        ? async (...[key, ...rest]: Parameters<BlobStore['put']>) => {
            if (key.endsWith('manifest.json')) throw new Error('killed');
            return store.put(key, ...rest);
          }
        : Reflect.get(of, name).bind(of),
  });
  await expect(backUp({ source: stranger.context, recipients: [], target: cut })).rejects.toThrow('killed');
  const [begun] = await findBackups(store);
  const { id } = await backUp({ source: app.context, recipients: [], target: store });
  const prune = async (...words: string[]) =>
    (await runInProcess(app, 'backup', 'prune', '--from', location, '--keep', '1', ...words)).stdout;
  const isThere = async (key: string) => (await store.stat(key)) !== null;
  const theirs = `${backupKeys.blobs}audit/theirs`;
  expect(await prune()).toBe(
    `Deleted 0 backups and 0 blobs. Other blobs stay while backup ${begun?.id} may still be made.\n`,
  );
  expect(await isThere(theirs)).toBe(true);

  const started = globSync('**/*started*', { cwd: location }).find((name) => name.includes(begun?.id ?? 'none'));
  const daysAgo = new Date(Date.now() - 3 * dayMs);
  utimesSync(path.join(location, started ?? 'none'), daysAgo, daysAgo);
  const pruned = JSON.parse(await prune('--json'));
  expect(pruned).toMatchObject({ backups: [begun?.id], locked: [], unfinished: null });
  expect(pruned.blobs).toBeGreaterThan(0);
  expect(await isThere(theirs)).toBe(false);
  expect((await findBackups(store)).map((backup) => backup.id)).toEqual([id]);
  expect(await damageOf(store, id)).toEqual([]);
  await store.close();
}, 120_000);

test('a database of the same installation, as after a restore, goes on with its backups', async () => {
  const { location, store } = await openLocation('copied');
  await scheduled(app, location).run(0);
  const [first] = await findBackups(store);
  await using copy = await createTestApp({ settings });
  const [{ id } = {}] = await query(app, 'select id from installation');
  await query(copy, `update installation set id = '${id}'`);
  expect((await openBackup(store, null)).id).toBe(first?.id);
  await scheduled(copy, location).run(1);
  const [only, ...others] = await findBackups(store);
  expect([only?.owner, others]).toEqual([first?.owner, []]);
  expect(only?.id).not.toBe(first?.id);
  await store.close();
}, 120_000);
