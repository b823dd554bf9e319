import { expect, test } from '@jest/globals';
import { lockUpdate } from '../../src/shared/updates/cancel-or-expire.ts';
import { holdInserts, query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

const app = testApp();

const eventBatch = (sequence: number, event: object = { stdoutEvent: { message: 'x', color: 'raw' } }) => ({
  events: [{ sequence, timestamp: 1, ...event }],
});

const sendEvents = (update: { path: string; lease: string }, batch: object) =>
  app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: batch });

interface Counts extends Record<string, unknown> {
  updated: number;
  hot: number;
}

/** Row versions created by updates of a table so far, and how many of them touched no index. */
async function countUpdates(table: string): Promise<Counts> {
  const [row] = await query<Counts>(
    app,
    `select n_tup_upd::integer as updated, n_tup_hot_upd::integer as hot from pg_stat_user_tables where relname = $1`,
    [table],
  );
  return row as Counts;
}

test('a batch of entries updates no index and not the row of its update', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const [journalsBefore, updatesBefore] = [await countUpdates('journals'), await countUpdates('updates')];
  const batches = 60;
  for (let at = 0; at < batches; at++) await ok(append(app, update, creation(at * 2 + 1, `r${at}`, stack)));
  // Postgres reports its statistics with a delay.
  let journals = await countUpdates('journals');
  await until(async () => {
    journals = await countUpdates('journals');
    return journals.updated - journalsBefore.updated >= batches;
  }, 'the statistics are reported');
  // A full page causes an exception now and then.
  expect(journals.hot - journalsBefore.hot).toBeGreaterThan(batches * 0.8);
  expect((await countUpdates('updates')).updated - updatesBefore.updated).toBeLessThan(batches / 2);
  await ok(complete(app, update));
});

test('events do not wait for journal entries, nor entries for events', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'first', stack)));
  {
    await using gate = await holdInserts(app, 'journal_entries');
    const held = append(app, update, creation(3, 'second', stack));
    await gate.reached(1);
    await ok(sendEvents(update, eventBatch(0)));
    await gate.release();
    await ok(held);
  }
  {
    await using gate = await holdInserts(app, 'engine_events');
    const held = sendEvents(update, eventBatch(1));
    await gate.reached(1);
    await ok(append(app, update, creation(5, 'third', stack)));
    await gate.release();
    await ok(held);
  }
  await ok(complete(app, update));
  expect(await exportedNames(app, stack)).toEqual(['first', 'second', 'third']);
});

test('new updates and previews of the stack do not wait for journal entries of the running one', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const { auth, path } = stack;
  await using gate = await holdInserts(app, 'journal_entries');
  const held = append(app, update, creation(1, 'r', stack));
  await gate.reached(1);
  // A wait of theirs for the batch would also hold up later batches.
  await startUpdate(app, stack, { kind: 'preview' });
  await ok(app.call('PATCH', `${path}/tags`, { auth, body: { 'lock-wait': '0' } }));
  for (const call of ['update', 'destroy', 'import'])
    expect(
      (await app.call('POST', `${path}/${call}`, { auth, body: call === 'import' ? deployment(1) : {} })).status,
    ).toBe(409);
  await gate.release();
  await ok(held);
  await ok(complete(app, update));
});

test('ending an update waits for the accepted batches and includes their entries', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await using gate = await holdInserts(app, 'journal_entries');
  const held = append(app, update, creation(1, 'late', stack));
  await gate.reached(1);
  const locked = app.context.db.inTransaction((tx) => lockUpdate(tx, update.id));
  await gate.reached(2);
  await gate.release();
  await ok(held);
  expect((await locked)?.update).toMatchObject({ entryCount: 2, hasPendingEntries: true });
  await ok(complete(app, update));
  expect(await exportedNames(app, stack)).toEqual(['late']);
});

test('batches of events with a summary do not block each other', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  const summary = { summaryEvent: { resourceChanges: { create: 1 } } };
  await Promise.all(
    Array.from({ length: 40 }, async (_, at) => ok(sendEvents(update, eventBatch(at, at % 2 ? summary : undefined)))),
  );
  const [row] = await query(app, 'select resource_changes from updates where id = $1', [update.id]);
  expect(row).toEqual({ resource_changes: '{"create":1}' });
});
