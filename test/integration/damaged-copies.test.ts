import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { beginReconcile, reconcile } from '../../src/shared/state/blobs/reconcile-blobs.ts';
import { secondStoreTasks } from '../../src/workers/state/second-store-tasks.ts';
import { readEverything, writeEverything } from '../support/all-documents.ts';
import { flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

// A document is damaged only if every store was read, and none has its bytes. While one of them is away, nobody knows.

const states = ['right', 'damaged', 'absent', 'away'] as const;
/** `stuck`: damaged, and nothing can be written to the store. */
type State = (typeof states)[number] | 'stuck';

let folder: string;
let app: TestApp;
let written: Awaited<ReturnType<typeof writeEverything>>;
let bytes: ReadonlyMap<string, Buffer>;
let texts: readonly string[];
const stores = () => {
  const { mirror } = app.context;
  if (!mirror) throw new Error('there is no second store');
  return mirror;
};
const dirOf = (name: keyof ReturnType<typeof stores>): string =>
  name === 'main' ? path.join(app.dataDir, 'blobs') : path.join(folder, 'second');

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'holdfast-copies-'));
  app = await createTestApp({
    dataDir: path.join(folder, 'main'),
    settings: { HOLDFAST_INLINE_BYTES: '1', HOLDFAST_SECOND_STORE: path.join(folder, 'second') },
  });
  written = await writeEverything(app);
  const rows = await query<{ key: string }>(app, 'select key from blobs where unreferenced_since is null');
  bytes = new Map(await Promise.all(rows.map(async ({ key }) => [key, await readSmall(stores().main, key)] as const)));
  texts = await readEverything(app, written);
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  for (const store of Object.values(stores())) for (const [key, right] of bytes) await store.put(key, bytesOf(right)());
  for (const table of ['checkpoints', 'event_segments', 'policy_pack_versions'])
    await query(app, `update ${table} set damaged_at = null`);
  await query(app, 'delete from blob_copies_due');
});

/** Brings all blobs of a store into the state, while `run` runs. */
async function whileIn<T>(name: 'main' | 'second', state: State, run: () => Promise<T>): Promise<T> {
  const store: BlobStore = stores()[name];
  if (state === 'damaged' || state === 'stuck')
    for (const [key, right] of bytes) await store.put(key, bytesOf(flipBit(right, right.length >> 1, 2))());
  if (state === 'absent') for (const key of bytes.keys()) await store.delete(key);
  if (state !== 'away' && state !== 'stuck') return run();
  // A file system that is mounted read-only is beyond a test: nothing begins to be written here.
  const dir = path.join(dirOf(name), state === 'away' ? 'blobs' : 'unfinished');
  renameSync(dir, `${dir}-away`);
  writeFileSync(dir, 'no folder');
  try {
    return await run();
  } finally {
    rmSync(dir);
    renameSync(`${dir}-away`, dir);
  }
}

type Known = 'right' | 'damaged' | 'not known';

function expected(main: State, second: State): Known {
  if (main === 'right' || second === 'right') return 'right';
  return main === 'away' || second === 'away' ? 'not known' : 'damaged';
}

const outcomeOf = async (run: () => Promise<string>): Promise<Known> => {
  try {
    return (await run()) === 'damaged' ? 'damaged' : 'right';
  } catch (error) {
    expect(error).toMatchObject({ status: 503 });
    return 'not known';
  }
};

async function idsOf(table: string): Promise<string[]> {
  return (await query<{ id: string }>(app, `select id from ${table}`)).map(({ id }) => id);
}

/** Each check of stored documents, with the ids that it takes. */
const checks: Readonly<Record<string, { table: string; run: (id: string) => Promise<string> }>> = {
  'a check of a state': { table: 'checkpoints', run: (id) => app.context.documentReader.check(id) },
  'a look at a state': { table: 'checkpoints', run: (id) => app.context.documentReader.inspect(id) },
  'a check of events': { table: 'event_segments', run: (id) => app.context.eventSegments.check(id) },
  'a look at events': { table: 'event_segments', run: (id) => app.context.eventSegments.inspect(id) },
  'a check of an archive': { table: 'policy_pack_versions', run: (id) => app.context.policyArchives.check(id) },
  'a look at an archive': { table: 'policy_pack_versions', run: (id) => app.context.policyArchives.inspect(id) },
};

const stuck: readonly [State, State][] = [
  ['stuck', 'right'],
  ['stuck', 'stuck'],
  ['stuck', 'away'],
  ['right', 'stuck'],
];
// Reads begin in the second store for a while after the main one was away.
const pairs = [...stuck, ...states.flatMap((main) => states.map((second): [State, State] => [main, second]))].map(
  ([main, second]) => ({ main, second, known: expected(main, second) }),
);

describe.each(pairs)('with main copies $main and second ones $second', ({ known, main, second }) => {
  const inBoth = <T>(run: () => Promise<T>): Promise<T> => whileIn('main', main, () => whileIn('second', second, run));

  test(`all checks say: ${known}`, async () => {
    for (const [name, { run, table }] of Object.entries(checks)) {
      const ids = await idsOf(table);
      expect(ids.length).toBeGreaterThan(0);
      // A repair of one would help the next.
      const found = await inBoth(() => outcomeOf(() => run(ids[0] as string)));
      expect({ name, found }).toEqual({ name, found: known });
    }
    const marked = await query(app, 'select 1 from checkpoints where damaged_at is not null');
    expect(marked.length > 0).toBe(known === 'damaged');
  });

  test(`reads answer: ${known}`, async () => {
    const found = await inBoth(async () => {
      const { status } = await app.call('GET', `${written.stack.path}/export/1`, { auth: written.stack.auth });
      return status === 200 ? 'right' : status === 500 ? 'damaged' : status === 503 ? 'not known' : status;
    });
    expect(found).toBe(known);
  });

  test('fsck calls nothing damaged or missing that it has not read in both stores', async () => {
    const report = await inBoth(() => fsck(app.context, { fixes: false, sample: null, ring: null }));
    const kinds = new Set(report.findings.map(({ kind }) => kind));
    const judged = ['document-damaged', 'segment-damaged', 'archive-damaged', 'blob-missing'] as const;
    const found = judged.filter((kind) => kinds.has(kind));
    const isLost = main === 'absent' && second === 'absent';
    const all = isLost ? [...judged] : judged.filter((kind) => kind !== 'blob-missing');
    expect(found).toEqual(known === 'damaged' ? all : []);
    if (known === 'not known') expect(kinds).toContain('not-checked');
  });

  test('the comparison of rows and objects finds a blob missing only if both stores say so', async () => {
    const { blobRows, blobs, logger } = app.context;
    const parts = { blobRows, blobs, logger, isDry: true };
    const missing = await inBoth(async () => {
      const { counts } = await reconcile(parts, await beginReconcile(parts), { objectsPerSecond: 1e6 });
      return counts.missing;
    }).catch(() => null);
    if (main === 'absent' && second === 'absent') expect(missing).toBe(bytes.size);
    else expect([0, null]).toContain(missing);
  });
});

test.each([
  ['main', 'damaged'],
  ['main', 'stuck'],
  ['second', 'damaged'],
  ['second', 'stuck'],
] as const)('what is damaged in the %s store is read from the other one: %s', async (name, state) => {
  expect(await whileIn(name, state, () => readEverything(app, written))).toEqual(texts);
});

test('a copy that could not be replaced is replaced later, by the task', async () => {
  await whileIn('main', 'stuck', () => readEverything(app, written));
  const wrong = await wrongKeys();
  expect(wrong.length).toBeGreaterThan(2);
  expect((await query<{ key: string }>(app, 'select key from blob_copies_due')).map(({ key }) => key).sort()).toEqual(
    wrong,
  );
  const copyNow = async (): Promise<void> => {
    const [task] = secondStoreTasks(app.context, stores());
    await task?.run(new AbortController().signal, { position: null, holder: 'test' });
  };
  await copyNow();
  expect(await wrongKeys()).toEqual(wrong);
  await query(app, 'update blob_copies_due set try_at = now()');
  await copyNow();
  expect(await wrongKeys()).toEqual([]);
  expect(await query(app, 'select 1 from blob_copies_due')).toEqual([]);
});

/** Blobs that a read has proved and that are wrong in the main store. */
async function wrongKeys(): Promise<string[]> {
  const keys: string[] = [];
  for (const [key, right] of bytes) if (!(await readSmall(stores().main, key)).equals(right)) keys.push(key);
  return keys.sort();
}

test('a version whose chunks are damaged in both stores, each in another one, is read', async () => {
  const chunks = await query<{ key: string }>(
    app,
    'select blob_key as key from version_chunks where blob_key is not null order by id',
  );
  expect(chunks.length).toBeGreaterThan(1);
  for (const [at, { key }] of chunks.entries()) {
    const right = bytes.get(key) as Buffer;
    await stores()[at % 2 === 0 ? 'main' : 'second'].put(key, bytesOf(flipBit(right, right.length >> 1, 2))());
  }
  expect(await readEverything(app, written)).toEqual(texts);
  expect(await query(app, 'select 1 from checkpoints where damaged_at is not null')).toEqual([]);
});
