import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import pg from 'pg';
import { copyBlobs } from '../../src/shared/backup/backup-content.ts';
import { decryptWithIdentities } from '../../src/shared/backup/backup-encryption.ts';
import { findBackups, openBackup, pruneBackups } from '../../src/shared/backup/backup-list.ts';
import { backupKeys, readBlobList, readManifest, writeBlobList } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { createTableCopyRepository } from '../../src/shared/backup/table-copy-repository.ts';
import type { BlobPage, BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { diskFolder } from '../../testkit/memory-folder.ts';
import { until } from '../../testkit/until.ts';
import { runInProcess } from '../support/admin.ts';
import { damageOf, openPlain } from '../support/backup-damage.ts';
import { killBackup, runBackup } from '../support/backups.ts';
import { flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

// A backup, a verification, a restore or a prune that is killed leaves nothing half, and the next one goes on.

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-kills-'));
const location = path.join(home, 'backups');
const source = () => ({ databaseUrl: app.database.url, dataDir: app.dataDir });
const migrationLock = '7241865325823964';

beforeAll(async () => {
  for (const note of ['x', 'y']) {
    const update = await startUpdate(app, await createStack(app));
    const body = deployment(2_000, randomBytes(500).toString('hex') + note);
    await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
  }
  for (const name of ['a', 'b', 'c']) await app.context.blobs.put(`audit/other/${name}`, once(randomBytes(100_000)));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The store with `before` in front of each change. */
function changing(store: BlobStore, before: (key: string) => Promise<void>): BlobStore {
  return {
    put: (key, body, options) => before(key).then(() => store.put(key, body, options)),
    delete: (key) => before(key).then(() => store.delete(key)),
    open: (key, options) => store.open(key, options),
    stat: (key) => store.stat(key),
    list: (prefix, after) => store.list(prefix, after),
    findAbsent: (keys) => store.findAbsent(keys),
    sweepUnfinished: (olderThanMs, prefixes) => store.sweepUnfinished(olderThanMs, prefixes),
    check: (timeoutMs) => store.check(timeoutMs),
    close: () => store.close(),
  };
}

/** The store fails from some change on, as for a process that is killed before it. */
function cutAfter(store: BlobStore, changes: number, isCounted = (_key: string): boolean => true): BlobStore {
  let left = changes;
  return changing(store, async (key) => {
    if (isCounted(key) && left-- <= 0) throw new Error('killed');
  });
}

const isFirstList = (key: string): boolean => key.endsWith('/blobs/000001.ndjson');

const plainBackup = (target: BlobStore) => backUp({ source: app.context, recipients: [], target });

async function openStore(name: string): Promise<FileBlobStore> {
  return FileBlobStore.open({ directory: path.join(home, name) });
}

test('a backup that ends before any of its writes is not complete, and the next one is whole', async () => {
  const target = await openStore('cut-create');
  for (const changes of [0, 1, 9, 60]) {
    await expect(plainBackup(cutAfter(target, changes))).rejects.toThrow('killed');
    expect((await findBackups(target)).filter(({ isComplete }) => isComplete)).toEqual([]);
  }
  await plainBackup(target);
  expect(await damageOf(target)).toEqual([]);
  expect((await pruneBackups(target, 1)).backups.length).toBeGreaterThan(1);
}, 120_000);

test('the blobs that an interrupted backup copied are not copied again', async () => {
  const target = await openStore('resumed');
  const isManifest = (key: string): boolean => key.endsWith('manifest.json');
  await expect(plainBackup(cutAfter(target, 0, isManifest))).rejects.toThrow('killed');
  const copied = await target.list(backupKeys.blobs);
  expect(copied.blobs.length).toBeGreaterThanOrEqual(5);
  await plainBackup(target);
  expect(await target.list(backupKeys.blobs)).toEqual(copied);
  expect(await damageOf(target)).toEqual([]);
}, 120_000);

test('a backup tells the store how large each table is, which chooses its parts', async () => {
  const store = await openStore('sizes');
  const sizes = new Map<string, number | undefined>();
  const target: BlobStore = {
    ...changing(store, async () => {}),
    put: (key, body, options) => {
      if (key.includes('/tables/')) sizes.set(path.basename(key), options?.expectedBytes);
      return store.put(key, body, options);
    },
  };
  await plainBackup(target);
  expect(sizes.get('checkpoints.zst')).toBeGreaterThan(8_192);
  expect(sizes.get('audit_events.zst')).toBeGreaterThan(8_192);
  expect([...sizes.values()].filter((bytes) => !Number.isInteger(bytes))).toEqual([]);
}, 120_000);

test('a backup removes what one that was killed days ago was uploading', async () => {
  const target = await openStore('uploads');
  const [old, recent] = ['old', 'recent'].map((name) => path.join(home, 'uploads', 'unfinished', `${name}.part`));
  if (!old || !recent) throw new Error('there are two');
  for (const file of [old, recent]) writeFileSync(file, 'half');
  utimesSync(old, new Date(), new Date(Date.now() - 49 * 3_600_000));
  await plainBackup(target);
  expect([old, recent].map((file) => existsSync(file))).toEqual([false, true]);
}, 120_000);

test('a prune that ends before any of its deletions leaves each complete backup whole, and the next one goes on', async () => {
  const target = await openStore('cut-prune');
  for (let count = 0; count < 3; count++) await plainBackup(target);
  await target.put(`${backupKeys.blobs}audit/other/unneeded`, once(Buffer.from('x')));
  const newest = (await findBackups(target)).at(-1);
  let cuts = 0;
  for (let isDone = false; !isDone && cuts < 30; cuts++) {
    isDone = await pruneBackups(cutAfter(target, cuts < 3 ? 1 : 50), 1).then(
      () => true,
      () => false,
    );
    for (const { id, isComplete } of await findBackups(target))
      if (isComplete) expect(await damageOf(target, id)).toEqual([]);
  }
  expect(cuts).toBeGreaterThan(5);
  expect((await findBackups(target)).map(({ id }) => id)).toEqual([newest?.id]);
  expect(await target.stat(`${backupKeys.blobs}audit/other/unneeded`)).toBeNull();
}, 120_000);

test.each([
  ['its list of blobs', isFirstList],
  ['its manifest', (key: string) => key.endsWith('manifest.json')],
])(
  'a backup that a prune deletes before %s does not become complete',
  async (what, isReached) => {
    const target = await openStore(`overtaken-${what.length}`);
    let isOvertaken = false;
    const late = changing(target, async (key) => {
      if (isOvertaken || !isReached(key)) return;
      isOvertaken = true;
      await plainBackup(target);
      await pruneBackups(target, 1);
    });
    await expect(plainBackup(late)).rejects.toThrow('A prune deleted this unfinished backup');
    for (const { id, isComplete } of await findBackups(target))
      if (isComplete) expect(await damageOf(target, id)).toEqual([]);
    expect((await findBackups(target)).some(({ isComplete }) => isComplete)).toBe(true);
  },
  120_000,
);

test('a backup that ends while a prune deletes it does not succeed', async () => {
  const target = await openStore('while-deleted');
  const isManifest = (key: string): boolean => key.endsWith('manifest.json');
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late = changing(target, async (key) => {
    if (!isManifest(key)) return;
    reached.resolve();
    await gate.promise;
  });
  const made = plainBackup(late);
  const refused = expect(made).rejects.toThrow('A prune deleted this unfinished backup');
  await reached.promise;
  await plainBackup(target);
  const store = changing(target, async (key) => {
    if (!isManifest(key)) return;
    gate.resolve();
    await made.catch(() => {});
  });
  await pruneBackups(store, 1);
  await refused;
});

test('a backup notices that a prune has deleted one of its new blobs', async () => {
  const target = await openStore('raced');
  const late = changing(target, async (key) => {
    if (isFirstList(key)) await target.delete(`${backupKeys.blobs}audit/other/b`);
  });
  await expect(plainBackup(late)).rejects.toThrow('audit/other/b meanwhile: repeat the backup');
  await plainBackup(target);
  expect(await damageOf(target)).toEqual([]);
}, 120_000);

test('a copy of another size, as a copy between buckets may leave it, is made again', async () => {
  const target = await openStore('half');
  await plainBackup(target);
  await target.put(`${backupKeys.blobs}audit/other/a`, once(Buffer.from('half')));
  await plainBackup(target);
  expect(await damageOf(target)).toEqual([]);
});

test('a backup extends the hold of its blobs, and fails if they are no longer held', async () => {
  const target = await openStore('unheld');
  const timers = jest.spyOn(globalThis, 'setInterval');
  const renew = () => timers.mock.calls.find(([, ms]) => ms === 60_000)?.[0]();
  let answers = 0;
  const { db } = app.context;
  const counting = Object.create(db, {
    query: { value: (...args: Parameters<typeof db.query>) => db.query(...args).finally(() => answers++) },
  });
  const seconds = `select extract(epoch from held_until - now())::float8 as left from blob_holds`;
  let isReached = false;
  const late = changing(target, async (key) => {
    if (isReached || !key.startsWith(backupKeys.blobs)) return;
    isReached = true;
    await query(app, `update blob_holds set held_until = now() + interval '30 seconds'`);
    renew();
    await until(async () => Number((await query(app, seconds))[0]?.['left']) > 60, 'the hold is extended');
    await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
    renew();
    await until(() => answers === 2, 'the hold is found to have ended');
  });
  try {
    const made = backUp({ source: { ...app.context, db: counting }, recipients: [], target: late });
    await expect(made).rejects.toThrow('The backup took too long');
    expect((await findBackups(target)).filter(({ isComplete }) => isComplete)).toEqual([]);
  } finally {
    timers.mockRestore();
  }
});

test('a backup has all blobs that are needed, also if they are more than one page', async () => {
  const target = await openStore('many');
  const count = 5_001;
  const own = `blob_key like 'checkpoints/none-%'`;
  await query(app, `insert into blobs (key) select 'checkpoints/none-' || n from generate_series(1, ${count}) n`);
  await query(
    app,
    `insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec, blob_key)
     select (select id from updates limit 1), n, n, 1, '[]', sha256('x'), 1, 1, 'zstd', 'checkpoints/none-' || n from generate_series(1, ${count}) n`,
  );
  try {
    // Without a look at what each of them is.
    const db = Object.create(app.context.db, { maybeOne: { value: async () => null } });
    const { missingBlobs } = await backUp({ source: { ...app.context, db }, recipients: [], target });
    expect(missingBlobs).toHaveLength(count);
  } finally {
    await query(app, `delete from event_segments where ${own}`);
    await query(app, `delete from blobs where key like 'checkpoints/none-%'`);
  }
}, 120_000);

test('a restore replaces a blob of another size, stores no damaged one, and trusts no changed list', async () => {
  const target = await openStore('copied');
  await plainBackup(target);
  const manifest = await openPlain(target);
  const store = await openStore('copied-to');
  const copy = () => copyBlobs(target, store, manifest, { decrypt: null, onProgress: () => {} });
  const [half, damaged] = ['audit/other/a', 'audit/other/b'];
  await store.put(half, once(Buffer.from('half')));
  await copy();
  expect(await readSmall(store, half)).toEqual(await readSmall(app.context.blobs, half));

  await store.delete(damaged);
  const bytes = await readSmall(target, backupKeys.blobs + damaged);
  await target.put(backupKeys.blobs + damaged, once(flipBit(bytes, 9, 0)));
  await expect(copy()).rejects.toThrow(`${backupKeys.blobs}${damaged} is damaged`);
  expect(await store.stat(damaged)).toBeNull();
  await target.put(backupKeys.blobs + damaged, once(bytes));

  const key = manifest.blobLists[0]?.key as string;
  const rest = readBlobList(key, await readSmall(target, key)).slice(1);
  await target.put(key, once(writeBlobList(rest)));
  await expect(copy()).rejects.toThrow(`${key} is damaged`);
});

test('a damaged manifest is listed as such, and hides no other backup', async () => {
  const target = await openStore('listed');
  await plainBackup(target);
  await plainBackup(target);
  const [first, second] = (await findBackups(target)).map(({ id }) => id) as [string, string];
  const key = backupKeys.manifest(first);
  await target.put(key, once(flipBit(await readSmall(target, key), 40, 1)));
  const list = (...words: string[]) =>
    runInProcess(app, 'backup', 'list', '--from', path.join(home, 'listed'), ...words);
  const { code, stdout } = await list();
  expect(code).toBe(1);
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(`^${first}  damaged: The manifest of backup ${first}`),
    expect.stringMatching(`^${second}  \\d{4}-.* blobs, `),
    '',
  ]);
  const documents = (await list('--json')).stdout.trim().split('\n');
  expect(documents.map((line) => JSON.parse(line))).toMatchObject([
    { backup: first, isComplete: true, error: expect.stringContaining('damaged') },
    { backup: second, isComplete: true, blobs: expect.anything() },
  ]);
});

test.each(['plain', 'encrypted'])(
  'a restore from a %s backup replaces a blob with other bytes, and keeps one whose copy in the backup is damaged',
  async (kind) => {
    const target = await openStore(`compared-${kind}`);
    const identity = await generateX25519Identity();
    const recipients = kind === 'plain' ? [] : [await identityToRecipient(identity)];
    await backUp({ source: app.context, recipients, target });
    const decrypt = kind === 'plain' ? null : await decryptWithIdentities(identity);
    const manifest = await readManifest(await openBackup(target, null), decrypt);
    const store = await openStore(`compared-to-${kind}`);
    const copy = () => copyBlobs(target, store, manifest, { decrypt, onProgress: () => {} });
    expect(await copy()).toEqual({ copied: manifest.blobs.count, unsure: [] });
    expect(await copy()).toEqual({ copied: 0, unsure: [] });

    const [wrong, damaged, gone] = ['audit/other/a', 'audit/other/b', 'audit/other/c'] as const;
    const right = await Promise.all([wrong, damaged, gone].map((key) => readSmall(app.context.blobs, key)));
    await store.put(wrong, once(flipBit(right[0] as Buffer, 7, 1)));
    const inBackup = manifest.blobPrefix + damaged;
    await target.put(inBackup, once(flipBit(await readSmall(target, inBackup), 99, 0)));
    await target.delete(manifest.blobPrefix + gone);
    // In a plain backup, the list alone has the hash.
    if (kind === 'plain') for (const key of [damaged, gone]) await store.put(key, once(Buffer.alloc(100_000)));
    const { copied, unsure } = await copy();
    expect([copied, [...unsure].sort()]).toEqual([1, [damaged, gone]]);
    expect(await readSmall(store, wrong)).toEqual(right[0]);
  },
);

test('a prune deletes no blob while a later backup is incomplete: it may still be made', async () => {
  const target = await openStore('under-way');
  await plainBackup(target);
  const key = 'audit/other/new';
  await app.context.blobs.put(key, once(randomBytes(1_000)));
  const isManifest = (each: string): boolean => each.endsWith('manifest.json');
  await expect(plainBackup(cutAfter(target, 0, isManifest))).rejects.toThrow('killed');
  await app.context.blobs.delete(key);
  const unfinished = (await findBackups(target)).at(-1)?.id;
  expect(await pruneBackups(target, 1)).toEqual({ backups: [], blobs: 0, locked: [], unfinished });
  expect(await target.stat(backupKeys.blobs + key)).not.toBeNull();
});

test.each(['backups/', backupKeys.blobs])(
  'a prune leaves what a backup needs that begins and ends before its first delete in %s',
  async (place) => {
    const target = await openStore(`outrun-${path.basename(place)}`);
    const late = 'audit/other/late';
    const copy = backupKeys.blobs + late;
    for (let count = 0; count < 2; count++) await plainBackup(target);
    // What a backup has left that no longer exists; the second one comes after the first in the list.
    for (const key of [`${backupKeys.blobs}audit/0`, copy]) await target.put(key, once(Buffer.from('unneeded')));
    await app.context.blobs.put(late, once(randomBytes(1_000)));
    let made: string | undefined;
    const store = changing(target, async (key) => {
      if (made !== undefined || !key.startsWith(place)) return;
      made = '';
      made = (await plainBackup(target)).id;
    });
    const hourAgo = new Date(Date.now() - 3_600_000);
    const older = async (prefix: string, after?: string): Promise<BlobPage> => {
      const { blobs, next } = await target.list(prefix, after);
      return { blobs: blobs.map((blob) => (blob.key === copy ? { ...blob, modifiedAt: hourAgo } : blob)), next };
    };
    const { backups } = await pruneBackups({ ...store, list: older }, 1);
    await app.context.blobs.delete(late);
    expect(backups).toHaveLength(1);
    expect((await findBackups(target)).at(-1)).toMatchObject({ id: made, isComplete: true });
    expect(await damageOf(target)).toEqual([]);
  },
  120_000,
);

test('a create that is killed among its tables or its blobs is incomplete, and the next one is whole', async () => {
  const target = await openStore('backups');
  const slowly = ['create', '--to', location, '--max-bytes-per-second'];
  await killBackup(source(), [...slowly, '2000'], async () =>
    (await findBackups(target)).some(({ keys }) => keys.length > 3),
  );
  await killBackup(source(), [...slowly, '50000'], async () => (await target.list(backupKeys.blobs)).blobs.length > 0);
  expect((await findBackups(target)).map(({ isComplete }) => isComplete)).toEqual([false, false]);
  const { code, stderr } = await runBackup(source(), 'create', '--to', location, '--keep', '1');
  expect([code, stderr]).toEqual([0, '']);
  expect((await findBackups(target)).map(({ isComplete }) => isComplete)).toEqual([true]);
  expect(await damageOf(target)).toEqual([]);
}, 240_000);

test('a verification that is stopped leaves nothing, and what a killed one leaves is removed by the next', async () => {
  const args = ['verify', '--from', location];
  const isRunning = async ({ pid }: ChildProcess) => scratchOf(pid).some((folder) => existsSync(pidFile(folder)));
  const nothing = { dataDir: path.join(home, 'nothing') };
  const stopped = await killBackup(nothing, args, isRunning, 'SIGTERM');
  expect([stopped.exitCode, scratchOf(stopped.pid)]).toEqual([143, []]);
  const killed = await killBackup(nothing, args, isRunning);
  const [left] = scratchOf(killed.pid);
  const postgres = Number(readFileSync(pidFile(left as string), 'utf8').split('\n')[0]);
  expect(isAlive(postgres)).toBe(true);
  // What other users have left, or pretend to have left, is theirs.
  const foreign = mkdtempSync(path.join(diskFolder(), `holdfast-verify-${2 ** 30}-`));
  writeFileSync(path.join(foreign, 'file'), '');
  if (process.getuid?.() === 0) for (const each of [path.join(foreign, 'file'), foreign]) chownSync(each, 1, 1);
  const { code, stdout } = await runBackup(nothing, ...args);
  expect([code, stdout]).toEqual([0, expect.stringContaining('no faults')]);
  expect(existsSync(foreign)).toBe(process.getuid?.() === 0);
  rmSync(foreign, { recursive: true, force: true });
  expect([scratchOf(killed.pid), isAlive(postgres)]).toEqual([[], false]);
}, 240_000);

test('a restore that is killed before, within or after the load is repeated and goes on', async () => {
  await using database = await createEmptyDatabase();
  const logger = createLogger({ level: 'warn' });
  await migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger });
  // A transaction would see the sessions of its beginning.
  const [client, locker] = [1, 2].map(() => new pg.Client({ connectionString: database.url })) as [
    pg.Client,
    pg.Client,
  ];
  for (const each of [client, locker]) await each.connect();
  const { rows } = await locker.query('select pg_backend_pid() as pid');
  const others = `from pg_stat_activity where datname = current_database() and pid not in (pg_backend_pid(), ${rows[0].pid})`;
  const holds = async (condition: string) =>
    (await client.query<{ holds: boolean }>(`select exists (select 1 ${condition}) as holds`)).rows[0]?.holds === true;
  const isBlocked = () => holds(`${others} and wait_event_type = 'Lock' and query like 'alter table%'`);
  const untilAlone = () => until(async () => !(await holds(others)), 'the session of the killed restore ends');
  const to = { databaseUrl: database.url, dataDir: path.join(home, 'restored') };
  const args = ['restore', '--from', location];
  const organizations = async () => (await client.query('select 1 from organizations')).rowCount;

  // After the blobs, before the migrations.
  await client.query(`select pg_advisory_lock(${migrationLock})`);
  await killBackup(to, args, () => holds(`${others} and query like 'select pg_try_advisory_lock%'`));
  await client.query(`select pg_advisory_unlock(${migrationLock})`);
  await untilAlone();

  // Within the transaction that loads.
  await locker.query('begin; lock table stacks in access share mode');
  await killBackup(to, args, isBlocked);
  await locker.query('rollback');
  await untilAlone();
  expect(await organizations()).toBe(0);

  // Between the load and the end of the updates that were running.
  await locker.query('begin; lock table stacks in access share mode');
  let isReleased = false;
  await killBackup(to, args, async () => {
    // Once: its session may still seem to wait afterwards, and the lock would be held twice.
    if (!isReleased && (await isBlocked())) {
      isReleased = true;
      await client.query(`select pg_advisory_lock(${migrationLock})`);
      await locker.query('rollback');
    }
    return holds(`where obj_description('installation'::regclass, 'pg_class') is not null`);
  });
  await client.query(`select pg_advisory_unlock(${migrationLock})`);
  await untilAlone();
  expect(await organizations()).toBe(2);

  const restored = await runBackup(to, ...args);
  expect([restored.code, restored.stderr]).toEqual([0, '']);
  expect(restored.stdout).toContain('Ended 2 updates.');
  for (const each of [client, locker]) await each.end();
  const again = await runBackup(to, ...args);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('The database is not empty')]);
}, 240_000);

test('a database that is used while blobs are copied is not overwritten, and no second restore begins meanwhile', async () => {
  await using database = await createEmptyDatabase();
  const logger = createLogger({ level: 'warn' });
  await migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger });
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => {});
  await client.connect();
  const to = { databaseUrl: database.url, dataDir: path.join(home, 'used') };
  await plainBackup(await openStore('used-backup'));
  const args = ['restore', '--from', path.join(home, 'used-backup')];
  // It waits after the blobs, before the migrations.
  await client.query(`select pg_advisory_lock(${migrationLock})`);
  const first = runBackup(to, ...args);
  const waits = `select 1 from pg_stat_activity where datname = current_database() and query like 'select pg_try_advisory_lock%'`;
  await until(async () => (await client.query(waits)).rowCount !== 0, 'the first restore has copied the blobs');
  const second = await runBackup(to, ...args);
  expect([second.code, second.stderr]).toEqual([1, expect.stringContaining('Another restore into this database runs')]);
  await client.query(`insert into organizations (name) values ('meanwhile')`);
  await client.query(`select pg_advisory_unlock(${migrationLock})`);
  const { code, stderr } = await first;
  expect([code, stderr]).toEqual([1, expect.stringContaining('The database is no longer empty')]);
  expect((await client.query('select name from organizations')).rows).toEqual([{ name: 'meanwhile' }]);
  await client.end();
}, 240_000);

test('an interrupted restore is not continued with another backup', async () => {
  await using database = await createEmptyDatabase();
  const logger = createLogger({ level: 'warn' });
  await migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(`insert into organizations (name) values ('half')`);
  await createTableCopyRepository(client).markRestore('20200101t000000000z');
  await client.end();
  const backups = path.join(home, 'other-backup');
  await plainBackup(await openStore('other-backup'));
  const to = { databaseUrl: database.url, dataDir: path.join(home, 'unused') };
  const { code, stderr } = await runBackup(to, 'restore', '--from', backups);
  expect([code, stderr]).toEqual([1, expect.stringContaining('restore of backup 20200101t000000000z was interrupted')]);
}, 120_000);

/** Folders of the verification with this process id. */
function scratchOf(pid: number | undefined): string[] {
  const names = readdirSync(diskFolder()).filter((name) => name.startsWith(`holdfast-verify-${pid}-`));
  return names.map((name) => path.join(diskFolder(), name));
}

function pidFile(folder: string): string {
  return path.join(folder, 'postgres', 'cluster', 'postmaster.pid');
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
