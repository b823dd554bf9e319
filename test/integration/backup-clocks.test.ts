import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, jest, test } from '@jest/globals';
import { encryptToRecipients } from '../../src/shared/backup/backup-encryption.ts';
import { findBackups, openBackup } from '../../src/shared/backup/backup-list.ts';
import { backupTasks, readBackupStatus, unverifiedSince } from '../../src/shared/backup/backup-status.ts';
import { backupKeys, ownerOf, writeManifest } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { backUpOnSchedule } from '../../src/workers/backup/scheduled-backup.ts';
import { openPlain } from '../support/backup-damage.ts';
import { testApp } from '../support/test-app.ts';

const dayMs = 24 * 3600 * 1000;
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-clocks-'));
const app = testApp();
afterAll(() => rmSync(home, { recursive: true, force: true }));

const future = '2099-01-01T00:00:00.000Z';
const futureId = '20990101t000000000z';

/** A folder with one backup, whose id and time are of the future as wanted. */
async function locationWith(name: string, { id, takenAt }: { id: string | null; takenAt: string | null }) {
  const location = path.join(home, name);
  const store = await FileBlobStore.open({ directory: location });
  const made = await backUp({ source: app.context, recipients: [], target: store });
  const manifest = await openPlain(store);
  const changed = { ...manifest, ...(id === null ? {} : { id }), ...(takenAt === null ? {} : { takenAt }) };
  const { encrypt } = await encryptToRecipients([]);
  const owner = ownerOf(manifest.installation);
  await store.put(backupKeys.start(changed.id, owner), once(Buffer.from('\n')));
  await store.put(backupKeys.manifest(changed.id), once(await writeManifest(changed, encrypt)));
  const replaced = [backupKeys.start(made.id, owner), backupKeys.manifest(made.id)];
  if (id !== null) for (const key of replaced) await store.delete(key);
  return { location, store };
}

const metricOf = async ({ registry }: ReturnType<typeof createMetrics>, name: string): Promise<number> =>
  ((await registry.getSingleMetric(name)?.get())?.values[0]?.value as number | undefined) ?? Number.NaN;

test('a backup whose id is of the future stays the newest only until the next one', async () => {
  const takenAt = new Date(Date.now() - 2 * dayMs).toISOString();
  const { location, store } = await locationWith('ahead', { id: futureId, takenAt });
  const runs = createBackgroundTaskRepository(app.context.db);
  const task = backUpOnSchedule({ ...app.context, metrics: createMetrics() }, location, runs);
  const run = () => task.run(new AbortController().signal, { position: null, holder: '' });
  await run();
  await run();
  expect((await findBackups(store)).filter(({ isComplete }) => isComplete)).toHaveLength(2);
  expect(Date.parse((await openBackup(store, null)).takenAt)).toBeGreaterThan(Date.parse(takenAt));
  await store.close();
}, 120_000);

test('a backup taken in the future delays none, and counts as none for alerts', async () => {
  const { location, store } = await locationWith('set-back', { id: null, takenAt: future });
  const runs = createBackgroundTaskRepository(app.context.db);
  const [only] = await findBackups(store);
  await store.put(backupKeys.verified(only?.id as string), once(Buffer.from(`${future}\n`)));
  const metrics = createMetrics();
  const backups = [
    {
      ...{ id: only?.id, takenAt: future, finishedAt: future, bytes: 0, blobs: 0, missingBlobs: 0 },
      ...{ isEncrypted: false, verifiedAt: Date.parse(future) },
    },
  ];
  const saved = { location, schedule: '0 3 * * *', keep: 14, backups, lastVerifiedAt: Date.parse(future) };
  await runs.saveResult(backupTasks.create, JSON.stringify(saved));
  const task = backUpOnSchedule({ ...app.context, metrics }, location, runs);
  await task.observe?.();
  for (const name of ['last_success_age', 'overdue'])
    expect([name, await metricOf(metrics, `holdfast_backup_${name}_seconds`)]).toEqual([name, Infinity]);
  // There is none to verify.
  expect(await metricOf(metrics, 'holdfast_backup_last_verified_age_seconds')).toBeNaN();

  await task.run(new AbortController().signal, { position: null, holder: '' });
  expect(await findBackups(store)).toHaveLength(2);
  const status = (await readBackupStatus(runs)).backups;
  expect(status?.lastVerifiedAt).toBeUndefined();
  expect(status && unverifiedSince(status, Date.now())).toBe(Date.parse(status?.backups[0]?.takenAt as string));
  await task.observe?.();
  expect(await metricOf(metrics, 'holdfast_backup_last_success_age_seconds')).toBeLessThan(300);
  await store.close();
}, 120_000);

test('a backup taken a little in the future, by the clock before a fail-over, counts', async () => {
  const ahead = new Date(Date.now() + 240_000).toISOString();
  const { location, store } = await locationWith('slower', { id: null, takenAt: ahead });
  const [only] = await findBackups(store);
  await store.put(backupKeys.verified(only?.id as string), once(Buffer.from(`${ahead}\n`)));
  const runs = createBackgroundTaskRepository(app.context.db);
  const metrics = createMetrics();
  const task = backUpOnSchedule({ ...app.context, metrics }, location, runs);
  await task.run(new AbortController().signal, { position: null, holder: '' });
  expect(await findBackups(store)).toHaveLength(1);
  await task.observe?.();
  for (const name of ['last_success_age', 'overdue', 'last_verified_age'])
    expect([name, await metricOf(metrics, `holdfast_backup_${name}_seconds`)]).toEqual([name, 0]);
  await store.close();
}, 120_000);

test('a process whose clock is ahead makes no more backups than are due', async () => {
  const location = path.join(home, 'own-clock');
  const runs = createBackgroundTaskRepository(app.context.db);
  const task = backUpOnSchedule({ ...app.context, metrics: createMetrics() }, location, runs);
  const run = () => task.run(new AbortController().signal, { position: null, holder: '' });
  const now = new Date();
  jest.useFakeTimers({
    now: now.getTime() + 3 * dayMs,
    doNotFake: [
      ...['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
      ...['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'],
    ] as never,
  });
  try {
    await run();
    await run();
  } finally {
    jest.useRealTimers();
  }
  const store = await FileBlobStore.open({ directory: location });
  const found = await findBackups(store);
  expect(found).toHaveLength(1);
  const day = (at: Date): string => at.toISOString().slice(0, 10).replaceAll('-', '');
  expect([day(now), day(new Date())]).toContain(found[0]?.id.slice(0, 8));
  await store.close();
}, 120_000);
