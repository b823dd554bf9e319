import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { letBlobsAge } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import {
  createEncoder,
  encodeAll,
  exportVersions,
  importVersion,
  importVersions,
  makeDue,
  stateOf,
  versionsOf,
} from '../support/encode-versions.ts';
import { createEncodingApp } from '../support/encoding-app.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import type { TestApp } from '../support/test-app.ts';

class Crash extends Error {
  override readonly name = 'Crash';
}

/** Runs before and after each statement of the encoder, and each use of the blob store. */
let visit: (() => Promise<void>) | null = null;

function withSteps<T extends object>(target: T): T {
  return new Proxy(target, {
    get: (object, name) => {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        await visit?.();
        const result: unknown = await value.apply(object, args);
        // The reader of an opened blob must close its resources.
        if (name !== 'open') await visit?.();
        return result;
      };
    },
  });
}

let app: TestApp;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ app, stop } = await createEncodingApp(withSteps));
});
afterAll(() => stop());

/** Runs `work`, with `act` at each step of the given number. Returns how many steps there were. */
async function atStep(number: number, act: () => Promise<void>, work: () => Promise<unknown>): Promise<number> {
  let steps = 0;
  visit = async () => {
    if (++steps === number) await act();
  };
  try {
    await work();
  } finally {
    visit = null;
  }
  return steps;
}

/** Encodes what is due, in an encoder of its own, whose steps are visited. */
async function encodeDue(stack: TestStack): Promise<void> {
  await makeDue(app, stack);
  const encoder = createEncoder(app, withSteps(app.context.db));
  const rows = await query<{ id: string; encodeAt: string }>(
    app,
    `select c.id, c.encode_at::text as "encodeAt" from checkpoints c join stacks s on s.id = c.stack_id
       join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 and c.encode_at = 'epoch' order by c.created_at`,
    [stack.organization],
  );
  for (const due of rows) await encoder.encodeDue(due);
}

async function expectNoLeftovers(): Promise<void> {
  await app.context.chunks.sweep(1_000);
  const [left] = await query(
    app,
    `select count(*)::int as count from version_chunks p
     where not exists (select 1 from checkpoint_chunks c where c.chunk_id = p.id)
       and not exists (select 1 from version_chunks d where d.base_id = p.id)`,
  );
  expect(left).toEqual({ count: 0 });
}

test('a crash at any step loses nothing, and the next run completes the work', async () => {
  const stack = await createStack(app);
  const texts = ['a', 'b', 'c'].map((value) => stateOf(12, { 3: value }));
  for (const text of texts.slice(0, 2)) await importVersion(app, stack, text);
  await encodeAll(app);
  await importVersion(app, stack, texts[2] as string);
  const crash = async (): Promise<void> => {
    throw new Crash();
  };
  let crashes = 0;
  for (let number = 1; ; number++) {
    const outcome = await atStep(number, crash, () => encodeDue(stack)).catch((error: unknown) => {
      let cause: unknown = error;
      while (cause instanceof Error && !(cause instanceof Crash)) cause = cause.cause;
      if (!(cause instanceof Crash)) throw error;
      return null;
    });
    if (number % 8 === 0) expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
    if (outcome !== null) break;
    crashes++;
  }
  expect(crashes).toBeGreaterThan(20);
  expect((await versionsOf(app, stack)).map(({ codec }) => codec)).toEqual(['chunks', 'chunks', 'zstd']);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
  await expectNoLeftovers();
  // What the crashes left in the blob store is swept like any other orphan, what is needed is not.
  await letBlobsAge(app);
  await sweepBlobs(app.context);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
});

test('two workers that encode the same versions at once leave one encoding of each', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 5);
  await makeDue(app);
  await Promise.all([1, 2, 3].map(() => encodeVersions(app.context, { encoder: createEncoder(app) })));
  await encodeAll(app);
  expect((await versionsOf(app, stack)).map(({ codec }) => codec)).toEqual([...Array(4).fill('chunks'), 'zstd']);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
  await expectNoLeftovers();
});

test('a new version, at any step, does not get in the way', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 2);
  for (const number of [4, 20]) {
    const add = async (): Promise<void> => {
      texts.push(stateOf(60, { 5: `new ${number}` }));
      visit = null;
      await importVersion(app, stack, texts.at(-1) as string);
    };
    await atStep(number, add, () => encodeDue(stack));
    expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
  }
  await encodeAll(app);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
  expect((await versionsOf(app, stack)).at(-1)?.codec).toBe('zstd');
});

test('a stack that is deleted at any step leaves nothing behind', async () => {
  for (const number of [3, 15, 27]) {
    const stack = await createStack(app);
    await importVersions(app, stack, 3);
    const remove = async (): Promise<void> => {
      visit = null;
      await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
      await createStackDeletion(app.context, { pauseMs: 0 })();
    };
    // Rows that it needs are gone: it may fail, and is tried again.
    await atStep(number, remove, () => encodeDue(stack)).catch(() => {});
    await createStackDeletion(app.context, { pauseMs: 0 })();
    const [left] = await query(
      app,
      `select (select count(*)::int from stacks where deleted_at is not null) as stacks,
         (select count(*)::int from version_chunks p where not exists (select 1 from stacks s where s.id = p.stack_id)) as chunks`,
    );
    expect(left).toEqual({ stacks: 0, chunks: 0 });
  }
});

test('the blobs of chunks survive the sweep and the reconcile task, also when they are marked by mistake', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 3);
  await encodeAll(app);
  const keys = (
    await query<{ key: string }>(app, 'select blob_key as key from version_chunks where blob_key is not null')
  ).map(({ key }) => key);
  expect(keys.length).toBeGreaterThan(0);
  expect(await app.context.blobRows.markMissed(keys)).toBe(0);
  expect(await app.context.blobRows.listReferenced(keys)).toHaveLength(keys.length);
  await query(app, "update blobs set unreferenced_since = now() - interval '1 year' where key = any($1)", [keys]);
  await sweepBlobs(app.context);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
});

test.each(['asc', 'desc'])(
  'a sweep during the deletion of the last version with a chunk does not make the chunk stay, %s',
  async (order) => {
    const stack = await createStack(app);
    await importVersions(app, stack, 3);
    await encodeAll(app);
    const [shared] = await query<{ id: string; versions: string[] }>(
      app,
      `select k.chunk_id as id, array_agg(c.id::text order by c.encoded_number ${order}) as versions from checkpoint_chunks k
       join checkpoints c on c.id = k.checkpoint_id join version_chunks p on p.id = k.chunk_id join stacks s on s.id = p.stack_id
       join projects q on q.id = s.project_id join organizations o on o.id = q.organization_id
     where o.name = $1 group by 1 having count(*) = 2 order by 1 limit 1`,
      [stack.organization],
    );
    const [first, last] = shared?.versions ?? [];
    const isMarked = async (): Promise<unknown[]> =>
      query(app, 'select unreferenced_since is not null as marked from version_chunks where id = $1', [shared?.id]);
    await query(app, 'delete from checkpoint_chunks where checkpoint_id = $1', [first]);
    expect(await isMarked()).toEqual([{ marked: true }]);
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    await client.query('begin');
    await client.query('delete from checkpoint_chunks where checkpoint_id = $1', [last]);
    await app.context.chunks.sweep(1_000);
    await client.query('commit');
    await client.end();
    expect(await isMarked()).toEqual([{ marked: true }]);
    while ((await app.context.chunks.sweep(1_000)) > 0);
    expect(await isMarked()).toEqual([]);
  },
);
