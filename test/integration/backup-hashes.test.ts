import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { runHoldfast } from '../support/admin.ts';
import { writeEverything } from '../support/all-documents.ts';
import { damageOf } from '../support/backup-damage.ts';
import { flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { createStack, deployment, ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

// A backup has no object with another hash than the one in the database.

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-hashes-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const openApp = (settings: Readonly<Record<string, string>> = {}): Promise<TestApp> =>
  createTestApp({ dataDir: path.join(folder, 'main'), settings: { HOLDFAST_INLINE_BYTES: '1', ...settings } });

const openTarget = () => FileBlobStore.open({ directory: path.join(folder, 'backups') });

async function usedBlobs(app: TestApp): Promise<string[]> {
  const rows = await query<{ key: string }>(app, 'select key from blobs where unreferenced_since is null order by key');
  return rows.map(({ key }) => key);
}

async function damage(store: BlobStore, keys: readonly string[]): Promise<() => Promise<void>> {
  const right = new Map<string, Buffer>();
  for (const key of keys) {
    const bytes = await readSmall(store, key);
    right.set(key, bytes);
    await store.put(key, bytesOf(flipBit(bytes, bytes.length >> 1, 2))());
  }
  return async () => {
    for (const [key, bytes] of right) await store.put(key, bytesOf(bytes)());
  };
}

test('without right copies, the command names the objects, exits with 1, and the next backup has them', async () => {
  await using app = await openApp();
  await writeEverything(app);
  const { blobs } = app.context;
  const keys = await usedBlobs(app);
  const right = new Map(await Promise.all(keys.map(async (key) => [key, await readSmall(blobs, key)] as const)));
  const restore = await damage(blobs, keys);
  const env = {
    PATH: process.env['PATH'],
    HOLDFAST_DATABASE_URL: app.database.url,
    HOLDFAST_DATA_DIR: app.dataDir,
  };
  const run = () => runHoldfast(env, 'backup', 'create', '--to', path.join(folder, 'backups'), '--json');
  const first = await run();
  expect(first.code).toBe(1);
  expect(JSON.parse(first.stdout).wrongBlobs).toEqual(keys);
  for (const key of keys.slice(0, 20)) expect(first.stderr).toContain(`No intact copy of ${key} could be read`);
  const target = await openTarget();
  expect(await target.findAbsent(keys.map((key) => `blobs/${key}`))).toHaveLength(keys.length);
  expect(await damageOf(target)).toHaveLength(keys.length);

  await restore();
  const second = await run();
  expect([second.code, JSON.parse(second.stdout).wrongBlobs]).toEqual([0, []]);
  for (const [key, bytes] of right) expect(await readSmall(target, `blobs/${key}`)).toEqual(bytes);
});

test('objects that are wrong in one store come from the other one', async () => {
  await using app = await openApp({ HOLDFAST_SECOND_STORE: path.join(folder, 'second') });
  await writeEverything(app);
  const { mirror } = app.context;
  if (!mirror) throw new Error('there is no second store');
  const keys = await usedBlobs(app);
  const right = new Map(await Promise.all(keys.map(async (key) => [key, await readSmall(mirror.main, key)] as const)));
  await damage(
    mirror.main,
    keys.filter((_, at) => at % 2 === 0),
  );
  await damage(
    mirror.second,
    keys.filter((_, at) => at % 2 === 1),
  );
  const target = await openTarget();
  const { missingBlobs, uncheckedBlobs, wrongBlobs } = await backUp({ source: app.context, recipients: [], target });
  expect({ missingBlobs, uncheckedBlobs, wrongBlobs }).toEqual({ missingBlobs: [], uncheckedBlobs: 0, wrongBlobs: [] });
  for (const [key, bytes] of right) expect(await readSmall(target, `blobs/${key}`)).toEqual(bytes);
  expect(await damageOf(target)).toEqual([]);
});

test('while the store with the right copies is away, the backup has the other objects', async () => {
  await using app = await openApp({ HOLDFAST_SECOND_STORE: path.join(folder, 'second') });
  await writeEverything(app);
  const { mirror } = app.context;
  if (!mirror) throw new Error('there is no second store');
  const keys = await usedBlobs(app);
  const [wrong] = (await query<{ key: string }>(app, 'select blob_key as key from event_segments')).map(
    ({ key }) => key,
  );
  await damage(mirror.main, [wrong as string]);
  renameSync(path.join(folder, 'second'), path.join(folder, 'away'));
  writeFileSync(path.join(folder, 'second'), 'no folder');
  const target = await openTarget();
  const { wrongBlobs } = await backUp({ source: app.context, recipients: [], target });
  expect(wrongBlobs).toEqual([wrong]);
  expect(await target.findAbsent(keys.map((key) => `blobs/${key}`))).toEqual([`blobs/${wrong}`]);
  rmSync(path.join(folder, 'second'));
  renameSync(path.join(folder, 'away'), path.join(folder, 'second'));
  expect((await backUp({ source: app.context, recipients: [], target })).wrongBlobs).toEqual([]);
  expect(await damageOf(target)).toEqual([]);
});

test('a large object with other bytes when it is copied than when it was compared fails the backup', async () => {
  await using app = await openApp();
  const stack = await createStack(app);
  const body = deployment(1, randomBytes(6 * 1024 * 1024).toString('hex'));
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body }));
  const [large] = await query<{ key: string }>(
    app,
    'select blob_key as key from checkpoints where blob_key is not null',
  );
  let reads = 0;
  const copies = new Proxy(app.context.copies, {
    get: (store, name) => {
      const value: unknown = Reflect.get(store, name);
      if (typeof value !== 'function') return value;
      if (name !== 'open') return value.bind(store);
      return async (...args: Parameters<typeof store.open>) => {
        const opened = await store.open(...args);
        // It is compared after a first read that finds it too large to be kept.
        if (args[0] !== large?.key || ++reads < 3) return opened;
        return once(flipBit(Buffer.concat(await Array.fromAsync(opened)), 9, 0));
      };
    },
  });
  const made = backUp({ source: { ...app.context, copies }, recipients: [], target: await openTarget() });
  await expect(made).rejects.toThrow('was read with other bytes when it was copied');
});
