import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { stateOf } from '../../bench/support/state-document.ts';
import { query } from '../support/database.ts';
import { exportState } from '../support/stack-state.ts';
import { createStack, gzipped, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { cancel, complete } from '../support/update-calls.ts';

// A process keeps the text of the last delta of each update, and applies the next one to it.

let app: TestApp;
/** A second replica. */
let other: TestApp;
beforeAll(async () => {
  app = await createTestApp();
  other = await createTestApp({ database: app.database, dataDir: app.dataDir });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
});

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly newText: string;
}

interface Written {
  readonly stack: TestStack;
  readonly update: RunningUpdate;
  readonly text: string;
}

const start = '{"version":3,"deployment":{"resources":[],"x":"';
const textOf = (value: string) => `${start}${value}"}}`;
/** Replaces the value of `x` in `before`. */
const replacing = (before: string, value: string): Edit => ({
  start: start.length,
  end: before.length - 3,
  newText: value,
});

function verbatim(to: TestApp, update: RunningUpdate, text: string, sequenceNumber: number): Promise<TestResponse> {
  const body = `{"version":3,"untypedDeployment":${text},"sequenceNumber":${sequenceNumber}}`;
  return to.call('PATCH', `${update.path}/checkpointverbatim`, { auth: update.lease, ...gzipped(body) });
}

function delta(
  to: TestApp,
  update: RunningUpdate,
  { start, end, newText }: Edit,
  result: string,
  sequenceNumber: number,
): Promise<TestResponse> {
  const body = {
    version: 3,
    sequenceNumber,
    checkpointHash: createHash('sha256').update(result).digest('hex'),
    deploymentDelta: [{ Span: { start: { offset: start }, end: { offset: end } }, NewText: newText }],
  };
  return to.call('PATCH', `${update.path}/checkpointdelta`, { auth: update.lease, body });
}

/** An update with a checkpoint and a delta, whose text `app` keeps. */
async function written(): Promise<Written> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(verbatim(app, update, textOf('a'), 1));
  await ok(delta(app, update, replacing(textOf('a'), 'b'), textOf('b'), 2));
  return { stack, update, text: textOf('b') };
}

const exported = async (stack: TestStack) => (await ok(exportState(other, stack))).text;

test('the next delta does not read the checkpoint back', async () => {
  const { stack, update, text } = await written();
  await query(app, `update checkpoints set inline_bytes = '\\x00' where update_id = $1`, [update.id]);
  await ok(delta(app, update, replacing(text, 'c'), textOf('c'), 3));
  expect(await exported(stack)).toBe(textOf('c'));
});

test.each(['a checkpoint', 'a delta'])('after %s through another replica, a delta is applied to that', async (kind) => {
  const { stack, update, text } = await written();
  await ok(
    kind === 'a delta'
      ? delta(other, update, replacing(text, 'between'), textOf('between'), 3)
      : verbatim(other, update, textOf('between'), 3),
  );
  await ok(delta(app, update, replacing(textOf('between'), 'c'), textOf('c'), 4));
  expect(await exported(stack)).toBe(textOf('c'));
});

test('a delta to the kept text is not accepted once another checkpoint was', async () => {
  const { stack, update, text } = await written();
  await ok(verbatim(other, update, textOf('between'), 4));
  // With a higher number, the base is not what it was computed from.
  expect((await delta(app, update, replacing(text, 'c'), textOf('c'), 5)).status).toBe(400);
  // With a lower one, it is an old call: accepted, and without effect.
  await ok(delta(app, update, replacing(text, 'c'), textOf('c'), 3));
  expect(await exported(stack)).toBe(textOf('between'));
});

test('a repeat changes nothing, and a wrong one neither', async () => {
  const { stack, update, text } = await written();
  for (const sequenceNumber of [2, 1]) {
    await ok(delta(app, update, replacing(textOf('a'), 'b'), textOf('b'), sequenceNumber));
  }
  await ok(delta(app, update, replacing(text, 'c'), textOf('c'), 3));
  await ok(delta(app, update, replacing(text, 'c'), textOf('c'), 3));
  expect((await delta(app, update, replacing(textOf('c'), 'd'), textOf('e'), 4)).status).toBe(400);
  expect((await delta(app, update, { start: 900, end: 901, newText: '' }, textOf('c'), 4)).status).toBe(400);
  const broken = `${textOf('c')}}`;
  const end = textOf('c').length;
  expect((await delta(app, update, { start: end, end, newText: '}' }, broken, 4)).status).toBe(400);
  expect(await exported(stack)).toBe(textOf('c'));
  await ok(delta(app, update, replacing(textOf('c'), 'd'), textOf('d'), 4));
  expect(await exported(stack)).toBe(textOf('d'));
});

test('the first write of an update cannot be a delta to the state of the update before', async () => {
  const { stack, update, text } = await written();
  await ok(complete(app, update));
  const next = await startUpdate(app, stack);
  const refused = await delta(app, next, replacing(text, 'c'), textOf('c'), 1);
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('no checkpoint of this update')]);
  expect(await exported(stack)).toBe(text);
});

test('a late repeat that happens to fit the kept text changes nothing', async () => {
  const { stack, update, text } = await written();
  const back = () => delta(app, update, replacing(text, 'a'), textOf('a'), 3);
  await ok(back());
  await ok(delta(app, update, replacing(textOf('a'), 'b'), textOf('b'), 4));
  await ok(back());
  expect(await exported(stack)).toBe(textOf('b'));
});

test('after its lease has ended, a delta to the kept text is not accepted', async () => {
  const { stack, update, text } = await written();
  await ok(cancel(other, stack, update));
  expect((await delta(app, update, replacing(text, 'c'), textOf('c'), 3)).status).toBe(403);
  expect(await exported(stack)).toBe(text);
});

test('deltas through two replicas, with repeats, in any order of replicas: the last one is the state', async () => {
  const { stack, update, text } = await written();
  let before = text;
  for (let number = 3; number < 30; number++) {
    const after = textOf(`${'x'.repeat(number % 5)}${number}`);
    const edit = replacing(before, after.slice(start.length, -3));
    const to = (number * 7) % 4 < 2 ? app : other;
    await ok(delta(to, update, edit, after, number));
    if (number % 4 === 0) await ok(delta(to === app ? other : app, update, edit, after, number));
    before = after;
  }
  expect(await exported(stack)).toBe(before);
});

test('a small delta to a large checkpoint is applied by a worker', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const text = stateOf(8_500_000).toString();
  await ok(verbatim(app, update, text, 1));
  const { dispatcher } = app.context;
  const run = dispatcher.run.bind(dispatcher);
  const sizes: number[] = [];
  dispatcher.run = (job, options) => {
    sizes.push(options?.bytes ?? 0);
    return run(job, options);
  };
  try {
    const end = text.length;
    expect((await delta(app, update, { start: end, end, newText: ' ' }, `${text}x`, 2)).status).toBe(400);
    await ok(delta(app, update, { start: end, end, newText: ' ' }, `${text} `, 2));
  } finally {
    dispatcher.run = run;
  }
  expect(sizes).toEqual([text.length, text.length]);
  expect((await exported(stack)) === `${text} `).toBe(true);
});
