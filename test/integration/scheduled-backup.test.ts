import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { findBackups, openBackup } from '../../src/shared/backup/backup-list.ts';
import { places, writeManifest } from '../../src/shared/backup/manifest.ts';
import { once } from '../../src/shared/backup/stored-bytes.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { createRunRepository } from '../../src/shared/platform/maintenance/run-repository.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { backUpOnSchedule } from '../../src/workers/backup/scheduled-backup.ts';
import { runBackup } from '../support/backups.ts';
import { query } from '../support/database.ts';
import { createStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-scheduled-'));
const place = path.join(home, 'backups');
const app = testApp({ settings: { HOLDFAST_BACKUP_TO: place, HOLDFAST_BACKUP_KEEP: '2' } });
afterAll(() => rmSync(home, { recursive: true, force: true }));

const toNumber = (text = ''): number => (text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text));
const gauges = async (): Promise<Record<string, number>> => {
  const lines = (await app.context.metrics.registry.metrics()).split('\n');
  const found = lines.flatMap((line) => /^holdfast_backup_last_(\w+)_age_seconds (\S+)$/.exec(line)?.slice(1) ?? []);
  return { [found[0] as string]: toNumber(found[1]), [found[2] as string]: toNumber(found[3]) };
};

test('backups are made when they are due, old ones are deleted, and their ages are exported', async () => {
  await createStack(app);
  const task = backUpOnSchedule(app.context, place, createRunRepository(app.context.db));
  const run = () => task.run(new AbortController().signal, { place: null, holder: '' });
  const store = await FileBlobStore.open({ directory: place });
  const ids = async () => (await findBackups(store)).map(({ id }) => id);
  await task.observe?.();
  expect(await gauges()).toEqual({ success: Number.POSITIVE_INFINITY, verified: Number.POSITIVE_INFINITY });

  await run();
  const [first] = await ids();
  await run();
  expect(await ids()).toEqual([first]);

  // A day later.
  for (let day = 1; day <= 2; day++) {
    const newest = await openBackup(store, null);
    await antedate(newest.id);
    await run();
  }
  expect(await ids()).toHaveLength(2);
  expect(await ids()).not.toContain(first);
  await task.observe?.();
  expect((await gauges())['verified']).toBeGreaterThan(24 * 3600);
  const verified = await runBackup({ dataDir: home }, 'verify', '--from', place);
  expect(verified.stdout).toContain('no faults');
  await run();
  await task.observe?.();
  const { success, verified: verifiedAge } = await gauges();
  expect(success).toBeLessThan(300);
  expect(verifiedAge).toBeLessThan(300);
  expect(await query(app, 'select id from blob_holds')).toEqual([]);
  await store.close();
}, 120_000);

/** Writes the manifest as if the backup had been made two days earlier. */
async function antedate(id: string): Promise<void> {
  const store = await FileBlobStore.open({ directory: place });
  const manifest = await openBackup(store, id);
  const takenAt = new Date(Date.parse(manifest.takenAt) - 2 * 24 * 3600 * 1000).toISOString();
  await store.put(places.manifest(id), once(writeManifest({ ...manifest, takenAt })));
  await store.close();
}

test('a backup that is stopped leaves no complete one and no hold', async () => {
  const other = path.join(home, 'stopped');
  const context = { ...app.context, metrics: createMetrics() };
  const task = backUpOnSchedule(context, other, createRunRepository(app.context.db));
  const stop = new AbortController();
  stop.abort(new Error('the worker ends'));
  await expect(task.run(stop.signal, { place: null, holder: '' })).rejects.toThrow('the worker ends');
  const store = await FileBlobStore.open({ directory: other });
  expect((await findBackups(store)).filter(({ isComplete }) => isComplete)).toEqual([]);
  expect(await query(app, 'select id from blob_holds')).toEqual([]);
  await store.close();
});
