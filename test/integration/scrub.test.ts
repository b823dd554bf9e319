import { randomBytes } from 'node:crypto';
import { afterEach, expect, jest, test } from '@jest/globals';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/shared/platform/config/config.ts';
import { Scrubber } from '../../src/workers/state/scrub.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { letBlobsAge } from '../support/blob-rows.ts';
import { blobFile, flipBit, headOf, type StoredBytes, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, masterKeys, type TestApp } from '../support/test-app.ts';
import { append } from '../support/update-calls.ts';

const day = 86_400;
const open: TestApp[] = [];
afterEach(async () => {
  // The owner of the database comes last.
  for (const app of open.splice(0).reverse()) await app[Symbol.asyncDispose]();
});

/** Small documents in rows, others in blobs. */
async function createApp(like?: TestApp, settings: Record<string, string> = {}): Promise<TestApp> {
  const app = await createTestApp({
    settings: { HOLDFAST_INLINE_BYTES: '350', blobGraceSeconds: 1, ...settings },
    ...(like ? { database: like.database, dataDir: like.dataDir } : {}),
  });
  open.push(app);
  return app;
}

async function importState(app: TestApp, state: object): Promise<TestStack> {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: state }));
  return stack;
}

async function damage(app: TestApp, stack: TestStack): Promise<StoredBytes> {
  const stored = await storedBytes(app, await headOf(app, stack));
  await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 2));
  return stored;
}

const scrubber = (app: TestApp, bytesPerSecond = 1e9) =>
  new Scrubber(app.context, { bytesPerSecond, periodSeconds: 30 * day });

const letAllBeDue = (app: TestApp) =>
  query(app, `update checkpoints set checked_at = now() - interval '31 days'`).then(() =>
    query(app, `update journal_snapshots set checked_at = now() - interval '31 days'`),
  );

/** Checks by outcome, of all these processes together. */
async function outcomes(...apps: TestApp[]): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { context } of apps) {
    const { values } = await context.metrics.documentsChecked.get();
    for (const { labels, value } of values) sums[String(labels.outcome)] = (sums[String(labels.outcome)] ?? 0) + value;
  }
  return sums;
}

const damagedIds = async (app: TestApp): Promise<string[]> =>
  (await query<{ id: string }>(app, 'select id from checkpoints where damaged_at is not null order by id')).map(
    ({ id }) => id,
  );

test('two processes at once read each document once and find all damage: in rows, blobs, missing objects, snapshots', async () => {
  const app = await createApp();
  const other = await createApp(app);
  const stacks: TestStack[] = [];
  for (let at = 0; at < 30; at++) stacks.push(await importState(app, deployment(at % 2 === 0 ? 2 : 40, `n${at}-`)));
  const update = await startUpdate(app, stacks[0] as TestStack, { journal: true });
  await ok(
    append(app, update, [...creation(1, 'a', stacks[0] as TestStack), ...creation(3, 'b', stacks[0] as TestStack)]),
  );
  await app.context.compactor.takeSnapshot(update.id);
  const point = await storedBytes(app, update.id, 'journal_snapshots');
  await point.overwrite(flipBit(point.bytes, 20, 1));
  const inRow = await damage(app, stacks[4] as TestStack);
  const inBlob = await damage(app, stacks[7] as TestStack);
  const missing = await storedBytes(app, await headOf(app, stacks[9] as TestStack));
  await missing.remove();
  expect([inRow.blobKey === null, inBlob.blobKey === null]).toEqual([true, false]);

  await letAllBeDue(app);
  await Promise.all([scrubber(app).run(1_000), scrubber(other).run(1_000)]);
  expect(await outcomes(app, other)).toEqual({ intact: 27, damaged: 3, repaired: 1 });
  expect(await damagedIds(app)).toEqual([inRow.id, inBlob.id, missing.id].sort());
  expect(await query(app, 'select 1 from journal_snapshots')).toEqual([]);
  expect(await app.context.documentChecks.readStatistics()).toMatchObject({ damaged: 3 });

  // Nothing is due until the damaged ones are checked again after an hour.
  await Promise.all([scrubber(app).run(1_000), scrubber(other).run(1_000)]);
  expect(await outcomes(app, other)).toEqual({ intact: 27, damaged: 3, repaired: 1 });
  await inBlob.overwrite(inBlob.bytes);
  await query(app, `update checkpoints set checked_at = now() - interval '61 minutes' where damaged_at is not null`);
  await scrubber(app).run(1_000);
  expect(await outcomes(app, other)).toEqual({ intact: 27, damaged: 5, repaired: 1, restored: 1 });
  expect(await damagedIds(app)).toEqual([inRow.id, missing.id].sort());
});

test('a document that a process claimed and did not read is due again in an hour, and not before', async () => {
  const app = await createApp();
  await importState(app, deployment(2));
  await letAllBeDue(app);
  const claim = { periodSeconds: 30 * day, bytes: 1e9, limit: 10, claimSeconds: 3600 };
  expect(await app.context.documentChecks.claim(claim)).toHaveLength(1);
  expect(await app.context.documentChecks.claim(claim)).toHaveLength(0);
  await query(app, `update checkpoints set checked_at = checked_at - interval '61 minutes'`);
  expect(await app.context.documentChecks.claim(claim)).toHaveLength(1);
});

test('the rate is kept: a large document delays the following runs, and idle time is not saved up', async () => {
  const app = await createApp();
  for (let at = 0; at < 12; at++) {
    await importState(app, { ...deployment(1), noise: randomBytes(6_000).toString('base64') });
  }
  const [{ least }] = (await query<{ least: number }>(
    app,
    'select min(stored_bytes)::integer as least from checkpoints',
  )) as [{ least: number }];
  const rate = Math.ceil(least / 4);
  expect(least).toBeGreaterThan(4 * 1024);
  const scrub = scrubber(app, rate);
  // Nothing is due for a long time.
  await scrub.run(3_600_000);
  await letAllBeDue(app);
  const readAfter: number[] = [];
  for (let second = 1; second <= 20; second++) {
    await scrub.run(1_000);
    const { intact = 0 } = await outcomes(app);
    readAfter.push(intact);
    // The bytes read never exceed the allowance plus one document.
    expect((intact - 1) * least).toBeLessThan(rate * second);
  }
  expect(readAfter.at(-1)).toBeGreaterThanOrEqual(4);
  expect(new Set(readAfter).size).toBeGreaterThan(3);
  await scrub.run(3_600_000);
  expect(await outcomes(app)).toEqual({ intact: 12 });
});

test('it ends when the process stops and leaves the rest to others', async () => {
  const app = await createApp();
  for (let at = 0; at < 5; at++) await importState(app, deployment(2, `stop${at}-`));
  await letAllBeDue(app);
  const stop = new AbortController();
  stop.abort();
  await scrubber(app).run(1_000, stop.signal);
  expect(await outcomes(app)).toEqual({});
});

test('the remains of a damaged document survive the sweep', async () => {
  const app = await createApp();
  const stored = await damage(app, await importState(app, deployment(40)));
  await letAllBeDue(app);
  await scrubber(app).run(1_000);
  await letBlobsAge(app, 48);
  expect(await sweepBlobs(app.context)).toBe(0);
  await expect(blobFile(app, stored.blobKey as string)).resolves.toContain('checkpoints');
});

test.each([
  ['row', 2],
  ['blob store', 40],
])('a document in the %s is repaired from a second copy, by an export or the scrub', async (_place, resources) => {
  const app = await createApp();
  const state = deployment(resources, 'same');
  const [first, second] = [await importState(app, state), await importState(app, state)];
  const byExport = await damage(app, first);
  expect((await exportState(app, first)).json).toEqual(state);
  const repaired = await storedBytes(app, byExport.id);
  // Encrypted bytes differ each time.
  const isEncrypted = byExport.blobKey !== null && app.context.config.encryption.encryptsDocuments;
  expect(repaired.bytes.equals(byExport.bytes)).toBe(!isEncrypted);
  if (byExport.blobKey !== null) expect(repaired.blobKey).not.toBe(byExport.blobKey);

  await damage(app, second);
  await letAllBeDue(app);
  await scrubber(app).run(1_000);
  expect(await outcomes(app)).toEqual({ intact: 1, repaired: 1 });
  expect((await exportState(app, second)).json).toEqual(state);
  expect(await damagedIds(app)).toEqual([]);
  // Nothing refers to the damaged objects now.
  await letBlobsAge(app, 48);
  expect(await sweepBlobs(app.context)).toBe(byExport.blobKey === null ? 0 : 2);
  for (const stack of [first, second]) expect((await exportState(app, stack)).json).toEqual(state);
});

test('a second copy that is damaged too repairs nothing', async () => {
  const app = await createApp();
  const stacks = [await importState(app, deployment(40)), await importState(app, deployment(40))];
  const ids = [];
  for (const stack of stacks) ids.push((await damage(app, stack)).id);
  await letAllBeDue(app);
  await scrubber(app).run(1_000);
  expect(await damagedIds(app)).toEqual(ids.sort());
});

test('a document that was replaced meanwhile is neither marked nor replaced', async () => {
  const app = await createApp();
  const stack = await importState(app, deployment(40));
  const { documentChecks, checkpoints, documents } = app.context;
  const seen = await checkpoints.find(await headOf(app, stack));
  if (!seen) throw new Error('The stack has no checkpoint');
  const other = await documents.save(() => documents.open(seen));
  await query(app, `update checkpoints set blob_key = $2, damaged_at = now() where id = $1`, [seen.id, other.blobKey]);
  expect(await documentChecks.quarantine(seen)).toBeNull();
  const document = await documents.save(() => documents.open(seen));
  expect(await documentChecks.replace(seen, document)).toBe(false);
  expect((await checkpoints.find(seen.id))?.blobKey).toBe(other.blobKey);
});

test('admin scrub checks all stacks or one, and its exit code reports remaining damage', async () => {
  const printed: string[] = [];
  const print = (text: string): void => void printed.push(...text.split('\n'));
  jest.spyOn(console, 'log').mockImplementation(print);
  jest.spyOn(console, 'error').mockImplementation(print);
  const app = await createApp();
  const [whole, broken] = [await importState(app, deployment(40, 'a')), await importState(app, deployment(40, 'b'))];
  const stored = await damage(app, broken);
  const config = parseConfig({
    HOLDFAST_DATABASE_URL: app.database.url,
    HOLDFAST_DATA_DIR: app.dataDir,
    HOLDFAST_MASTER_KEYS: masterKeys,
    HOLDFAST_LOG_LEVEL: 'silent',
  });
  const nameOf = ({ organization, project, stack }: TestStack): string => `${organization}/${project}/${stack}`;
  const scrub = (...args: string[]) => runCommandLine(['admin', 'scrub', ...args], () => config);
  expect(await scrub('--stack', nameOf(whole))).toBe(0);
  expect(await damagedIds(app)).toEqual([]);
  expect(await scrub()).toBe(1);
  expect(await damagedIds(app)).toEqual([stored.id]);
  await stored.overwrite(stored.bytes);
  expect(await scrub('--stack', nameOf(broken))).toBe(0);
  expect(await damagedIds(app)).toEqual([]);
  expect(await scrub('--stack', `${whole.organization}/proj/none`)).toBe(1);
  expect(await scrub('--stack', 'nonsense')).toBe(2);
  jest.restoreAllMocks();
  expect(printed.slice(0, 4)).toEqual([
    'Checked 1 documents: 0 damaged, 0 of them repaired.',
    'Checked 2 documents: 1 damaged, 0 of them repaired.',
    `Damaged: ${nameOf(broken)}, version 1 (checkpoint ${stored.id})`,
    'Checked 1 documents: 0 damaged, 0 of them repaired.',
  ]);
});
