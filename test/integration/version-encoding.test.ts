import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { decodeDocument } from '../../src/shared/state/checkpoints/document-codec.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { query } from '../support/database.ts';
import {
  createEncoder,
  encodeAll,
  exportVersion,
  exportVersions,
  importVersion,
  importVersions,
  makeDue,
  stateOf,
  versionsOf,
} from '../support/encode-versions.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

// Small inline limit: some chunks are in rows, others in the blob store.
const app = testApp({
  settings: { encodeBytesPerSecond: 1_000_000_000_000, HOLDFAST_INLINE_BYTES: '250' },
});

test('older versions take little space, and each is exported byte for byte', async () => {
  const stack = await createStack(app);
  // Two blocks of eight, each of which has all bytes of a version once, and the newest.
  const texts = await importVersions(app, stack, 17);
  const before = await versionsOf(app, stack);
  expect(await encodeAll(app)).toBe(16);
  const after = await versionsOf(app, stack);
  expect(after.map(({ codec }) => codec)).toEqual([...texts.slice(1).map(() => 'chunks'), 'zstd']);
  const sum = (rows: typeof after): number => rows.reduce((total, row) => total + Number(row.stored_bytes), 0);
  expect(sum(after)).toBeLessThan(sum(before) / 3);
  expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
  const [chunks] = await query(
    app,
    `select max(depth) as depth, bool_or(blob_key is null) as rows, bool_or(blob_key is not null) as blobs,
       (select sum(c.stored_bytes)::float8 from checkpoints c where c.codec = 'chunks') = sum(stored_bytes)::float8 as "isSum"
     from version_chunks`,
  );
  expect(chunks).toMatchObject({ rows: true, blobs: true, isSum: true });
  // Two versions to the last of their group of four, three within it.
  expect(chunks?.['depth']).toBeGreaterThan(1);
  expect(chunks?.['depth']).toBeLessThanOrEqual(6);
  // Nothing is left to do, and nothing is done again.
  expect(await encodeAll(app)).toBe(0);
});

test('any versions, encoded in any order, are exported byte for byte', async () => {
  const change = fc.record({
    at: fc.nat(29),
    value: fc.integer({ min: 0, max: 2 }),
    count: fc.constantFrom(30, 31, 90),
  });
  const steps = fc.array(fc.oneof(change, fc.constant('encode' as const), fc.constant('encode some' as const)), {
    minLength: 6,
    maxLength: 12,
  });
  const property = fc.asyncProperty(steps, fc.infiniteStream(fc.boolean()), async (list, coins) => {
    const stack = await createStack(app);
    const texts: string[] = [];
    for (const step of [...list, 'encode' as const]) {
      if (typeof step === 'object') {
        texts.push(stateOf(step.count, { [step.at]: String(step.value) }));
        await importVersion(app, stack, texts.at(-1) as string);
        continue;
      }
      await query(app, 'update checkpoints set encode_at = null');
      for (const { id } of await versionsOf(app, stack)) {
        if (step === 'encode some' && coins.next().value) continue;
        await query(app, "update checkpoints set encode_at = 'epoch' where id = $1 and codec <> 'chunks'", [id]);
      }
      await encodeVersions(app.context, { encoder: createEncoder(app) });
    }
    expect(await exportVersions(app, stack, texts.length)).toEqual(texts);
    const codecs = (await versionsOf(app, stack)).map(({ codec }) => codec);
    expect(codecs).toEqual(texts.map((_, at) => (at === texts.length - 1 ? 'zstd' : 'chunks')));
  });
  await fc.assert(property, { numRuns: 3 });
});

test('the same content is kept once', async () => {
  const stack = await createStack(app);
  const texts = ['a', 'b', 'a', 'b', 'a', 'c'].map((value) => stateOf(60, { 3: value }));
  for (const text of texts) await importVersion(app, stack, text);
  expect(await encodeAll(app)).toBe(5);
  const stored = (await versionsOf(app, stack)).map((row) => Number(row.stored_bytes));
  expect(stored.slice(2, 5)).toEqual([0, 0, 0]);
  expect(await exportVersions(app, stack, 6)).toEqual(texts);
});

test('the newest version, and what a running update began from, stay whole', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 2);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'new', stack)));
  expect(await encodeAll(app)).toBe(1);
  expect((await versionsOf(app, stack)).map(({ codec }) => codec)).toEqual(['chunks', 'zstd', 'zstd']);
  await ok(complete(app, update));
  // The journal is not read back yet: it may still have to be replayed.
  const waiting = await query(app, 'select 1 from checkpoints where encode_at > now()');
  expect(waiting.length).toBeGreaterThan(0);
  await app.context.compactor.compact(update.id);
  expect(await encodeAll(app)).toBe(1);
  expect((await versionsOf(app, stack)).map(({ codec }) => codec)).toEqual(['chunks', 'chunks', 'zstd']);
  expect(await exportVersions(app, stack, 2)).toEqual(texts);
});

test('a state before the first version, and one that an update only read, are encoded in turn', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 1);
  const update = await startUpdate(app, stack);
  await ok(complete(app, update));
  await importVersion(app, stack, stateOf(10));
  expect(await encodeAll(app)).toBe(1);
  expect(await exportVersion(app, stack, 1)).toBe(texts[0]);
  expect(await exportVersion(app, stack, 2)).toBe(texts[0]);
});

test('a replay of a journal reads an encoded version like a whole one', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 3);
  await encodeAll(app);
  const [first] = await versionsOf(app, stack);
  const checkpoint = await app.context.checkpoints.find(first?.id as string);
  if (!checkpoint) throw new Error('no checkpoint');
  const encoded = await app.context.documentReader.readEncoded(checkpoint);
  expect(decodeDocument(encoded).toString()).toBe(texts[0]);
  expect(await app.context.documentReader.check(checkpoint.id)).toBe('intact');
});

test('bytes stored count what chunks take', async () => {
  const stack = await createStack(app);
  await importVersions(app, stack, 6);
  const quotas = createQuotaRepository(app.context.db);
  const [organization] = await query<{ id: string }>(app, 'select id from organizations where name = $1', [
    stack.organization,
  ]);
  const measure = async (): Promise<number> => {
    await createStorageRepository(app.context.db).measure(organization?.id as string);
    return quotas.findKeptBytes(stack.organization);
  };
  const before = await measure();
  await encodeAll(app);
  expect(await measure()).toBeLessThan(before * 0.7);
});

test('small states stay whole and are not looked at again', async () => {
  const stack = await createStack(app);
  for (const value of ['a', 'b']) await importVersion(app, stack, stateOf(2, { 1: value }));
  await makeDue(app, stack);
  // With the usual limits.
  expect(await encodeVersions(app.context)).toBe(0);
  expect((await versionsOf(app, stack)).map(({ codec }) => codec)).toEqual(['zstd', 'zstd']);
  expect(await query(app, "select 1 from checkpoints where encode_at = 'epoch'")).toEqual([]);
});

test('deleting a stack deletes its chunks and releases their blobs', async () => {
  const stack = await createStack(app);
  await importVersions(app, stack, 6);
  await encodeAll(app);
  const { id } = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json as { id: string };
  const blobs = await query<{ blob_key: string }>(
    app,
    'select blob_key from version_chunks where stack_id = $1 and blob_key is not null',
    [id],
  );
  expect(blobs.length).toBeGreaterThan(0);
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await createStackDeletion(app.context, { pauseMs: 0, batchUpdates: 3 })();
  expect(await query(app, 'select 1 from stacks where id = $1', [id])).toEqual([]);
  expect(await query(app, 'select 1 from version_chunks where stack_id = $1', [id])).toEqual([]);
  const released = await query(app, 'select 1 from blobs where key = any($1) and unreferenced_since is not null', [
    blobs.map(({ blob_key }) => blob_key),
  ]);
  expect(released).toHaveLength(blobs.length);
});
