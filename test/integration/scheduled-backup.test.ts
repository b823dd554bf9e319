import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { OperatorQueries } from '../../src/api/operator/operator-queries.ts';
import { findDamage } from '../../src/shared/backup/backup-content.ts';
import { findBackups } from '../../src/shared/backup/backup-list.ts';
import { backupTasks, readBackupStatus, saveBackups } from '../../src/shared/backup/backup-status.ts';
import { backupKeys } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import {
  type BlobStore,
  type BlobStoreFault,
  BlobStoreUnavailableError,
} from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { fencedBy, ReadOnlyMode } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { backUpOnSchedule } from '../../src/workers/backup/scheduled-backup.ts';
import { verifyNewestBackup } from '../../src/workers/backup/verify-newest.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { runInProcess } from '../support/admin.ts';
import { openPlain } from '../support/backup-damage.ts';
import { runBackup } from '../support/backups.ts';
import { query } from '../support/database.ts';
import { ask } from '../support/procedures.ts';
import { createStack } from '../support/state.ts';
import { createTestApp, testApp } from '../support/test-app.ts';

const dayMs = 24 * 3600 * 1000;
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-scheduled-'));
const location = path.join(home, 'backups');
const app = testApp({ settings: { HOLDFAST_BACKUP_TO: location, HOLDFAST_BACKUP_KEEP: '2' } });
afterAll(() => rmSync(home, { recursive: true, force: true }));

const toNumber = (text = ''): number => (text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text));
const gauges = async (): Promise<Record<string, number>> => {
  const lines = (await app.context.metrics.registry.metrics()).split('\n');
  const found = lines.flatMap((line) => /^holdfast_backup_last_(\w+)_age_seconds (\S+)$/.exec(line)?.slice(1) ?? []);
  return { [found[0] as string]: toNumber(found[1]), [found[2] as string]: toNumber(found[3]) };
};

test('backups are made when they are due, old ones are deleted, and their ages are exported', async () => {
  await createStack(app);
  let daysLater = 0;
  const now = () => Date.now() + daysLater * dayMs;
  const task = backUpOnSchedule(app.context, location, createBackgroundTaskRepository(app.context.db), {
    local: now,
    now,
  });
  const run = () => task.run(new AbortController().signal, { position: null, holder: '' });
  const store = await FileBlobStore.open({ directory: location });
  const ids = async () => (await findBackups(store)).map(({ id }) => id);
  await task.observe?.();
  expect(await gauges()).toEqual({ success: Number.POSITIVE_INFINITY, verified: Number.NaN });

  await run();
  const [first] = await ids();
  await run();
  expect(await ids()).toEqual([first]);

  for (daysLater = 1; daysLater <= 2; daysLater++) await run();
  expect(await ids()).toHaveLength(2);
  expect(await ids()).not.toContain(first);
  await task.observe?.();
  expect((await gauges())['verified']).toBeGreaterThan(24 * 3600);
  daysLater = 0;
  const verified = await runBackup({ dataDir: home, databaseUrl: app.database.url }, 'verify', '--from', location);
  expect(verified.stdout).toContain('no faults');
  // Without another look into the location of the backups.
  const shown = (await readBackupStatus(createBackgroundTaskRepository(app.context.db))).backups?.backups[0];
  expect(shown?.verifiedAt).not.toBeNull();
  await task.observe?.();
  const { success, verified: verifiedAge } = await gauges();
  expect(success).toBeLessThan(300);
  expect(verifiedAge).toBeLessThan(300);
  expect(await query(app, 'select id from blob_holds')).toEqual([]);
  await store.close();
}, 120_000);

test('a backup is overdue from the time of the schedule on', async () => {
  const to = path.join(home, 'overdue');
  const at = Date.parse('2026-11-29T01:00:00Z');
  let later = 0;
  await using weekly = await createTestApp({
    settings: { HOLDFAST_BACKUP_TO: to, HOLDFAST_BACKUP_SCHEDULE: '0 3 * * 1' },
  });
  const runs = createBackgroundTaskRepository(weekly.context.db);
  const now = () => at + later;
  const task = backUpOnSchedule(weekly.context, to, runs, { local: now, now });
  const overdue = async (): Promise<number> => {
    await task.observe?.();
    const text = await weekly.context.metrics.registry.metrics();
    return toNumber(/^holdfast_backup_overdue_seconds (\S+)$/m.exec(text)?.[1]);
  };
  expect(await overdue()).toBe(Number.POSITIVE_INFINITY);
  const backups = [
    { id: 'a', takenAt: new Date(at).toISOString(), finishedAt: new Date(at).toISOString(), bytes: 0, blobs: 0 },
  ].map((each) => ({ ...each, missingBlobs: 0, isEncrypted: false, verifiedAt: null }));
  await runs.saveResult(task.name, JSON.stringify({ location: to, schedule: '0 3 * * 1', keep: 2, backups }));
  // From Sunday to Monday.
  for (const [hours, seconds] of [
    [0, 0],
    [25, 0],
    [27, 3600],
    [51, 90_000],
  ] as const) {
    later = hours * 3_600_000;
    expect([hours, await overdue()]).toEqual([hours, seconds]);
  }
});

test('the newest backup is verified each week, a day after a fault again, and faults are named', async () => {
  const runs = createBackgroundTaskRepository(app.context.db);
  let daysLater = 0;
  const now = () => Date.now() + daysLater * dayMs;
  // As where the service manager filters the call.
  const lowerPriority = (): void => {
    throw Object.assign(new Error('setPriority: EPERM'), { code: 'EPERM' });
  };
  const task = verifyNewestBackup(app.context, location, runs, { lowerPriority, now, program: holdfastProgram });
  const run = () => task.run(new AbortController().signal, { position: null, holder: '' });
  const verification = async () => (await readBackupStatus(runs)).verification;
  await run();
  expect(await verification()).toBeNull();

  daysLater = 6;
  await run();
  expect(await verification()).toBeNull();
  const store = await FileBlobStore.open({ directory: location });
  const newest = (await findBackups(store)).at(-1);
  await store.delete(backupKeys.verified(newest?.id as string));

  daysLater = 8;
  await run();
  expect(await verification()).toEqual({ at: expect.any(Number), backup: newest?.id, problems: [], skipped: null });
  // Without another look into the location of the backups.
  const shown = (await readBackupStatus(runs)).backups?.backups.find(({ id }) => id === newest?.id);
  expect(shown?.verifiedAt).toBe((await verification())?.at);
  expect((await findBackups(store)).at(-1)?.keys).toContain(backupKeys.verified(newest?.id as string));

  const key = backupKeys.table(newest?.id as string, 'stacks');
  const bytes = await readSmall(store, key);
  await store.delete(key);
  daysLater = 16;
  await expect(run()).rejects.toThrow(key);
  expect((await verification())?.problems).toEqual([expect.stringContaining(key)]);
  await store.put(key, once(bytes));
  // Not before a day has passed; until then, the task goes on failing.
  await expect(run()).rejects.toThrow(key);
  expect((await verification())?.problems).toHaveLength(1);
  const manifest = backupKeys.manifest(newest?.id as string);
  const head = await readSmall(store, manifest);
  await store.put(manifest, once(head.subarray(0, -9)));
  daysLater = 18;
  await expect(run()).rejects.toThrow('has faults: The manifest of');
  expect((await verification())?.problems).toEqual([expect.stringMatching(/^The manifest of backup \w+ is damaged$/)]);
  await store.put(manifest, once(head));
  daysLater = 20;
  await run();
  expect((await verification())?.problems).toEqual([]);
  await store.close();
}, 120_000);

test('a verification that cannot run finds no fault, and is repeated after an hour, then after two', async () => {
  const runs = createBackgroundTaskRepository(app.context.db);
  const before = (await readBackupStatus(runs)).verification;
  const program = path.join(home, 'program.mjs');
  writeFileSync(program, `console.error('holdfast: S3 is not available'); process.exitCode = 1;`);
  const at = Date.now() + 34 * dayMs;
  let minutesLater = 0;
  const now = () => at + minutesLater * 60_000;
  const task = verifyNewestBackup(app.context, location, runs, { now, program });
  const fault = 'The verification ended with 1: holdfast: S3 is not available';
  for (const [minutes, count, message] of [
    [0, 1, fault],
    [59, 1, /^The next attempt is at .* The last one failed: The verification ended with 1/],
    [61, 2, fault],
    [180, 2, /^The next attempt is at /],
    [182, 3, fault],
  ] as const) {
    minutesLater = minutes;
    const running = task.run(new AbortController().signal, { position: null, holder: '' });
    await expect(running).rejects.toThrow(message);
    const { verification } = await readBackupStatus(runs);
    expect(verification).toMatchObject({ ...before, failure: { count, error: fault } });
  }
});

test('an outage of their store is no fault of backups; what the store cannot read is one', async () => {
  const files = await FileBlobStore.open({ directory: location });
  const failing = (fault: BlobStoreFault): BlobStore =>
    new Proxy(files, {
      get: (store, name) =>
        name === 'open' && isBroken
          ? async () => Promise.reject(new BlobStoreUnavailableError(fault, `the store is ${fault}`))
          : Reflect.get(store, name).bind(store),
    });
  let isBroken = false;
  const manifest = await openPlain(files);
  isBroken = true;
  await expect(findDamage(failing('unreachable'), manifest, () => {})).rejects.toThrow('the store is unreachable');
  expect(await findDamage(failing('faulty'), manifest, () => {})).toContainEqual(
    expect.stringContaining('(table stacks): the store is faulty'),
  );
  await files.close();
});

test('site admins see the backups, the schedule and the last fault', async () => {
  const token = await app.createUser('operators', 'viewer', 'operator');
  expect((await ask(app, token, 'operator.backups')).status).toBe(403);
  await query(app, `update users set site_admin = true where login = 'operator'`);
  const { data } = await ask(app, token, 'operator.backups');
  const at = expect.any(String);
  expect(data).toMatchObject({
    plan: { location, keep: 2, schedule: '0 3 * * *', nextAt: at },
    createFailure: null,
  });
  expect(data.backups.map(({ id }: { id: string }) => id)).toHaveLength(2);
  expect(data.backups[0]).toMatchObject({ takenAt: at, isEncrypted: false, missingBlobs: 0 });
  expect(data.verification).toMatchObject({ at, problems: [], skipped: null });
  expect(data.lastVerifiedAt).toBe(data.verification.at);
  const faults = async () => (await ask(app, token, 'operator.maintenance')).data.faults;
  const faultless = { blockedStacks: 0, damagedDocuments: 0, isOutgoingHeld: false };
  expect(await faults()).toEqual({ ...faultless, backupOverdueSeconds: expect.any(Number) });
  const workers = async (change: string) => {
    expect(
      await query(app, `update maintenance_runs set ${change} where name = 'back-up' returning name`),
    ).toHaveLength(1);
    return (await ask(app, token, 'operator.backups')).data;
  };
  // A long one has just ended, or failed.
  const long = `claimed_until = null, last_started_at = clock_timestamp() - interval '1 day'`;
  expect(await workers(long)).toMatchObject({ plan: { nextAt: at }, unattendedSince: null });
  const failed = `last_ended_at = clock_timestamp() - interval '1 day', failed_at = clock_timestamp(), last_error = 'full'`;
  expect(await workers(failed)).toMatchObject({ plan: { nextAt: at }, unattendedSince: null });
  expect(await faults()).toEqual({ ...faultless, backupOverdueSeconds: expect.any(Number) });
  // The workers have lost the setting.
  expect(await workers('failed_at = null')).toMatchObject({ plan: null, unattendedSince: at });
  expect(await faults()).toEqual({ ...faultless, backupOverdueSeconds: null });
  // Another site has taken over.
  const readOnly = new ReadOnlyMode();
  readOnly.remember(fencedBy(new Date()));
  const fenced = new OperatorQueries({ ...app.context, readOnly });
  expect(await fenced.backups()).toMatchObject({ plan: null, unattendedSince: null });
});

test('a backup that fails is repeated later and later, leaves no tables, and shows its fault meanwhile', async () => {
  const other = path.join(home, 'failing');
  const { blobs } = app.context;
  await blobs.put('audit/other/one', once(Buffer.from('one')));
  let fails: 'never' | 'when read' | 'at once' = 'when read';
  const fault = () => Promise.reject(new BlobStoreUnavailableError('full', 'the disk is full'));
  const failing: Partial<BlobStore> = {
    open: (key, options) => (fails === 'never' ? blobs.open(key, options) : fault()),
    check: (timeoutMs) => (fails === 'at once' ? fault() : blobs.check(timeoutMs)),
  };
  const source = new Proxy(blobs, {
    get: (store, name) => {
      const value = (failing as Record<string | symbol, unknown>)[name] ?? Reflect.get(store, name);
      return typeof value === 'function' ? value.bind(store) : value;
    },
  });
  const runs = createBackgroundTaskRepository(app.context.db);
  let minutes = 0;
  // As after a restart, or in another process.
  const run = () =>
    backUpOnSchedule({ ...app.context, blobs: source, metrics: createMetrics() }, other, runs, {
      now: () => Date.now() + minutes * 60_000,
    }).run(new AbortController().signal, { position: null, holder: '' });
  const store = await FileBlobStore.open({ directory: other });
  const left = () => findBackups(store);
  await expect(run()).rejects.toThrow('the disk is full');
  expect((await left()).map(({ isComplete, keys }) => [isComplete, keys.length])).toEqual([[false, 1]]);
  const outcomes: Record<number, RegExp> = {
    2: /next attempt is at .*the disk is full/,
    58: /next attempt/,
    62: /^the disk is full$/,
    124: /next attempt/,
    184: /^the disk is full$/,
    186: /next attempt/,
    426: /^the disk is full$/,
    784: /next attempt/,
    788: /^the disk is full$/,
  };
  for (const [after, outcome] of Object.entries(outcomes)) {
    minutes = Number(after);
    if (minutes === 184) fails = 'at once';
    await expect(run()).rejects.toThrow(outcome);
    expect(await left()).toHaveLength(minutes < 62 ? 1 : 2);
  }
  fails = 'never';
  minutes = 788 + 6 * 60 + 1;
  await run();
  expect((await left()).map(({ isComplete }) => isComplete)).toEqual([true]);
  expect((await readBackupStatus(runs)).backups?.failure).toBeUndefined();
  await store.close();
}, 120_000);

test.each([
  ['of the future, as after the clock was set back', { hours: 1, isHere: true }],
  ['in another location', { hours: 0, isHere: false }],
])(
  'a failed attempt %s delays no backup',
  async (what, { hours, isHere }) => {
    const other = path.join(home, `delayed-${what.length}`);
    const runs = createBackgroundTaskRepository(app.context.db);
    const failure = { count: 3, at: Date.now() + hours * 3_600_000, error: 'the disk is full' };
    const place = isHere ? other : location;
    await saveBackups(runs, { location: place, schedule: '0 3 * * *', keep: 2, backups: [], failure }, Date.now());
    const task = backUpOnSchedule({ ...app.context, metrics: createMetrics() }, other, runs);
    await task.run(new AbortController().signal, { position: null, holder: '' });
    const store = await FileBlobStore.open({ directory: other });
    expect((await findBackups(store)).map(({ isComplete }) => isComplete)).toEqual([true]);
    await store.close();
  },
  120_000,
);

test('old backups that cannot be deleted are tried again, and the task fails until they are', async () => {
  const other = path.join(home, 'unpruned');
  let hours = 0;
  // In half a year: only the first one is due.
  const schedule = `0 3 1 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`;
  const config = { ...app.context.config, backup: { ...app.context.config.backup, schedule } };
  const runs = createBackgroundTaskRepository(app.context.db);
  // As after a restart, or in another process.
  const run = () =>
    backUpOnSchedule({ ...app.context, config, metrics: createMetrics() }, other, runs, {
      now: () => Date.now() + hours * 3_600_000,
    }).run(new AbortController().signal, { position: null, holder: '' });
  await run();
  const store = await FileBlobStore.open({ directory: other });
  const ids = async () => (await findBackups(store)).map(({ id }) => id);
  const [first] = await ids();
  const key = backupKeys.manifest(first as string);
  const manifest = await readSmall(store, key);
  await store.put(key, once(manifest.subarray(0, -9)));
  const kept = new RegExp(`^Nothing was pruned, because backup ${first} must be kept`);
  // It is no longer listed: another one is made.
  await expect(run()).rejects.toThrow(kept);
  await expect(run()).rejects.toThrow(/^The next attempt is at .* Nothing was pruned/);
  hours = 1.1;
  await expect(run()).rejects.toThrow(kept);
  expect((await readBackupStatus(runs)).backups).toMatchObject({ pruneFailure: { count: 2 } });
  await store.put(key, once(manifest));
  hours = 3.2;
  await run();
  expect((await readBackupStatus(runs)).backups?.pruneFailure).toBeUndefined();
  await run();
  expect(await ids()).toHaveLength(2);
  await store.close();
}, 120_000);

test('a restored database that has not taken over makes and deletes no backups among those of another', async () => {
  const other = path.join(home, 'drill');
  let days = 0;
  const runs = createBackgroundTaskRepository(app.context.db);
  const task = backUpOnSchedule({ ...app.context, metrics: createMetrics() }, other, runs, {
    now: () => Date.now() + days * dayMs,
  });
  const run = () => task.run(new AbortController().signal, { position: null, holder: '' });
  const store = await FileBlobStore.open({ directory: other });
  const ids = async () => (await findBackups(store)).map(({ id }) => id);
  for (; days < 2; days++) await run();
  const before = await ids();
  expect(before).toHaveLength(2);
  await query(app, 'update installation set outgoing_held_since = now()');
  await run();
  const { code, stderr } = await runInProcess(app, 'backup', 'create', '--to', other, '--keep', '1');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('has not taken over') });
  expect(await ids()).toEqual(before);
  await query(app, 'update installation set outgoing_held_since = null');
  await run();
  expect(await ids()).not.toEqual(before);
  await store.close();
}, 120_000);

test('a backup that gets no connection leaves no hold', async () => {
  const db = Object.create(app.context.db, {
    openSession: { value: () => Promise.reject(new Error('too many connections')) },
  });
  const target = await FileBlobStore.open({ directory: path.join(home, 'unconnected') });
  await expect(backUp({ source: { ...app.context, db }, recipients: [], target })).rejects.toThrow('too many');
  expect(await query(app, 'select id from blob_holds')).toEqual([]);
  await target.close();
});

test('a backup that is stopped leaves no complete one and no hold', async () => {
  const other = path.join(home, 'stopped');
  const context = { ...app.context, metrics: createMetrics() };
  const runs = createBackgroundTaskRepository(app.context.db);
  const task = backUpOnSchedule(context, other, runs);
  const stop = new AbortController();
  stop.abort(new Error('the worker ends'));
  await expect(task.run(stop.signal, { position: null, holder: '' })).rejects.toThrow('the worker ends');
  const store = await FileBlobStore.open({ directory: other });
  expect((await findBackups(store)).filter(({ isComplete }) => isComplete)).toEqual([]);
  expect(await query(app, 'select id from blob_holds')).toEqual([]);
  // The next process begins at once.
  expect((await readBackupStatus(runs)).backups?.failure).toBeUndefined();
  await store.close();
});

test('backups that are all younger than a week are verified weekly, too, and the time without a verification is exported', async () => {
  const daily = path.join(home, 'daily');
  const program = path.join(home, 'without-faults.mjs');
  writeFileSync(program, `console.log('{"problems":[]}')`);
  const runs = createBackgroundTaskRepository(app.context.db);
  await runs.saveResult(backupTasks.verify, 'null');
  const start = Date.now();
  let day = 0;
  const now = () => start + day * dayMs;
  const metrics = createMetrics();
  const create = backUpOnSchedule({ ...app.context, metrics }, daily, runs, { local: now, now });
  const verify = verifyNewestBackup(app.context, daily, runs, { now, program });
  const unverifiedDays = async (): Promise<number> => {
    await create.observe?.();
    const found = await metrics.registry.getSingleMetric('holdfast_backup_last_verified_age_seconds')?.get();
    return (found?.values[0]?.value ?? Number.NaN) / 86_400;
  };
  /** What the task saves each day: it keeps the newest three. A verified one has its mark as long as it is there. */
  const marks = new Map<number, number>();
  const find = async (): Promise<void> => {
    const days = [day, day - 1, day - 2].filter((each) => each >= 0);
    const backups = days.map((each) => {
      const takenAt = new Date(start + each * dayMs).toISOString();
      const sizes = { bytes: 1, blobs: 0, missingBlobs: 0, isEncrypted: false };
      return { id: String(each), takenAt, finishedAt: takenAt, ...sizes, verifiedAt: marks.get(each) ?? null };
    });
    await saveBackups(runs, { location: daily, schedule: '0 3 * * *', keep: 3, backups }, now());
  };
  for (; day <= 9; day++) await find();
  day = 9;
  expect(await unverifiedDays()).toBe(9);

  const verifiedOn: number[] = [];
  for (; day <= 25; day++) {
    await find();
    await verify.run(new AbortController().signal, { position: null, holder: '' });
    if ((await unverifiedDays()) > 0) continue;
    verifiedOn.push(day);
    marks.set(day, now());
  }
  expect(verifiedOn).toEqual([9, 16, 23]);
}, 120_000);

test('a process reports no backups as missing before it has looked, and none while its site is replaced', async () => {
  const { db, readOnly } = app.context;
  const metrics = createMetrics();
  let isFenced = false;
  const site = Object.create(readOnly, { isFenced: { get: () => isFenced } });
  const runs = createBackgroundTaskRepository(db);
  const to = path.join(home, 'replaced');
  const task = backUpOnSchedule({ ...app.context, metrics, readOnly: site }, to, runs);
  const values = async (): Promise<string[]> =>
    [...(await metrics.registry.metrics()).matchAll(/^holdfast_backup_\w+_seconds (\S+)$/gm)].map(
      ([, value = '']) => value,
    );
  expect(await values()).toEqual(['Nan', 'Nan', 'Nan']);
  await runs.saveResult(task.name, 'null');
  await task.observe?.();
  expect(await values()).toEqual(['+Inf', '+Inf', 'Nan']);
  isFenced = true;
  expect(await values()).toEqual(['Nan', 'Nan', 'Nan']);
});

test('a first backup is overdue from when the task has first seen the location, and at once after a failure', async () => {
  const runs = createBackgroundTaskRepository(app.context.db);
  const to = path.join(home, 'first');
  const start = Date.now();
  let hours = 0;
  const now = () => start + hours * 3_600_000;
  const metrics = createMetrics();
  const task = backUpOnSchedule({ ...app.context, metrics }, to, runs, { local: now, now });
  const read = async (): Promise<(string | undefined)[]> => {
    await task.observe?.();
    const text = await metrics.registry.metrics();
    return ['overdue', 'last_verified_age'].map(
      (name) => new RegExp(`^holdfast_backup_${name}_seconds (\\S+)$`, 'm').exec(text)?.[1],
    );
  };
  const attempt = { count: 1, at: start, error: 'The run was interrupted' };
  const save = (failure: typeof attempt) =>
    saveBackups(runs, { location: to, schedule: '0 3 * * *', keep: 3, backups: [], failure }, now());
  await save(attempt);
  hours = 20;
  await save(attempt);
  expect(await read()).toEqual(['72000', 'Nan']);
  await save({ ...attempt, count: 2 });
  expect(await read()).toEqual(['+Inf', 'Nan']);
  await save({ ...attempt, error: 'the disk is full' });
  expect(await read()).toEqual(['+Inf', 'Nan']);
});
