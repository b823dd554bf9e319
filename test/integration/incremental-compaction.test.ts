import { setImmediate as nextTick } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { OpenReplays } from '../../src/shared/state/journal/incremental/open-replays.ts';
import {
  type OpenReplay,
  type ReplayRunner,
  replayHere,
} from '../../src/shared/state/journal/replay/runner/replay-runner.ts';
import { ThreadedReplayRunner } from '../../src/shared/state/journal/replay/runner/threaded-replay-runner.ts';
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

/** The same replay, with methods that can be replaced. */
const bound = (replay: OpenReplay): OpenReplay => ({
  initialProgress: replay.initialProgress,
  apply: (page) => replay.apply(page),
  progress: () => replay.progress(),
  write: (manifest) => replay.write(manifest),
  encode: (manifest) => replay.encode(manifest),
  snapshot: () => replay.snapshot(),
  close: () => replay.close(),
});

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
  await app.context.compactor.advance(journal.update.id);
  // Once it learns that the update has ended, the replica drops what it has kept.
  await app.context.compactor.compact(journal.update.id);
  expect(openReplays.has(journal.update.id)).toBe(false);
  const again = async () => (await app.context.compactor.recompact(journal.update.id))?.entries;
  // Null while the other replica still reads its result back.
  await until(async () => (await again()) === 10, 'compacted again');
  expect(await exportedNames(other, journal.stack)).toEqual(namesUpTo(9));
});

test('a replica that stops gives its memory back, and another one completes its update', async () => {
  const own = new OpenReplays();
  const journal = await journaled();
  {
    await using stopped = await createTestApp({
      database: app.database,
      dataDir: app.dataDir,
      overrides: { openReplays: own },
    });
    await stopped.context.compactor.advance(journal.update.id);
    await add(stopped, journal, 5);
    await stopped.context.compactor.advance(journal.update.id);
    expect(own.bytes).toBeGreaterThan(0);
  }
  expect(own.bytes).toBe(0);
  await add(other, journal, 7);
  await ok(complete(other, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(7));
});

test.each(['before', 'after'])('a fault %s the commit of kept entries loses none and adds none', async (place) => {
  const journal = await journaled();
  await app.context.compactor.advance(journal.update.id);
  await add(app, journal, 5);
  const { checkpoints } = app.context;
  const { commitCompaction } = checkpoints;
  let faults = 0;
  checkpoints.commitCompaction = async (...args) => {
    if (faults > 0) return commitCompaction(...args);
    faults++;
    if (place === 'after') await commitCompaction(...args);
    throw new UnavailableError('the connection is lost');
  };
  try {
    // As the job for `complete`, without its repeats.
    await expect(app.context.compactor.compact(journal.update.id)).rejects.toThrow('the connection is lost');
    // The replay that was used is gone.
    expect(openReplays.has(journal.update.id)).toBe(false);
    await app.context.compactor.advance(journal.update.id);
    await add(app, journal, 7);
    expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(7));
    await app.context.compactor.advance(journal.update.id);
    await add(other, journal, 9);
    await ok(complete(app, journal.update));
  } finally {
    checkpoints.commitCompaction = commitCompaction;
  }
  expect(faults).toBe(1);
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(9));
});

test('a late step ahead of an update that was completed elsewhere changes nothing', async () => {
  const journal = await journaled();
  const { id } = journal.update;
  await app.context.compactor.advance(id);
  await add(other, journal, 5);
  await ok(complete(other, journal.update));
  const next = await startUpdate(other, journal.stack, { journal: true });
  const before = await exportText(other, journal);
  await app.context.compactor.advance(id);
  await app.context.compactor.compact(id);
  await query(app, 'delete from journal_entries where update_id = $1', [id]);
  await app.context.compactor.advance(id);
  expect(openReplays.has(id)).toBe(false);
  await ok(complete(app, next));
  expect(timeless(await exportText(app, journal))).toBe(timeless(before));
});

test('batches, compactions ahead on two replicas, exports and complete at the same time lose nothing', async () => {
  for (let round = 0; round < 4; round++) {
    const journal = await journaled();
    const { id } = journal.update;
    let isOver = false;
    const advancing = [app, other].map(async ({ context }) => {
      while (!isOver) {
        await context.compactor.advance(id);
        // It returns at once while the replay is in use, which ends only in a later tick.
        await nextTick();
      }
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

test('an entry that arrives after a later one is applied in order', async () => {
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

test('without capacity, nothing is kept and complete works as before', async () => {
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

test('a journal that does not fit is read ahead no further than it fits', async () => {
  let pages = 0;
  const counting: ReplayRunner = {
    open: async (start) => {
      const replay = await replayHere.open(start);
      return {
        ...bound(replay),
        apply: (page) => {
          pages++;
          return replay.apply(page);
        },
      };
    },
  };
  const limited = new OpenReplays({ maxBytesEach: 1_000_000 });
  await using small = await createTestApp({
    database: app.database,
    dataDir: app.dataDir,
    overrides: { openReplays: limited, largeReplays: counting },
  });
  const journal = await journaled();
  const filler = 'x'.repeat(700_000);
  for (let sequenceId = 5; sequenceId < 17; sequenceId += 2) {
    const [begin, success] = creation(sequenceId, `r${sequenceId}`, journal.stack) as [object, { state: object }];
    await ok(append(app, journal.update, [begin, { ...success, state: { ...success.state, outputs: { filler } } }]));
  }
  await small.context.compactor.advance(journal.update.id);
  expect([pages, limited.has(journal.update.id), limited.bytes]).toEqual([1, false, 0]);
  await ok(complete(small, journal.update));
  expect(await exportedNames(app, journal.stack)).toEqual(namesUpTo(15));
});

test('a large journal is compacted incrementally on its own, a small one is not', async () => {
  const [large, small] = [await journaled(), await journaled()];
  const names = Array.from({ length: 300 }, (_, at) => `n${at}`);
  await ok(
    append(
      app,
      large.update,
      names.flatMap((name, at) => creation(5 + 2 * at, name, large.stack)),
    ),
  );
  await until(() => openReplays.bytes > 0 && openReplays.has(large.update.id), 'compacted incrementally');
  expect(openReplays.has(small.update.id)).toBe(false);
  await ok(complete(app, large.update));
  await ok(complete(app, small.update));
  expect(await exportedNames(app, large.stack)).toEqual(['r1', ...names, ...baseNames]);
  await until(() => !openReplays.has(large.update.id), 'replay released');
});
