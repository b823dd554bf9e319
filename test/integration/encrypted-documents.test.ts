import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { deploymentOf } from '../../bench/support/raw-client.ts';
import { rewrapKeys } from '../../src/cli/admin/rewrap-keys.ts';
import { rotateKey } from '../../src/cli/admin/rotate-data-keys.ts';
import { createEncryptionKeyRepository } from '../../src/shared/secrets/encryption-key-repository.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { Scrubber } from '../../src/workers/state/scrub.ts';
import { storedKeys } from '../support/blob-rows.ts';
import { headOf, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { exportedNames, exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, createTestDatabase, masterKeys, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';

const open: TestApp[] = [];
let database: TestDatabase;
let first: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  first = await createTestApp({ database, settings: settingsOf('true') });
});
afterEach(async () => {
  for (const app of open.splice(0).reverse()) await app[Symbol.asyncDispose]();
});
afterAll(async () => {
  await first[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

function settingsOf(encrypts: string): Record<string, string> {
  return { HOLDFAST_ENCRYPT_DOCUMENTS: encrypts, HOLDFAST_INLINE_BYTES: '100' };
}

/** Another process on the same database and blobs. */
async function another(encrypts: 'true' | 'false', keys = masterKeys): Promise<TestApp> {
  const settings = settingsOf(encrypts);
  const app = await createTestApp({ database, dataDir: first.dataDir, settings, masterKeys: keys });
  open.push(app);
  return app;
}

async function importText(app: TestApp, text: string): Promise<TestStack> {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: text }));
  return stack;
}

async function exported(app: TestApp, stack: TestStack, version?: number): Promise<string> {
  return (await exportState(app, stack, version)).text;
}

async function codecOf(app: TestApp, stack: TestStack): Promise<{ codec: string; version: number | null }> {
  const [row] = await query<{ codec: string; version: number | null }>(
    app,
    `select c.codec, k.version from checkpoints c join blobs b on b.key = c.blob_key
     left join encryption_keys k on k.id = b.encryption_key_id where c.id = $1`,
    [await headOf(app, stack)],
  );
  return row as { codec: string; version: number | null };
}

const markedState = (marker: string): string =>
  JSON.stringify(deployment(20, `${marker}-${randomBytes(400).toString('base64')}`));
const keysOf = (app: TestApp) => createEncryptionKeyRepository(app.context.db);

/** Everything that a reader of the store sees: names, then contents. */
async function readStore(app: TestApp): Promise<{ names: string; files: Buffer[] }> {
  const directory = path.join(app.dataDir, 'blobs');
  const found = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  return { names: paths.join('\n'), files: await Promise.all(paths.map((file) => readFile(file))) };
}

describe('the blob store', () => {
  test('reveals neither a document nor which document it is', async () => {
    const text = markedState('visible');
    const stack = await importText(first, text);
    expect(await exported(first, stack)).toBe(text);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
    const encrypted = await readStore(first);
    expect(encrypted.names).not.toContain(sha256.slice(0, 12));
    expect(encrypted.files.some((file) => file.includes('visible') || file.includes(zstdMagic))).toBe(false);
    // The same document stored again is another object with other bytes.
    const before = await storedKeys(first);
    await importText(first, text);
    expect(await storedKeys(first)).toHaveLength(before.length + 1);
    // Without encryption the search finds the texts.
    await importText(await another('false'), text);
    const plain = await readStore(first);
    expect(plain.names).toContain(sha256);
    expect(plain.files.some((file) => file.subarray(0, 4).equals(zstdMagic))).toBe(true);
  });

  test('returns large documents unchanged', async () => {
    const text = deploymentOf(5_000_000).toString();
    const stack = await importText(first, text);
    expect((await codecOf(first, stack)).codec).toBe('zstd+encrypted');
    expect((await exported(first, stack)) === text).toBe(true);
  });
});

test('encrypted and unencrypted documents can both be read, whether encryption is on or off', async () => {
  const off = await another('false');
  const apps = [first, off];
  const texts = [markedState('a'), markedState('b')];
  const stacks = [await importText(first, texts[0] as string), await importText(off, texts[1] as string)];
  const codecs = await Promise.all(stacks.map((stack) => codecOf(first, stack)));
  expect(codecs.map(({ codec }) => codec)).toEqual(['zstd+encrypted', 'zstd']);
  for (const app of apps) {
    for (const [at, stack] of stacks.entries()) expect(await exported(app, stack)).toBe(texts[at]);
  }
  // A journal over an encrypted base, compacted by a process without encryption, and vice versa.
  for (const [at, stack] of stacks.entries()) {
    const [app, names] = [apps[1 - at] as TestApp, await exportedNames(first, stack)];
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'added', stack)));
    await ok(complete(app, update));
    expect((await codecOf(app, stack)).codec).toBe(at === 0 ? 'zstd' : 'zstd+encrypted');
    for (const reader of apps) expect(await exportedNames(reader, stack)).toEqual(['added', ...names]);
    expect(await exported(app, stack, 1)).toBe(texts[at]);
  }
});

test('the document key can be rotated while processes run, and is rewrapped with the others', async () => {
  const other = await another('true');
  const texts = [markedState('one'), markedState('two')];
  const ring = keyRingOf(masterKeys);
  const before = await importText(other, texts[0] as string);
  const { version } = await codecOf(other, before);
  expect(await rotateKey(keysOf(first), ring, null)).toBe(true);
  const after = await importText(other, texts[1] as string);
  expect((await codecOf(other, after)).version).toBe((version as number) + 1);
  const newKeys = `${KeyRing.generate().replace(/^[^:]+/, 'next')},${masterKeys}`;
  expect((await rewrapKeys(keysOf(first), keyRingOf(newKeys))).lost).toEqual([]);
  const renewed = await another('true', newKeys.split(',')[0] as string);
  expect(await exported(renewed, before)).toBe(texts[0]);
  expect(await exported(renewed, after)).toBe(texts[1]);
  await rewrapKeys(keysOf(first), keyRingOf(`${masterKeys},${newKeys.split(',')[0]}`));
});

test('without the right master key a document is rejected but not marked as damaged', async () => {
  const text = markedState('locked');
  const stack = await importText(first, text);
  const update = await startUpdate(first, stack, { journal: true });
  await ok(append(first, update, Array.from({ length: 30 }, (_, at) => creation(1 + 2 * at, `n${at}`, stack)).flat()));
  await first.context.compactor.takeSnapshot(update.id);
  const foreignKey = KeyRing.generate();
  await expect(another('true', foreignKey)).rejects.toThrow('is not the one that was used under this id');
  const foreign = await another('true', foreignKey.replace(/^[^:]+/, 'foreign'));
  const refused = await foreign.call('GET', `${stack.path}/export/1`, { auth: stack.auth });
  expect([refused.status, refused.text.includes('master key')]).toEqual([500, false]);
  expect((await complete(foreign, update)).status).toBeGreaterThanOrEqual(500);
  await query(first, `update checkpoints set checked_at = now() - interval '31 days'`);
  await query(first, `update journal_snapshots set checked_at = now() - interval '31 days'`);
  await new Scrubber(foreign.context, { bytesPerSecond: 1e9, periodSeconds: 30 * 86_400 }).run(1_000);
  const { values } = await foreign.context.metrics.documentsChecked.get();
  expect(values.filter(({ labels }) => labels.outcome !== 'intact').map(({ labels }) => labels.outcome)).toEqual([
    'failed',
  ]);
  expect(await query(first, 'select id from checkpoints where damaged_at is not null')).toEqual([]);
  expect(await query(first, 'select entries from journal_snapshots where update_id = $1', [update.id])).toHaveLength(1);
  // The foreign process has not encrypted anything either: the current document key is not its own.
  await expect(importText(foreign, text)).rejects.toThrow('500');
  await ok(complete(first, update));
  expect(await exported(first, stack, 1)).toBe(text);
});

test('swapped objects are detected as damaged and are repaired once they are back', async () => {
  const texts = [markedState('mine'), markedState('theirs')];
  const stacks = [await importText(first, texts[0] as string), await importText(first, texts[1] as string)] as const;
  const stored = await Promise.all(stacks.map(async (stack) => storedBytes(first, await headOf(first, stack))));
  const [mine, theirs] = stored as [(typeof stored)[0], (typeof stored)[0]];
  // Unencrypted bytes instead of encrypted ones are rejected too.
  for (const bytes of [theirs.bytes, Buffer.from(texts[0] as string), mine.bytes.subarray(0, 49)]) {
    await mine.overwrite(bytes);
    expect((await first.call('GET', `${stacks[0].path}/export`, { auth: stacks[0].auth })).status).toBe(500);
    expect(await query(first, 'select id from checkpoints where damaged_at is not null')).toEqual([{ id: mine.id }]);
    await mine.restore();
    expect(await exported(first, stacks[0])).toBe(texts[0]);
  }
});
