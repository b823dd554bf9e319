import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { OpenReplays } from '../../src/shared/journal/ahead/open-replays.ts';
import { ThreadedReplayRunner } from '../../src/shared/journal/replay/runner/threaded-replay-runner.ts';
import { query } from '../support/database.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

const openReplays = new OpenReplays();
const thread = new ThreadedReplayRunner();
let app: TestApp;
/** A second replica, which keeps nothing unless a test makes it. */
let other: TestApp;

beforeAll(async () => {
  app = await createTestApp({ overrides: { openReplays, largeReplays: thread } });
  other = await createTestApp({ database: app.database, dataDir: app.dataDir });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await app[Symbol.asyncDispose]();
  await thread.close();
});

interface Journaled {
  readonly stack: TestStack;
  readonly update: RunningUpdate;
}

/** An update over a base of ten resources, in which a first batch has removed one and added another. */
async function journaled(): Promise<Journaled> {
  const stack = await createStack(app);
  const earlier = await startUpdate(app, stack, { journal: true });
  const base = Array.from({ length: 10 }, (_, at) => creation(1 + 2 * at, `base${at}`, stack)).flat();
  await ok(append(app, earlier, base));
  await ok(complete(app, earlier));
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, [...creation(1, 'r1', stack), beginning(3, 3), removal(4, 3, 0)]));
  return { stack, update };
}

const add = (to: TestApp, { stack, update }: Journaled, sequenceId: number) =>
  ok(append(to, update, creation(sequenceId, `r${sequenceId}`, stack)));

const baseNames = Array.from({ length: 9 }, (_, at) => `base${at + 1}`);
const namesUpTo = (sequenceId: number) => [
  'r1',
  ...Array.from({ length: (sequenceId - 3) / 2 }, (_, at) => `r${5 + 2 * at}`),
  ...baseNames,
];

/** The document without the time in its manifest. */
const timeless = (document: string): string => document.replace(/"time":"[^"]*"/, '"time":""');

const exportText = async (on: TestApp, { stack }: Journaled): Promise<string> =>
  (await on.call('GET', `${stack.path}/export`, { auth: stack.auth })).text;

test('complete only applies what is new; the document is that of a replay from the base, byte for byte', async () => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await add(app, journal, 5);
  await app.context.compactor.advance(journal.update.id);
  await add(app, journal, 7);
  const row = await other.context.updates.find(journal.update.id);
  const replayed = row && (await other.context.compactor.replay(row));
  // A replay from the base would miss them.
  await query(app, 'delete from journal_entries where update_id = $1 and sequence_id <= 6', [journal.update.id]);
  await ok(complete(app, journal.update));
  expect(timeless(await exportText(app, journal))).toBe(
    timeless(Buffer.from(replayed?.document as Uint8Array).toString()),
  );
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(7));
});

test('what one replica has kept does not matter to another, nor what was written through the other', async () => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await add(other, journal, 5);
  await other.context.compactor.advance(journal.update.id);
  await add(app, journal, 7);
  // Of a running update, by a replay.
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(7));
  await add(other, journal, 9);
  await ok(complete(other, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(9));
});

test('batches, compactions ahead on two replicas, exports and complete at the same time lose nothing', async () => {
  for (let round = 0; round < 4; round++) {
    const journal = await journaled();
    const { id } = journal.update;
    let isOver = false;
    const advancing = [app, other].map(async ({ context }) => {
      while (!isOver) await context.compactor.advance(id);
    });
    for (let sequenceId = 5; sequenceId < 45; sequenceId += 2) {
      await add(sequenceId % 4 === 1 ? app : other, journal, sequenceId);
      if (sequenceId % 10 === 5) expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(sequenceId));
    }
    await ok(complete(round % 2 === 0 ? app : other, journal.update));
    isOver = true;
    await Promise.all(advancing);
    expect(await exportedNames(other, journal.stack)).toEqual(namesUpTo(43));
  }
});

test.each(['cancelled', 'expired'])(
  'an update that is %s keeps all entries, and its replay is released',
  async (end) => {
    const journal = await journaled();
    const { id } = journal.update;
    await app.context.compactor.advance(id);
    await add(app, journal, 5);
    expect(openReplays.has(id)).toBe(true);
    const advancing = app.context.compactor.advance(id);
    if (end === 'cancelled') await ok(cancel(app, journal.stack, journal.update));
    else await query(app, 'update updates set expires_at = now() where id = $1', [id]);
    await advancing;
    // Ends the expired one.
    await startUpdate(app, journal.stack, { journal: true });
    expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(5));
    await until(() => !openReplays.has(id), 'replay released');
    await app.context.compactor.advance(id);
    expect(openReplays.has(id)).toBe(false);
  },
);

test('an entry that arrives after a later one is applied in its place', async () => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await add(app, journal, 7);
  await app.context.compactor.advance(journal.update.id);
  await add(app, journal, 5);
  await app.context.compactor.advance(journal.update.id);
  await ok(complete(app, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(7));
});

test('an invalid entry is reported by complete as without compacting ahead', async () => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await ok(append(app, journal.update, [removal(5, 5, 99)]));
  await app.context.compactor.advance(journal.update.id);
  const first = await complete(app, journal.update);
  const second = await complete(other, journal.update);
  expect([first.status, first.json.message]).toEqual([400, second.json.message]);
});

test('when the thread has died, complete starts over', async () => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await thread.close();
  await add(app, journal, 5);
  await ok(complete(app, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(5));
});

test('without room, nothing is kept and complete works as before', async () => {
  const full = new OpenReplays({ maxBytes: 100 });
  await using small = await createTestApp({
    database: app.database,
    dataDir: app.dataDir,
    overrides: { openReplays: full },
  });
  const journal = await journaled();
  await small.context.compactor.advance(journal.update.id);
  expect([full.has(journal.update.id), full.bytes]).toEqual([false, 0]);
  await ok(complete(small, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(3));
});

test('a large journal is compacted ahead on its own, a small one is not', async () => {
  const [large, small] = [await journaled(), await journaled()];
  const names = Array.from({ length: 300 }, (_, at) => `n${at}`);
  await ok(
    append(
      app,
      large.update,
      names.flatMap((name, at) => creation(5 + 2 * at, name, large.stack)),
    ),
  );
  await until(() => openReplays.bytes > 0 && openReplays.has(large.update.id), 'compacted ahead');
  expect(openReplays.has(small.update.id)).toBe(false);
  await ok(complete(app, large.update));
  await ok(complete(app, small.update));
  expect(await exportedNames(app, large.stack)).toEqual(['r1', ...names, ...baseNames]);
  await until(() => !openReplays.has(large.update.id), 'replay released');
});
