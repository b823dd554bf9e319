import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { type Dirent, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { listBlobs } from '../../src/shared/backup/backup-content.ts';
import { createBlobHoldRepository } from '../../src/shared/backup/blob-hold-repository.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { BlobMoveError, beginMove, type MoveParts, openMove } from '../../src/shared/blob-moves/begin-move.ts';
import { copyBlobs, verifyBlobs } from '../../src/shared/blob-moves/compare-locations.ts';
import { finishMove, switchMove } from '../../src/shared/blob-moves/end-move.ts';
import { type BlobStore, BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { createBlobLocationRepository } from '../../src/shared/platform/blobs/locations/blob-location-repository.ts';
import { LocatedBlobStore } from '../../src/shared/platform/blobs/locations/located-blob-store.ts';
import { openBlobs } from '../../src/shared/platform/blobs/open-blobs.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { blobsEnv, runBlobs, seedBlobs, smallBlobs, Traffic } from '../support/blob-move.ts';
import { letBlobsAge } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';

// One installation that moves from folder to folder. Two replicas write and export all the time: no call may fail, at no phase.

const count = 200;
const replicas = testReplicas(smallBlobs, smallBlobs);
let app: TestApp;
let traffic: Traffic;
let keys: string[];
let folders = 0;
let here: string;
let there: string;

const locations = () => createBlobLocationRepository(app.context.db);
const status = () => locations().find();

async function moving<T>(work: (parts: MoveParts) => Promise<T>): Promise<T> {
  const blobs = await openBlobs(app.context);
  try {
    const { blobRows, config, db } = app.context;
    return await work({ blobs, blobRows, config, db, locations: locations() });
  } finally {
    await blobs.close();
  }
}
const copy = (again = false) =>
  moving(async (parts) => {
    await beginMove(parts, there);
    return copyBlobs(parts, await openMove(parts, 'copying'), { again });
  });
const verify = () => moving(async (parts) => verifyBlobs(parts, await openMove(parts, 'copying')));
const switchOver = () => moving(switchMove);
const finish = (empty = false) => moving((parts) => finishMove(parts, { empty }));

/** Starts the command, which something must keep from its end, and kills it and its sessions as soon as the condition holds. */
async function killWhen(condition: () => Promise<boolean> | boolean, ...args: string[]): Promise<void> {
  const name = 'killed-command';
  const url = new URL(app.database.url);
  url.searchParams.set('application_name', name);
  const env = blobsEnv(app, { HOLDFAST_DATABASE_URL: url.toString() });
  const child = spawn(process.execPath, [holdfastProgram, 'blobs', ...args], { env, stdio: 'ignore' });
  const ended = new Promise<string | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  try {
    await until(async () => child.exitCode !== null || (await condition()), `holdfast blobs ${args[0]} is half done`);
  } finally {
    child.kill('SIGKILL');
  }
  expect(await ended).toBe('SIGKILL');
  // One that waits for a lock does not notice.
  const sessions = 'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1';
  await until(async () => (await query(app, sessions, [name])).length === 0, 'its sessions have ended');
}

/** Lets who reads the file wait until it is disposed of. */
function holdReaders(file: string): Disposable {
  const aside = path.join(app.dataDir, 'aside');
  renameSync(file, aside);
  execFileSync('mkfifo', [file]);
  return { [Symbol.dispose]: () => renameSync(aside, file) };
}

/** Lets who changes the row of the move wait until it is disposed of. */
async function holdMove(): Promise<AsyncDisposable> {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await client.query('begin; select 1 from blob_places for update');
  return { [Symbol.asyncDispose]: () => client.end() };
}

function filesIn(folder: string): Dirent[] {
  try {
    const found = readdirSync(path.join(folder, 'blobs'), { recursive: true, withFileTypes: true });
    return found.filter((each) => each.isFile());
  } catch {
    return [];
  }
}

const countFiles = (folder: string): number => filesIn(folder).length;

/** The inodes of the blobs that were there before the traffic, by the names of their files: a blob that is copied again has another one. */
function inodesIn(folder: string): Map<string, number> {
  const names = new Set(keys.map(nameOf));
  const files = filesIn(folder).filter(({ name }) => names.has(name));
  return new Map(files.map(({ name, parentPath }) => [name, statSync(path.join(parentPath, name)).ino]));
}

async function withStore<T>(folder: string, work: (store: BlobStore) => Promise<T>): Promise<T> {
  const store = await FileBlobStore.open({ directory: folder });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const nameOf = (key: string): string => key.replaceAll('/', '~');

function fileOf(folder: string, key: string): string {
  const file = filesIn(folder).find(({ name }) => name === nameOf(key));
  return path.join(file?.parentPath as string, nameOf(key));
}

beforeAll(async () => {
  app = replicas[0];
  keys = await seedBlobs(app, count);
  here = path.join(app.dataDir, 'blobs');
  traffic = await Traffic.start([...replicas], 2);
}, 120_000);
afterAll(() => traffic?.stop());

beforeEach(async () => {
  // A test that failed has left its move.
  for (const phase of ['copying', 'switched'] as const) await locations().settle(phase);
  here = (await status())?.mainUrl ?? here;
  there = path.join(app.dataDir, `location-${++folders}`);
});
afterEach(async () => {
  await traffic.goOn(2);
  expect(traffic.failures).toEqual([]);
});

/** Moves the blobs, or ends the move that a test has begun. */
async function arrive(empty = false): Promise<void> {
  await copy();
  expect((await verify()).faults).toEqual([]);
  await switchOver();
  await finish(empty);
  here = there;
}

test('a move goes on after its command was killed in each phase', async () => {
  const held = keys.at(-1) as string;
  {
    using _ = holdReaders(fileOf(here, held));
    await killWhen(() => inodesIn(there).size > count / 2, 'copy', '--to', there);
  }
  expect(await status()).toMatchObject({ phase: 'copying', mainUrl: here, otherUrl: there });
  await expect(switchOver()).rejects.toThrow('verify');
  await traffic.goOn();
  const before = inodesIn(there);
  const { blobs, copied } = await copy();
  expect(blobs).toBeGreaterThan(count);
  expect(copied).toBeGreaterThan(0);
  const after = inodesIn(there);
  expect([...before].filter(([name, inode]) => after.get(name) !== inode)).toEqual([]);
  expect(after.size).toBe(count);

  expect((await verify()).faults).toEqual([]);
  expect((await status())?.verifiedAt).not.toBeNull();
  {
    using _ = holdReaders(fileOf(here, held));
    await killWhen(async () => (await status())?.verifiedAt === null, 'verify');
  }
  await expect(switchOver()).rejects.toThrow('verify');
  expect((await verify()).faults).toEqual([]);

  const waits = `select 1 from pg_stat_activity where datname = current_database() and query like '%blobLocations.switch%' and wait_event_type = 'Lock'`;
  {
    await using _ = await holdMove();
    await killWhen(async () => (await query(app, waits)).length > 0, 'switch');
  }
  expect((await status())?.phase).toBe('copying');
  await switchOver();
  expect(await status()).toMatchObject({ phase: 'switched', mainUrl: there, otherUrl: here });
  await traffic.goOn();

  const full = countFiles(here);
  {
    await using _ = await holdMove();
    await killWhen(() => countFiles(here) < full - 4, 'finish', '--empty');
  }
  expect((await status())?.phase).toBe('switched');
  await traffic.goOn();
  await finish(true);
  expect(countFiles(here)).toBe(0);
  here = there;
  expect(await withStore(here, (store) => store.findAbsent(keys))).toEqual([]);
}, 600_000);

test('missing and different blobs are listed, prevent the switch, and are repaired by another copy', async () => {
  await copy();
  const [missing, different] = keys.slice(5, 7).sort() as [string, string];
  await rm(fileOf(there, missing));
  const file = fileOf(there, different);
  const bytes = await readFile(file);
  await writeFile(file, bytes.fill(bytes[99] === 7 ? 8 : 7, 99, 100));
  const { code, stdout } = await runBlobs(app, {}, 'verify');
  expect([code, stdout]).toEqual([1, expect.stringContaining(`${missing}: missing\n${different}: different\n`)]);
  await expect(switchOver()).rejects.toThrow('verify');
  await copy(true);
  await arrive();
}, 120_000);

test('no move begins, is switched or cancelled without its event', async () => {
  const refuse = 'add constraint no_repairs check (action <> $$installation.repair$$) not valid';
  const phase = async (...command: string[]) => {
    await query(app, `alter table audit_events ${refuse}`);
    try {
      expect((await runBlobs(app, {}, ...command)).code).toBe(1);
    } finally {
      await query(app, 'alter table audit_events drop constraint no_repairs');
    }
    return (await status())?.phase ?? 'settled';
  };
  expect(await phase('copy', '--to', there)).toBe('settled');
  await copy();
  await verify();
  expect(await phase('cancel')).toBe('copying');
  expect(await phase('switch')).toBe('copying');
  await arrive();
}, 120_000);

test('the audit log has no command that was refused', async () => {
  const recorded = async (after = '0') =>
    (
      await query<{ number: string; details: string }>(
        app,
        `select number, details from audit_events where action = 'installation.repair' and number > ${after} order by number`,
      )
    ).map((each) => ({ ...each, command: JSON.parse(each.details).command as string }));
  const last = (await recorded()).at(-1)?.number;
  const refused = async (...command: string[]) => expect((await runBlobs(app, {}, ...command)).code).toBe(1);
  await refused('copy', '--to', here);
  await refused('switch');
  await copy();
  await refused('copy', '--to', `${there}-other`);
  await refused('switch');
  await refused('finish', '--empty');
  expect((await recorded(last)).map(({ command }) => command)).toEqual([]);
  await verify();
  for (const command of ['switch', 'finish']) expect((await runBlobs(app, {}, command)).code).toBe(0);
  expect((await recorded(last)).map(({ command }) => command)).toEqual(['blobs switch', 'blobs finish']);
  here = there;
}, 120_000);

test('a write whose upload began before the move and ends after the switch is in the new location', async () => {
  const gated = await openGatedBlobs(here);
  await using slow = await createTestApp({
    ...{ database: app.database, dataDir: app.dataDir, settings: smallBlobs },
    overrides: { blobs: gated.blobs },
  });
  gated.shut();
  const saving = slow.context.documents.save(bytesOf(randomBytes(900)));
  await until(() => gated.waiting() === 1, 'the upload waits');
  await arrive(true);
  gated.open();
  const { blobKey: slowKey } = await saving;
  expect(await withStore(here, (store) => store.stat(slowKey ?? '-'))).not.toBeNull();
  const next = slow.context.documents.save(bytesOf(randomBytes(900)));
  const { blobKey } = await next;
  expect(await withStore(here, (store) => store.stat(blobKey ?? '-'))).not.toBeNull();
}, 120_000);

test('of two copies that differ, the one without its hash is replaced, in whichever location', async () => {
  await copy();
  const [old, copied] = keys as [string, string];
  const overwrite = (location: string, key: string) =>
    withStore(location, (store) => store.put(key, once(Buffer.from('x'))));
  const right = await Promise.all([old, copied].map((key) => withStore(here, (store) => readSmall(store, key))));
  await overwrite(here, old);
  await overwrite(there, copied);
  const { code, stderr } = await runBlobs(app, {}, 'copy', '--to', there, '--again');
  expect({ code, isDoubtful: stderr.includes('neither') }).toEqual({ code: 0, isDoubtful: false });
  for (const location of [here, there])
    expect(
      await Promise.all([old, copied].map((key) => withStore(location, (store) => readSmall(store, key)))),
    ).toEqual(right);
  await verify();
  await arrive();
}, 120_000);

test('the old location is emptied only if the new one has the same bytes, or the right ones', async () => {
  await copy();
  await verify();
  await switchOver();
  const [differs, missing, old, both] = keys.slice(10, 14) as [string, string, string, string];
  const written = (location: string, key: string, bytes: Buffer) =>
    withStore(location, (store) => store.put(key, once(bytes)));
  const right = await withStore(here, (store) => readSmall(store, differs));
  const bytesOfBoth = await withStore(here, (store) => readSmall(store, both));
  for (const [location, key] of [
    [there, differs],
    [here, old],
    [here, both],
    [there, both],
  ] as const)
    await written(location, key, Buffer.from(location === here ? 'x' : 'yz'));
  await rm(fileOf(there, missing));
  const kept = countFiles(here);

  await expect(finish(true)).rejects.toThrow(BlobMoveError);
  const { code, stderr } = await runBlobs(app, {}, 'finish', '--empty');
  expect([code, stderr]).toEqual([1, expect.stringContaining(both)]);
  expect(stderr).toContain(missing);
  for (const repaired of [differs, old]) expect(stderr).not.toContain(`${repaired}: `);
  expect((await status())?.phase).toBe('switched');
  expect(countFiles(here)).toBeGreaterThanOrEqual(kept);
  expect(await withStore(there, (store) => readSmall(store, differs))).toEqual(right);

  for (const location of [here, there]) await written(location, both, bytesOfBoth);
  await written(there, missing, await withStore(here, (store) => readSmall(store, missing)));
  expect(await runBlobs(app, {}, 'finish', '--empty')).toMatchObject({ code: 0 });
  const [last] = await query(
    app,
    `select actor, details from audit_events where action = 'installation.repair' order by number desc limit 1`,
  );
  expect(last).toEqual({ actor: 'operator', details: '{"command":"blobs finish --empty"}' });
  expect(countFiles(here)).toBe(0);
  here = there;
  expect(await withStore(here, (store) => store.findAbsent(keys))).toEqual([]);
}, 120_000);

test('while the other location is away, writes go on, and the move must be verified again', async () => {
  await copy();
  await verify();
  renameSync(there, `${there}-away`);
  const { writes } = traffic;
  await until(() => traffic.writes > writes + 4 || traffic.failures.length > 0, 'writes go on');
  renameSync(`${there}-away`, there);
  await expect(switchOver()).rejects.toThrow('verify');
  expect((await verify()).faults.length).toBeGreaterThan(0);
  await arrive();
}, 120_000);

test('a backup has all blobs before, during and after a move, and the switch waits until it has ended', async () => {
  const target = await FileBlobStore.open({ directory: `${app.dataDir}-backups` });
  const backedUp = async (): Promise<void> => {
    const manifest = await backUp({ source: app.context, recipients: [], target });
    expect(manifest.missingBlobs).toEqual([]);
    const listed = new Set<string>();
    for await (const { key } of listBlobs(target, manifest)) listed.add(key.slice(manifest.blobPrefix.length));
    expect(keys.filter((key) => !listed.has(key))).toEqual([]);
    expect([...listed].filter((key) => key.startsWith('places/'))).toEqual([]);
  };
  await backedUp();
  await copy();
  await backedUp();
  await verify();
  const holds = createBlobHoldRepository(app.context.db);
  const hold = await holds.insert(60, 120);
  await expect(switchOver()).rejects.toThrow('A backup is being made');
  await holds.delete(hold);
  await switchOver();
  await finish();
  here = there;
  await backedUp();
  await target.close();
  rmSync(`${app.dataDir}-backups`, { recursive: true });
}, 120_000);

test('blobs that the sweep deletes during a move are gone from both locations', async () => {
  await copy();
  const doomed = keys.splice(0, 50);
  await query(app, 'delete from checkpoints where blob_key = any($1)', [doomed]);
  expect(await withStore(there, (store) => store.findAbsent(doomed))).toEqual([]);
  await letBlobsAge(app, 48);
  await sweepBlobs(app.context);
  for (const folder of [here, there])
    expect((await withStore(folder, (store) => store.findAbsent(doomed))).sort()).toEqual(doomed.sort());
  await locations().settle('copying');
  expect(await status()).toMatchObject({ phase: 'settled', mainUrl: here });
}, 120_000);

test('a process that finds another store where the blobs are writes nothing there', async () => {
  await arrive();
  const own = await FileBlobStore.open({ directory: path.join(app.dataDir, 'elsewhere') });
  const config = { kind: 'files', directory: path.join(app.dataDir, 'elsewhere') } as const;
  const row = await status();
  const locations = {
    find: async () => row && { ...row, mainUrl: path.join(app.dataDir, 'none') },
    noteFault: async () => true,
  };
  const store = new LocatedBlobStore({ own, config, locations });
  await expect(store.put('checkpoints/aa/x', bytesOf(Buffer.from('x'))())).rejects.toThrow(BlobStoreUnavailableError);
  await expect(store.stat('checkpoints/aa/x')).rejects.toThrow(BlobStoreUnavailableError);
  expect((await own.list('')).blobs).toEqual([]);
  expect(readdirSync(app.dataDir)).not.toContain('none');
  await store.close();
}, 120_000);

test('settings of another store, and locations that are unfit, are refused', async () => {
  const foreign = path.join(app.dataDir, 'foreign');
  await withStore(foreign, (store) => store.put('installations/someone', bytesOf(Buffer.from('x'))()));
  for (const [to, reason] of [
    [foreign, 'another installation'],
    [here, 'neither in it nor above it'],
    [path.join(here, 'inner'), 'neither in it nor above it'],
    ['ftp://host/x', 'neither a folder nor s3://bucket/prefix'],
  ]) {
    there = to as string;
    await expect(copy()).rejects.toThrow(reason);
  }
  await traffic.stop();
  await using other = await createTestApp({ settings: smallBlobs });
  await seedBlobs(other, 20);
  const wrong = await runBlobs(
    other,
    { HOLDFAST_DATA_DIR: path.join(app.dataDir, 'wrong') },
    'copy',
    '--to',
    `${app.dataDir}-new`,
  );
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('use the settings of the servers')]);
}, 120_000);
