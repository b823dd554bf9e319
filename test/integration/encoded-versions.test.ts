import { writeFile } from 'node:fs/promises';
import { afterEach, expect, test } from '@jest/globals';
import { VersionRestorer } from '../../src/cli/admin/version-restorer.ts';
import { readBackDocuments } from '../../src/cli/fsck/read-back.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { Scrubber } from '../../src/workers/state/scrub.ts';
import { blobFile, flipBit } from '../support/damage.ts';
import { query } from '../support/database.ts';
import {
  createEncoder,
  encodeAll,
  exportVersion,
  exportVersions,
  importVersion,
  importVersions,
  stateOf,
  versionsOf,
} from '../support/encode-versions.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

// What reads, checks and repairs documents does so with encoded versions.

let app: TestApp;
afterEach(() => app[Symbol.asyncDispose]());

async function createApp(settings: Record<string, string> = {}): Promise<void> {
  const common = { encodeBytesPerSecond: 1_000_000_000_000, HOLDFAST_INLINE_BYTES: '250' };
  app = await createTestApp({ settings: { ...common, ...settings } });
}

interface Chunk {
  readonly id: string;
  readonly inline_bytes: Buffer | null;
  readonly blob_key: string | null;
}

/** The chunks that only this version has, and on which later ones depend. */
async function ownChunks(stack: TestStack, version: number): Promise<Chunk[]> {
  const id = (await versionsOf(app, stack))[version - 1]?.id;
  return query<Chunk>(
    app,
    `select p.id, p.inline_bytes, p.blob_key from checkpoint_chunks c join version_chunks p on p.id = c.chunk_id
     where c.checkpoint_id = $1 and exists (select 1 from version_chunks d where d.base_id = p.id)
       and not exists (select 1 from checkpoint_chunks o where o.chunk_id = p.id and o.checkpoint_id <> $1)`,
    [id],
  );
}

async function damage({ id, inline_bytes, blob_key }: Chunk): Promise<void> {
  if (inline_bytes) {
    const bytes = flipBit(inline_bytes, inline_bytes.length >> 1, 2);
    await query(app, 'update version_chunks set inline_bytes = $2 where id = $1', [id, bytes]);
  } else {
    await writeFile(await blobFile(app, blob_key as string), 'not the bytes of a chunk');
  }
}

const tryExport = (stack: TestStack, version: number): Promise<TestResponse> =>
  app.call('GET', `${stack.path}/export/${version}`, { auth: stack.auth });

async function readable(stack: TestStack, count: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, (_, at) => tryExport(stack, at + 1)));
  return answers.flatMap(({ status }, at) => (status === 200 ? [at + 1] : []));
}

/** As an hour later. */
const letChecksBeDue = (): Promise<unknown> =>
  query(app, "update checkpoints set checked_at = now() - interval '2 hours' where damaged_at is not null");

test('a damaged chunk makes its chain unreadable, and nothing else; later versions do not refer to it', async () => {
  await createApp();
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 10);
  await encodeAll(app);
  // The sixth is the second of its group: the seventh and the eighth refer to it, the ninth begins another chain.
  const [chunk] = await ownChunks(stack, 6);
  await damage(chunk as Chunk);
  const left = await readable(stack, 10);
  expect(left).toEqual(expect.arrayContaining([1, 2, 3, 4, 5, 9, 10]));
  expect(left).not.toContain(6);
  const answer = await tryExport(stack, 6);
  expect(answer.status).toBe(500);
  expect(answer.json.message).toContain(`at version 6 is damaged`);
  // Encoded next, over a base that is readable.
  await importVersion(app, stack, stateOf(60, { 50: 'later' }));
  await encodeAll(app);
  expect(await exportVersion(app, stack, 10)).toBe(texts[9]);
  const checked = await readBackDocuments(app.context, null);
  expect(checked.unrepaired.length).toBe(10 - left.length);
});

test('a damaged chunk that never changes makes the versions up to the next that stands alone unreadable, and no others', async () => {
  await createApp();
  const stack = await createStack(app);
  // The same state comes back, and most of it is in all versions.
  const texts = Array.from({ length: 21 }, (_, at) => stateOf(60, { 3: `v${at % 10 === 0 ? 0 : at}` }));
  for (const text of texts) await importVersion(app, stack, text);
  await encodeAll(app);
  const [common] = await query<Chunk>(
    app,
    `select p.id, p.inline_bytes, p.blob_key from checkpoint_chunks c join version_chunks p on p.id = c.chunk_id
     where p.stack_id = (select stack_id from checkpoints where id = $1) group by p.id order by count(*) desc, p.id limit 1`,
    [(await versionsOf(app, stack))[0]?.id],
  );
  await damage(common as Chunk);
  const left = await readable(stack, texts.length);
  expect(left.slice(-13)).toEqual(texts.slice(8).map((_, at) => at + 9));
  expect(left.length).toBeLessThan(15);
  for (const version of left) expect(await exportVersion(app, stack, version)).toBe(texts[version - 1]);
});

test('a damaged chunk is replaced from a copy of its version, and versions that refer to it are readable again', async () => {
  await createApp();
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 8);
  await encodeAll(app);
  for (const chunk of await ownChunks(stack, 5)) await damage(chunk);
  const before = await readable(stack, 8);
  expect(before).not.toContain(5);
  // The same state, in another stack, as a whole.
  await importVersion(app, await createStack(app), texts[4] as string);
  await letChecksBeDue();
  await new Scrubber(app.context, { bytesPerSecond: 1e9, periodSeconds: 86_400 }).run(60_000);
  await letChecksBeDue();
  expect(await exportVersions(app, stack, 8)).toEqual(texts);
  expect((await readBackDocuments(app.context, null)).unrepaired).toEqual([]);
  const codecs = async () => (await versionsOf(app, stack)).map(({ codec }) => codec);
  expect(await codecs()).toContain('zstd');
  // What was repaired is encoded again, ten minutes later.
  await query(app, `update checkpoints set encode_at = encode_at - interval '10 minutes'`);
  await encodeVersions(app.context, { encoder: createEncoder(app) });
  expect(await codecs()).toEqual([...Array(7).fill('chunks'), 'zstd']);
  expect(await exportVersions(app, stack, 8)).toEqual(texts);
});

test('a state is rebuilt from its journal over an encoded version', async () => {
  await createApp();
  const stack = await createStack(app);
  await importVersions(app, stack, 2);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'new', stack)));
  await ok(complete(app, update));
  await app.context.compactor.compact(update.id);
  const names = await exportedNames(app, stack, 3);
  expect(names).toContain('new');
  await importVersion(app, stack, stateOf(3));
  await encodeAll(app);
  const versions = await versionsOf(app, stack);
  expect(versions.map(({ codec }) => codec)).toEqual(['chunks', 'chunks', 'chunks', 'zstd']);
  const chunks = await query<Chunk>(
    app,
    `select p.id, p.inline_bytes, p.blob_key from checkpoint_chunks c join version_chunks p on p.id = c.chunk_id
     where c.checkpoint_id = $1 and not exists (
       select 1 from checkpoint_chunks o where o.chunk_id = p.id and o.checkpoint_id <> $1)`,
    [versions[2]?.id],
  );
  expect(chunks.length).toBeGreaterThan(0);
  for (const chunk of chunks) await damage(chunk);
  expect(await exportedNames(app, stack, 3)).toEqual(names);
  expect((await readBackDocuments(app.context, null)).unrepaired).toEqual([]);
});

test('an encoded version can be restored', async () => {
  await createApp();
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 3);
  await encodeAll(app);
  const { id } = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json as { id: string };
  expect(await new VersionRestorer(app.context).restore(id, 1, async () => {})).toBe(4);
  expect(await exportVersion(app, stack, 4)).toBe(texts[0]);
});

test('what was encrypted stays encrypted', async () => {
  await createApp({ HOLDFAST_ENCRYPT_DOCUMENTS: 'true' });
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 4);
  await encodeAll(app);
  const codecs = await query(app, 'select distinct codec, inline_bytes is null as "inBlob" from version_chunks');
  expect(codecs).toEqual([{ codec: 'zstd+encrypted', inBlob: true }]);
  expect(await exportVersions(app, stack, 4)).toEqual(texts);
});
