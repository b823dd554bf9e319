import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

type End = (on: TestApp, stack: TestStack, update: RunningUpdate) => Promise<unknown>;

const ends: Record<string, End> = {
  cancelled: (on, stack, update) => ok(cancel(on, stack, update)),
  completed: (on, _, update) => ok(complete(on, update)),
  expired: (on, _, update) => query(on, 'update updates set expires_at = now() where id = $1', [update.id]),
};

/** Locks the update's row until `work` releases it; `waiting` waits until that many sessions are blocked on it. */
async function whileRowIsHeld(
  app: TestApp,
  update: RunningUpdate,
  work: (waiting: (sessions: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const holder = new pg.Client({ connectionString: app.database.ownerUrl });
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query('select 1 from updates where id = $1 for update', [update.id]);
    await work((sessions) =>
      until(async () => {
        const statement = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
        return (await query(app, statement)).length === sessions;
      }, `${sessions} sessions in line`),
    );
  } finally {
    await holder.query('commit');
    await holder.end();
  }
}

describe.each([
  ['commits itself', {}],
  ['leaves to a job', { HOLDFAST_DIRECT_BYTES: '1' }],
])('a batch that the API %s', (_, settings) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ settings });
  });
  afterAll(() => app[Symbol.asyncDispose]());

  test.each(Object.entries(ends))('adds nothing when its update is %s before the commit: 403', async (_how, end) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(1, 'kept', stack)));
    // So that complete has nothing left to compact and ends the update in its first transaction.
    await app.context.compactor.compact(update.id);
    const inLine: Promise<unknown>[] = [];
    let late: ReturnType<typeof append> | undefined;
    await whileRowIsHeld(app, update, async (waiting) => {
      inLine.push(end(app, stack, update));
      await waiting(1);
      late = append(app, update, creation(3, 'late', stack));
      await waiting(2);
    });
    await Promise.all(inLine);
    expect((await late)?.status).toBe(403);
    expect(await exportedNames(app, stack)).toEqual(['kept']);
    const entries = await query(app, 'select 1 from journal_entries where update_id = $1 and sequence_id >= 3', [
      update.id,
    ]);
    expect(entries).toEqual([]);
  });
});
