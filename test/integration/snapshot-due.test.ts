import { describe, expect, test } from '@jest/globals';
import { FaultError, UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import {
  InvalidJournalError,
  type ReplayRunner,
  replayHere,
} from '../../src/shared/state/journal/replay/runner/replay-runner.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

/** Two entries each: as many as make a snapshot due, and more than a replay in this thread applies. */
const resources = 300;

/** A runner that runs `before` before each replay that it gets. */
function runnerWith(before: () => Promise<void>): ReplayRunner {
  return {
    open: async (start) => {
      await before();
      return replayHere.open(start);
    },
  };
}

/** One batch that makes a snapshot due. */
function appendMany(app: TestApp, stack: TestStack, update: RunningUpdate) {
  const entries = Array.from({ length: resources }, (_, at) => creation(1 + 2 * at, `r${at}`, stack));
  return append(app, update, entries.flat());
}

async function countEntries(app: TestApp, update: RunningUpdate): Promise<number> {
  const [row] = await query<{ count: number }>(
    app,
    'select count(*)::integer as count from journal_entries where update_id = $1',
    [update.id],
  );
  return row?.count ?? 0;
}

describe.each([
  ['committed by the API', {}],
  ['committed by a job', { HOLDFAST_DIRECT_BYTES: '1' }],
])('a batch of entries %s', (_way, ways) => {
  const settings = {
    HOLDFAST_DIRECT_BYTES: String(64 * 1024 * 1024),
    ...ways,
    journalSnapshotEntries: 2 * resources,
  };

  test.each([
    ['refused', new FaultError('the base is damaged')],
    ['refused as unsound', new InvalidJournalError('entry 1 removes what is not there')],
    ['unavailable', new UnavailableError('the thread has ended')],
  ])('is answered 204 once it is stored, though its snapshot is %s', async (_end, error) => {
    let isBroken = true;
    const largeReplays = runnerWith(async () => {
      if (isBroken) throw error;
    });
    await using app = await createTestApp({ settings, overrides: { largeReplays } });
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    const { status, text } = await appendMany(app, stack, update);
    expect(await countEntries(app, update)).toBe(2 * resources);
    expect({ status, text }).toEqual({ status: 204, text: '' });
    isBroken = false;
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toHaveLength(resources);
  });

  test('is answered while its snapshot is being created', async () => {
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    const largeReplays = runnerWith(() => {
      begun++;
      return gate.promise;
    });
    await using app = await createTestApp({ settings, overrides: { largeReplays } });
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    let isAnswered = false;
    const batch = ok(appendMany(app, stack, update)).then(() => {
      isAnswered = true;
    });
    await until(() => begun === 1, 'the snapshot is started');
    try {
      await until(() => isAnswered, 'the answer');
    } finally {
      gate.resolve();
      await batch;
    }
    const points = () => query(app, 'select from journal_snapshots where update_id = $1', [update.id]);
    await until(async () => (await points()).length === 1, 'the snapshot is stored');
    await ok(complete(app, update));
  });
});
