import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { BlobMoveError, beginMove, type MoveParts, openMove } from '../../src/shared/blob-moves/begin-move.ts';
import { copyBlobs, verifyBlobs } from '../../src/shared/blob-moves/compare-locations.ts';
import { cancelMove, finishMove, switchMove } from '../../src/shared/blob-moves/end-move.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { createBlobLocationRepository } from '../../src/shared/platform/blobs/locations/blob-location-repository.ts';
import { openBlobs } from '../../src/shared/platform/blobs/open-blobs.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { ownerKey, ownsStore } from '../../src/shared/state/blobs/store-ownership.ts';
import { seedBlobs, smallBlobs } from '../support/blob-move.ts';
import { query } from '../support/database.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';

// An installation and a copy of its database. No move may delete the blobs that the other one uses.

const count = 12;
let folder: string;
let keys: string[];
let original: TestDatabase;
let clone: TestDatabase;
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-move-'));
  original = await createTestDatabase();
  {
    await using app = await openApp(original);
    keys = await seedBlobs(app, count);
    await ownsStore(app.context);
  }
  clone = await createTestDatabase(original);
  await using app = await openApp(original);
  await ageNonce(app);
});
afterEach(async () => {
  await original[Symbol.asyncDispose]();
  await clone[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const openApp = (database: TestDatabase): Promise<TestApp> =>
  createTestApp({ database, dataDir: path.join(folder, 'data'), settings: smallBlobs });
const shared = (): string => path.join(folder, 'data', 'blobs');
const at = (name: string): string => path.join(folder, name);

/** The nonce changes, as it does each minute while the workers run. */
async function ageNonce(app: TestApp): Promise<void> {
  for (let round = 0; round < 2; round++) {
    await query(app, `update installation set store_nonce_at = store_nonce_at - interval '2 minutes'`);
    await moving(app, ({ blobs, db }) => ownsStore({ blobs, db }));
  }
}

/** Runs the work with settings that name the directory, or as the servers have them. */
async function moving<T>(
  { context }: TestApp,
  work: (parts: MoveParts) => Promise<T>,
  settings: { readonly directory?: string; readonly secondStore?: string } = {},
): Promise<T> {
  const { directory, secondStore = null } = settings;
  const config = {
    ...context.config,
    ...(directory === undefined ? {} : { blobs: { kind: 'files', directory } as const }),
    secondStore,
  };
  const { blobRows, db, logger } = context;
  const blobs = await openBlobs({ config, db, logger });
  try {
    return await work({ blobs, blobRows, config, db, locations: createBlobLocationRepository(db) });
  } finally {
    await blobs.close();
  }
}

const copy = (app: TestApp, to: string) =>
  moving(app, async (parts) => {
    await beginMove(parts, to);
    await copyBlobs(parts, await openMove(parts, 'copying'));
  });
const verifyAndSwitch = async (app: TestApp): Promise<void> => {
  expect((await moving(app, async (parts) => verifyBlobs(parts, await openMove(parts, 'copying')))).faults).toEqual([]);
  await moving(app, switchMove);
};
const finish = (app: TestApp, settings: Parameters<typeof moving>[2] = {}) =>
  moving(app, (parts) => finishMove(parts, { empty: true }), settings);

const storeAt = (directory: string) => FileBlobStore.open({ directory });
const absentFrom = async (directory: string): Promise<string[]> => (await storeAt(directory)).findAbsent(keys);
const filesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map(({ name }) => name);

test('a copy of the database that moves away from a shared store cannot empty it, and its owner can', async () => {
  {
    await using app = await openApp(clone);
    await copy(app, at('clone'));
    await verifyAndSwitch(app);
    await expect(finish(app)).rejects.toThrow('Another copy of this database');
    expect(await absentFrom(shared())).toEqual([]);
    await moving(app, (parts) => finishMove(parts));
    await until(() => ownsStore(app.context), 'the server uses the new location');
  }
  await using app = await openApp(original);
  expect(await ownsStore(app.context)).toBe(true);
  await copy(app, at('new'));
  const mark = await (await storeAt(shared())).open(ownerKey(await app.context.blobRows.installationId()));
  const before = Buffer.concat(await Array.fromAsync(mark));
  await verifyAndSwitch(app);
  // As if the switch had been killed after its commit, and were repeated.
  await (await storeAt(shared())).put(ownerKey(await app.context.blobRows.installationId()), once(before));
  await moving(app, switchMove);
  await until(() => ownsStore(app.context), 'the server uses the new location');
  expect(await finish(app)).toMatchObject({ deleted: expect.any(Number), left: 0 });
  expect(filesIn(shared())).toEqual([]);
  expect(await absentFrom(at('new'))).toEqual([]);
});

test('a store that another copy takes over while it is emptied keeps the rest', async () => {
  await using app = await openApp(original);
  await copy(app, at('new'));
  await verifyAndSwitch(app);
  const { installation } = (await query(app, 'select id as installation from installation'))[0] as {
    installation: string;
  };
  const old = await storeAt(shared());
  await old.put(keys[0] as string, once(Buffer.from('differs')));
  // The blob that differs is repaired, after which nothing is compared.
  const takeOver = async (): Promise<boolean> => {
    await old.put(`owners/${installation}`, once(Buffer.from('another')));
    return true;
  };
  const emptied = moving(app, (parts) => finishMove(parts, { empty: true, repair: takeOver }));
  await expect(emptied).rejects.toThrow('Another copy of this database');
  expect(await absentFrom(shared())).toEqual([]);
});

test('a new location that has the mark of the old one, as after a copy with other tools, is not emptied', async () => {
  await using app = await openApp(original);
  await copy(app, at('new'));
  await verifyAndSwitch(app);
  const [mark] = (await (await storeAt(shared())).list('places/')).blobs;
  cpSync(shared(), at('new'), { recursive: true });
  await expect(finish(app, { directory: at('new') })).rejects.toThrow(`delete its object ${mark?.key}`);
  expect([await absentFrom(at('new')), await absentFrom(shared())]).toEqual([[], []]);
  await (await storeAt(at('new'))).delete(mark?.key ?? '-');
  await finish(app, { directory: at('new') });
  expect(await absentFrom(at('new'))).toEqual([]);
  expect(filesIn(shared())).toEqual([]);
});

test('a location that has the marks of both is the one that the settings name', async () => {
  await using app = await openApp(original);
  await copy(app, at('new'));
  cpSync(at('new'), shared(), { recursive: true });
  const key = 'checkpoints/aa/x';
  await moving(app, ({ blobs }) => blobs.put(key, bytesOf(Buffer.from('x'))()));
  expect(await (await storeAt(at('new'))).stat(key)).not.toBeNull();
  expect(await (await storeAt(shared())).stat(key)).not.toBeNull();
  await expect(moving(app, (parts) => openMove(parts, 'copying'))).rejects.toThrow(BlobMoveError);
});

test('the store of another copy of the database is refused as the new location', async () => {
  await using app = await openApp(clone);
  await query(app, `update installation set store_nonce = gen_random_uuid(), store_nonce_before = null`);
  const own = at('own');
  cpSync(shared(), own, { recursive: true });
  const before = filesIn(shared()).sort();
  const begun = moving(app, (parts) => beginMove(parts, shared()), { directory: own });
  await expect(begun).rejects.toThrow('another copy of this database uses');
  expect(filesIn(shared()).sort()).toEqual(before);
});

test('blobs move back to a location that was left, or to one of a move that was cancelled', async () => {
  await using app = await openApp(original);
  for (const to of [at('one'), at('two'), shared()]) {
    await copy(app, to);
    await verifyAndSwitch(app);
    await moving(app, (parts) => finishMove(parts));
    await ageNonce(app);
    expect(await moving(app, ownsStore)).toBe(true);
  }
  await copy(app, at('three'));
  await ageNonce(app);
  await moving(app, cancelMove);
  await ageNonce(app);
  await copy(app, at('three'));
  await verifyAndSwitch(app);
  expect(await moving(app, ownsStore)).toBe(true);
});

test('the second store of the settings is neither the new location, nor emptied as the old one', async () => {
  await using app = await openApp(original);
  const second = at('second');
  await expect(moving(app, (parts) => beginMove(parts, second), { secondStore: second })).rejects.toThrow(
    'second store',
  );
  await copy(app, at('new'));
  await verifyAndSwitch(app);
  await expect(finish(app, { secondStore: `${shared()}?strict=true` })).rejects.toThrow('second store');
  expect(await absentFrom(shared())).toEqual([]);
});
