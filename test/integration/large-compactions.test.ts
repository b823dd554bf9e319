import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { OpenReplays } from '../../src/shared/state/journal/incremental/open-replays.ts';
import { type ReplayRunner, replayHere } from '../../src/shared/state/journal/replay/runner/replay-runner.ts';
import type { ReplayStart } from '../../src/shared/state/journal/replay/runner/replay-work.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

/** Records the work that it gets. */
function watched(before: () => void = () => {}): ReplayRunner & { starts: ReplayStart[] } {
  const starts: ReplayStart[] = [];
  return {
    starts,
    open: async (start) => {
      starts.push(start);
      before();
      return replayHere.open(start);
    },
  };
}

/** `from` and `to` number the resources, `begun` is the first resource of the update, whose entries count from 1. */
async function appendResources(
  app: TestApp,
  stack: TestStack,
  update: RunningUpdate,
  from: number,
  to: number,
  begun = 0,
): Promise<void> {
  const size = 500;
  for (let first = from; first < to; first += size) {
    const batch = Array.from({ length: Math.min(size, to - first) }, (_, at) =>
      creation(1 + 2 * (first + at - begun), `r${first + at}`, stack),
    );
    await ok(append(app, update, batch.flat()));
  }
}

test('only large compactions are left to the runner, and its failures are retried', async () => {
  let faults = 0;
  const runner = watched(() => {
    if (faults++ === 0) throw new UnavailableError('the thread has ended');
  });
  await using app = await createTestApp({ overrides: { largeReplays: runner } });
  const stack = await createStack(app);
  const small = await startUpdate(app, stack, { journal: true });
  await appendResources(app, stack, small, 0, 200);
  await ok(complete(app, small));
  expect(runner.starts).toHaveLength(0);
  const large = await startUpdate(app, stack, { journal: true });
  await appendResources(app, stack, large, 200, 700, 200);
  await ok(complete(app, large));
  expect(runner.starts.length).toBeGreaterThanOrEqual(2);
  expect(new Set(await exportedNames(app, stack)).size).toBe(700);
});

test('a compaction continues from the last snapshot', async () => {
  const runner = watched();
  // As on a worker that keeps no replay of the update.
  const openReplays = new OpenReplays({ maxBytes: 0 });
  await using app = await createTestApp({ overrides: { largeReplays: runner, openReplays } });
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const points = () =>
    query<{ entries: number }>(app, 'select entries from journal_snapshots where update_id = $1', [update.id]);
  await appendResources(app, stack, update, 0, 2_400);
  expect(await points()).toEqual([]);
  await appendResources(app, stack, update, 2_400, 2_600);
  await until(async () => (await points()).length === 1, 'a snapshot');
  await appendResources(app, stack, update, 2_600, 2_700);
  const [point] = await points();
  await ok(complete(app, update));
  expect(runner.starts.at(-1)?.snapshot?.entries).toBe(point?.entries);
  expect(await exportedNames(app, stack)).toEqual(Array.from({ length: 2_700 }, (_, at) => `r${at}`));
});

test('an invalid snapshot costs only time', async () => {
  await using app = await createTestApp();
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await appendResources(app, stack, update, 0, 600);
  const point = await app.context.documents.saveEncoded({
    sha256: Buffer.alloc(32),
    sizeBytes: 5,
    bytes: Buffer.from('KLUv/SAFKQAAaGVsbG8=', 'base64'),
  });
  await query(
    app,
    `insert into journal_snapshots (update_id, entries, sha256, size_bytes, codec, inline_bytes)
     values ($1, 700, $3, 5, 'zstd', $2)`,
    [update.id, point.inlineBytes, createHash('sha256').update('hello').digest()],
  );
  await ok(complete(app, update));
  expect(await exportedNames(app, stack)).toHaveLength(600);
});

test('entries of any size and script arrive complete', async () => {
  await using app = await createTestApp();
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const names = ['plain', 'ümläut 漢字 😀', 'x'.repeat(3_000_000), '\u2028', 'y'.repeat(1_500_000), 'end'];
  for (const [at, name] of names.entries()) await ok(append(app, update, creation(1 + 2 * at, name, stack)));
  await ok(complete(app, update));
  expect(await exportedNames(app, stack)).toEqual(names);
});
