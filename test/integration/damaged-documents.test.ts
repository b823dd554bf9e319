import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deploymentOf } from '../../bench/support/raw-client.ts';
import { flipBit, headOf, spread, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { deleteStack } from '../support/deleted-stacks.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import {
  createStack,
  deployment,
  gzipped,
  ok,
  type RunningUpdate,
  startUpdate,
  type TestStack,
} from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { append, cancel, complete, saveVerbatim } from '../support/update-calls.ts';

// All other readers of stored documents reject damaged ones, write nothing, and name the state.

let app: TestApp;
const log: Record<string, unknown>[] = [];
beforeAll(async () => {
  const write = (line: string): void => void log.push(JSON.parse(line));
  const settings = { HOLDFAST_INLINE_BYTES: '300', HOLDFAST_DELETED_STACK_DAYS: '7' };
  app = await createTestApp({ settings, log: { write } });
});
afterAll(() => app[Symbol.asyncDispose]());

const importText = (stack: TestStack, text: string | object): Promise<TestResponse> =>
  ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(text) }));

const tryExport = (stack: TestStack, version = ''): Promise<TestResponse> =>
  app.call('GET', `${stack.path}/export${version}`, { auth: stack.auth });

function expectDamaged(answer: TestResponse, stack: TestStack, version: number): void {
  expect(answer.status).toBe(500);
  expect(answer.headers['retry-after']).toBeUndefined();
  const name = `${stack.organization}/${stack.project}/${stack.stack}`;
  expect(answer.json).toEqual({
    code: 500,
    message: expect.stringContaining(`stack ${name} at version ${version} is`),
  });
  expect(answer.json.message).toContain('holdfast admin scrub');
}

/** Everything that a write could have changed. */
async function rowsOf(stack: TestStack): Promise<unknown> {
  return query(
    app,
    `select s.checkpoint_id, s.stack_version, s.name, (select count(*) from checkpoints c where c.stack_id = s.id) as checkpoints,
       (select count(*) from updates u where u.stack_id = s.id) as updates,
       (select count(*) from journal_entries j join updates u on u.id = j.update_id where u.stack_id = s.id) as entries
     from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1`,
    [stack.organization],
  );
}

/** `from` numbers the resources, `firstId` the entries: each update counts its own from 1. */
async function appendResources(
  stack: TestStack,
  update: RunningUpdate,
  from: number,
  count: number,
  firstId = 1 + 2 * from,
): Promise<void> {
  const entries = Array.from({ length: count }, (_, at) => creation(firstId + 2 * at, `n${from + at}`, stack));
  await ok(append(app, update, entries.flat()));
}

describe('an export of a damaged state', () => {
  test('is rejected with instructions and logged with the location, and other versions still work', async () => {
    const stack = await createStack(app);
    await importText(stack, deployment(40, 'old'));
    const stored = await storedBytes(app, await headOf(app, stack));
    await importText(stack, deployment(2, 'new'));
    await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 3));
    log.length = 0;
    for (let attempt = 0; attempt < 3; attempt++) expectDamaged(await tryExport(stack, '/1'), stack, 1);
    const found = log.filter((line) => line['msg'] === 'stored document is damaged');
    expect(found).toEqual([
      expect.objectContaining({ level: 'error', checkpointId: stored.id, blobKey: stored.blobKey, stackVersion: 1 }),
    ]);
    expect((await exportState(app, stack)).json).toEqual(deployment(2, 'new'));
    // Once restored, it is served again after a check.
    await stored.restore();
    expect((await exportState(app, stack, 1)).json).toEqual(deployment(40, 'old'));
  });

  test('is rejected when the object is missing, also on retries', async () => {
    const stack = await createStack(app);
    await importText(stack, deployment(40, 'lost'));
    const stored = await storedBytes(app, await headOf(app, stack));
    await stored.remove();
    expectDamaged(await tryExport(stack), stack, 1);
    expectDamaged(await tryExport(stack, '/1'), stack, 1);
  });

  test('succeeds again after a minute once the bytes are back', async () => {
    const stack = await createStack(app);
    await importText(stack, deployment(40, 'back'));
    const stored = await storedBytes(app, await headOf(app, stack));
    await stored.overwrite(Buffer.alloc(10));
    expectDamaged(await tryExport(stack), stack, 1);
    await stored.overwrite(stored.bytes);
    await query(app, `update checkpoints set checked_at = now() - interval '2 minutes' where id = $1`, [stored.id]);
    expect((await exportState(app, stack)).json).toEqual(deployment(40, 'back'));
    expect(
      await query(app, 'select id from checkpoints where id = $1 and damaged_at is null', [stored.id]),
    ).toHaveLength(1);
  });
});

describe.each([
  ['in the row', 1, 10_000],
  ['in the blob store', 40, 40_000],
  ['large enough for the thread', 40, 700_000],
])('a compaction over a damaged base %s', (_name, entries, bytes) => {
  test('is rejected, writes nothing, and succeeds once the base is restored', async () => {
    const stack = await createStack(app);
    const text = bytes > 10_000 ? deploymentOf(bytes) : JSON.stringify(deployment(3));
    await importText(stack, text);
    const stored = await storedBytes(app, await headOf(app, stack));
    const before = await exportedNames(app, stack);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 0, entries);
    const rows = await rowsOf(stack);
    for (const position of spread(stored.bytes.length, 7)) {
      await stored.overwrite(flipBit(stored.bytes, position, position % 8));
      // Some bits (such as parts of a frame's header) do not affect the document when flipped.
      const damaged = await complete(app, update);
      if (damaged.status !== 500) throw new Error(`byte ${position}: ${damaged.status} ${damaged.text}`);
      expectDamaged(damaged, stack, 1);
      expectDamaged(await tryExport(stack), stack, 1);
      await stored.restore();
    }
    expect(await rowsOf(stack)).toEqual(rows);
    await ok(complete(app, update));
    const names = await exportedNames(app, stack);
    expect(names).toHaveLength(before.length + entries);
  });
});

test('a compaction ignores a snapshot that is damaged or missing', async () => {
  for (const way of ['flip', 'cut', 'remove'] as const) {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 0, 60);
    await app.context.compactor.takeSnapshot(update.id);
    await appendResources(stack, update, 60, 5);
    const point = await storedBytes(app, update.id, 'journal_snapshots');
    if (way === 'flip') await point.overwrite(flipBit(point.bytes, point.bytes.length >> 1, 1));
    if (way === 'cut') await point.overwrite(point.bytes.subarray(0, -6));
    if (way === 'remove') await point.remove();
    log.length = 0;
    expect(await exportedNames(app, stack)).toHaveLength(65);
    expect(log.map((line) => line['msg'])).toContain('journal snapshot is damaged: dropped');
    expect(await query(app, 'select 1 from journal_snapshots where update_id = $1', [update.id])).toEqual([]);
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toHaveLength(65);
  }
});

test('a delta over a damaged base is rejected and writes nothing', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const base = deployment(40);
  await ok(saveVerbatim(app, update, 1, base));
  const text = JSON.stringify(base);
  const at = text.indexOf('"r7"') < 0 ? text.indexOf('r7') : text.indexOf('"r7"');
  const result = `${text.slice(0, at)}r77${text.slice(at + 2)}`;
  const body = {
    version: 3,
    sequenceNumber: 2,
    checkpointHash: createHash('sha256').update(result).digest('hex'),
    deploymentDelta: [{ Span: { start: { offset: at }, end: { offset: at + 2 } }, NewText: 'r77' }],
  };
  const send = () => app.call('PATCH', `${update.path}/checkpointdelta`, { auth: update.lease, body });
  const stored = await storedBytes(app, await headOf(app, stack));
  const rows = await rowsOf(stack);
  for (const position of spread(stored.bytes.length, 20)) {
    await stored.overwrite(flipBit(stored.bytes, position, position % 8));
    expectDamaged(await send(), stack, 1);
    await stored.restore();
  }
  expect(await rowsOf(stack)).toEqual(rows);
  await ok(send());
  expect((await exportState(app, stack)).text).toBe(result);
});

test('renaming a stack with a damaged state is rejected and changes nothing', async () => {
  const stack = await createStack(app);
  await importText(stack, deploymentOf(1_500_000));
  const stored = await storedBytes(app, await headOf(app, stack));
  await stored.overwrite(flipBit(stored.bytes, stored.bytes.length - 1000, 0));
  const rows = await rowsOf(stack);
  const rename = () => app.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'other' } });
  expectDamaged(await rename(), stack, 1);
  expect(await rowsOf(stack)).toEqual(rows);
  await stored.restore();
  await ok(rename());
});

test('an unreadable checkpoint of an ended update is rebuilt from its journal', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await appendResources(stack, update, 0, 40);
  await app.context.compactor.compact(update.id);
  const stored = await storedBytes(app, await headOf(app, stack));
  await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 5));
  await query(app, `update updates set status = 'cancelled', ended_at = now() where id = $1`, [update.id]);
  await app.context.compactor.compact(update.id);
  expect(await headOf(app, stack)).not.toBe(stored.id);
  expect(await exportedNames(app, stack)).toHaveLength(40);
});

describe('a damaged state whose journal is still stored', () => {
  async function createJournaled(): Promise<TestStack> {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 0, 40);
    await ok(complete(app, update));
    return stack;
  }

  test('is rebuilt by the export that finds the damage', async () => {
    const stack = await createJournaled();
    const stored = await storedBytes(app, await headOf(app, stack));
    await stored.overwrite(Buffer.alloc(stored.bytes.length));
    log.length = 0;
    expect(await exportedNames(app, stack)).toHaveLength(40);
    const replaced = log.filter((line) => line['msg'] === 'damaged document replaced');
    expect(replaced).toEqual([expect.objectContaining({ checkpointId: stored.id, way: 'journal' })]);
    expect(await exportedNames(app, stack, 1)).toHaveLength(40);
    expect(await query(app, 'select 1 from checkpoints where id = $1', [stored.id])).toEqual([]);
  });

  test('is rebuilt by the compaction of an update that started from it', async () => {
    const stack = await createJournaled();
    const stored = await storedBytes(app, await headOf(app, stack));
    const update = await startUpdate(app, stack, { journal: true });
    await appendResources(stack, update, 40, 3, 1);
    await stored.overwrite(Buffer.alloc(stored.bytes.length));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toHaveLength(43);
    expect(await exportedNames(app, stack, 1)).toHaveLength(40);
  });

  test('is rebuilt by the check that finds the damage while the stack is deleted, and restored with it', async () => {
    const stack = await createJournaled();
    const stored = await storedBytes(app, await headOf(app, stack));
    const { id } = await getStack(app, stack);
    await ok(deleteStack(app, stack));
    await stored.overwrite(Buffer.alloc(stored.bytes.length));
    expect(await app.context.documentReader.check(stored.id)).toBe('repaired');
    // The journal is kept for a while only.
    await query(app, 'delete from journals where stack_id = $1', [id]);
    const path = `/api/orgs/${stack.organization}/deleted-stacks/${id}/restore`;
    await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
    expect(await exportedNames(app, stack)).toHaveLength(40);
    expect(await exportedNames(app, stack, 1)).toHaveLength(40);
    expect(await query(app, 'select 1 from checkpoints where id = $1', [stored.id])).toEqual([]);
  });

  test('is rejected when the journal is gone', async () => {
    const stack = await createJournaled();
    const stored = await storedBytes(app, await headOf(app, stack));
    await query(app, 'delete from journals j using stacks s where s.checkpoint_id = $1 and j.stack_id = s.id', [
      stored.id,
    ]);
    await stored.overwrite(Buffer.alloc(stored.bytes.length));
    expectDamaged(await tryExport(stack), stack, 1);
  });
});

test('an import replaces a damaged state; if a journal still needs that state, an operator must first accept the fault', async () => {
  const stack = await createStack(app);
  await importText(stack, deployment(40, 'first'));
  const stored = await storedBytes(app, await headOf(app, stack));
  await stored.overwrite(Buffer.from('nothing'));
  await importText(stack, deployment(40, 'second'));
  const update = await startUpdate(app, stack, { journal: true });
  await appendResources(stack, update, 0, 3);
  await (await storedBytes(app, await headOf(app, stack))).overwrite(Buffer.from('nothing'));
  // The compaction that follows fails.
  await cancel(app, stack, update);
  expectDamaged(await tryExport(stack), stack, 2);
  const refused = await app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(5) });
  expect(refused.status).toBe(409);
  expect(refused.json.message).toContain('is damaged');
  const [{ id }] = (await query<{ id: string }>(app, 'select stack_id as id from updates where id = $1', [
    update.id,
  ])) as [{ id: string }];
  await app.context.compactions.acceptFaults(id);
  await importText(stack, deployment(5, 'third'));
  expect((await exportState(app, stack)).json).toEqual(deployment(5, 'third'));
  expect(await query(app, 'select 1 from journal_entries where update_id = $1', [update.id])).toHaveLength(6);
});
