import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { evaluateDrift } from '../../src/workers/drift/evaluate-drift.ts';
import { pack } from '../support/archived-events.ts';
import { query } from '../support/database.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { complete, saveState } from '../support/update-calls.ts';
import { createHook, deliverDue } from '../support/webhooks.ts';

let receiver: Receiver;
let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  receiver = await Receiver.start();
  app = await createTestApp({ overrides: { outgoing: receiver.outgoing() } });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(async () => {
  receiver.received.length = 0;
  stack = await createStack(app);
});

interface Run {
  readonly kind?: string;
  readonly dryRun?: boolean;
  /** Counts of the summary. */
  readonly changes?: object;
  /** Metadata of outputs of resources. */
  readonly outputs?: readonly object[];
  readonly flags?: object;
  readonly status?: string;
}

/** A run of the CLI with its events. */
async function run({
  changes = {},
  dryRun = true,
  flags = {},
  kind = 'refresh',
  outputs = [],
  status,
}: Run): Promise<string> {
  const body = { options: { dryRun }, metadata: { message: '', environment: flags } };
  const { json } = await ok(app.call('POST', `${stack.path}/${kind}`, { auth: stack.auth, body }));
  const path = `${stack.path}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth: stack.auth, body: {} }));
  const lease = `update-token ${started.json.token}`;
  const events = [
    ...outputs.map((metadata) => ({ resOutputsEvent: { metadata } })),
    { summaryEvent: { resourceChanges: changes } },
  ].map((event, sequence) => ({ sequence, timestamp: 0, ...event }));
  await ok(app.call('POST', `${path}/events/batch`, { auth: lease, body: { events } }));
  await ok(complete(app, { id: json.updateID, path, lease, version: 0 }, status));
  return json.updateID;
}

const evaluate = () => evaluateDrift(app.context, new AbortController().signal);
const read = async (path: string) =>
  (await ok(app.call('GET', `${stack.path}/drift/${path}`, { auth: stack.auth }))).json;
const notified = async () => {
  await deliverDue(app);
  return receiver.bodies.map(({ details }) => details.changes);
};

test('the result of a refresh counts, until an update has repaired the stack', async () => {
  await createHook(app, stack, 'stack', { payloadUrl: receiver.url, filters: ['drift_detected'] });
  expect(await read('status')).toEqual({ driftDetected: false, latestDriftRun: '', runInProgress: false });
  const clean = await run({ changes: { same: 3 } });
  await evaluate();
  expect(await read('status')).toEqual({ driftDetected: false, latestDriftRun: clean, runInProgress: false });
  const drifted = await run({ changes: { same: 1, update: 1, delete: 2 } });
  // Until a worker has looked at it, it runs.
  expect((await read('runs')).driftRuns[0]).toMatchObject({ id: drifted, status: 'running' });
  await evaluate();
  expect(await read('status')).toEqual({ driftDetected: true, latestDriftRun: drifted, runInProgress: false });
  expect(await app.context.metrics.registry.metrics()).toMatch(/holdfast_stacks_drifted\{state="drifted"\} 1/);
  // Looked at again, and found again: no news.
  await evaluate();
  await run({ changes: { update: 1, delete: 2 } });
  await evaluate();
  expect(await notified()).toEqual([{ delete: 2, update: 1 }]);
  await run({ changes: { update: 2 } });
  await evaluate();
  expect(await notified()).toHaveLength(2);
  const up = await run({ kind: 'update', dryRun: false, changes: { update: 3 } });
  expect((await read('status')).driftDetected).toBe(false);
  const { driftRuns, itemsPerPage, total } = await read('runs?page=1&pageSize=2');
  expect([driftRuns.length, itemsPerPage, total]).toEqual([2, 2, 4]);
  expect(driftRuns[0]).toMatchObject({
    driftDetected: true,
    status: 'succeeded',
    detectUpdate: { resourceChanges: { update: 2 }, status: 'succeeded' },
    remediateUpdate: { updateId: up, status: 'succeeded' },
  });
  expect((await read('runs?page=2&pageSize=2')).driftRuns.map(({ id }: { id: string }) => id)).toEqual([
    drifted,
    clean,
  ]);
  // The same drift once more, after it was repaired.
  await run({ changes: { update: 2 } });
  await evaluate();
  expect(await notified()).toHaveLength(3);
});

test('an update with --refresh counts by the findings of its steps; one without has compared nothing', async () => {
  const state = { type: 't', urn: 'u' };
  const refreshed = [
    { op: 'refresh', urn: 'a', old: state, new: state, diffs: ['value'] },
    { op: 'refresh', urn: 'b', old: state, new: null },
    { op: 'refresh', urn: 'c', old: state, new: state },
    { op: 'update', urn: 'a', old: state, new: state, diffs: ['value'] },
  ];
  const flags = { 'pulumi.flag.refresh': 'set' };
  const preview = await run({ kind: 'preview', outputs: refreshed, flags });
  await run({ kind: 'update', dryRun: false, outputs: refreshed.slice(3) });
  await run({ kind: 'preview', outputs: refreshed.slice(3), flags });
  await evaluate();
  const { driftRuns } = await read('runs');
  expect(driftRuns).toMatchObject([
    { id: preview, driftDetected: true, detectUpdate: { resourceChanges: { delete: 1, update: 1 } } },
  ]);
  const up = await run({ kind: 'update', dryRun: false, outputs: refreshed, flags });
  await evaluate();
  // It has found drift, and repaired it.
  expect((await read('runs')).driftRuns[0]).toMatchObject({
    id: up,
    driftDetected: true,
    remediateUpdate: { updateId: up },
  });
  expect((await read('status')).driftDetected).toBe(false);
});

test('a refresh without a summary, or of some resources, does not end drift that others have found', async () => {
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  const drifted = await run({ changes: { same: 1, update: 1 } });
  await evaluate();
  const status = { driftDetected: true, latestDriftRun: drifted, runInProgress: false };
  expect(await read('status')).toEqual(status);
  await run({ changes: {} });
  const target = { 'pulumi.flag.target': 'set' };
  await run({ changes: { same: 1 }, flags: target });
  await run({ changes: { same: 1 }, flags: { 'pulumi.flag.exclude': 'set' } });
  const refreshed = { op: 'refresh', urn: 'c', old: {}, new: {} };
  for (const partial of [target, { 'pulumi.flag.target-replace': 'set' }, { 'pulumi.flag.exclude-protected': 'true' }])
    await run({ kind: 'preview', outputs: [refreshed], flags: { ...partial, 'pulumi.flag.refresh': 'true' } });
  await evaluate();
  expect(await read('status')).toEqual(status);
  const more = await run({ changes: { update: 2 }, flags: target });
  await evaluate();
  expect(await read('status')).toEqual({ ...status, latestDriftRun: more });
  const clean = await run({ changes: { same: 3 } });
  await evaluate();
  expect(await read('status')).toEqual({ ...status, driftDetected: false, latestDriftRun: clean });
});

test('archived events count, too', async () => {
  const flags = { 'pulumi.flag.refresh': 'true' };
  const id = await run({ kind: 'preview', outputs: [{ op: 'refresh', urn: 'a', old: {}, new: null }], flags });
  expect(await pack(app, id)).toBe(true);
  await evaluate();
  expect((await read('status')).driftDetected).toBe(true);
});

test('a failed run yields no result', async () => {
  await run({ changes: { delete: 5 }, status: 'failed' });
  await evaluate();
  expect((await read('runs')).driftRuns).toMatchObject([{ driftDetected: false, status: 'failed' }]);
  expect(await read('status')).toEqual({ driftDetected: false, latestDriftRun: '', runInProgress: false });
});

test('drift is notified if and only if it is recorded, once by any number of workers', async () => {
  await createHook(app, stack, 'stack', { payloadUrl: receiver.url, filters: ['drift_detected'] });
  await run({ changes: { delete: 1 } });
  await query(app, `alter table webhook_events add constraint refused check (event <> 'drift_detected') not valid`);
  expect(await evaluate()).toBe(0);
  expect((await read('status')).driftDetected).toBe(false);
  await query(app, 'alter table webhook_events drop constraint refused');
  await Promise.all([evaluate(), evaluate(), evaluate()]);
  expect((await read('status')).driftDetected).toBe(true);
  expect(await notified()).toEqual([{ delete: 1 }]);
});

test('differences that a refresh found beside an update do not count', async () => {
  const clean = await run({ changes: { same: 3 } });
  const before = await startUpdate(app, stack);
  await run({ changes: { update: 1 } });
  await run({ changes: { delete: 1 }, flags: { 'pulumi.flag.refresh': 'true' } });
  await ok(complete(app, before));
  await evaluate();
  expect(await read('status')).toMatchObject({ driftDetected: false, latestDriftRun: clean });
  const drifted = await run({ changes: { update: 1 } });
  await ok(complete(app, await startUpdate(app, stack), 'failed'));
  await evaluate();
  expect(await read('status')).toMatchObject({ driftDetected: true, latestDriftRun: drifted });
  // One that begins while the run goes on.
  const late = await run({ changes: { update: 2 } });
  await ok(complete(app, await startUpdate(app, stack), 'failed'));
  await query(app, `update updates set ended_at = ended_at + interval '1 minute' where id = $1`, [late]);
  await evaluate();
  expect(await read('status')).toMatchObject({ driftDetected: true, latestDriftRun: drifted });
  await ok(complete(app, await startUpdate(app, stack)));
});

/** Makes the run 60 more, with the same result. */
const repeat = (id: string) =>
  query(
    app,
    `with copied as (
       insert into updates (stack_id, kind, exclusive, status, expires_at, ended_at, dry_run, resource_changes)
       select stack_id, kind, false, 'succeeded', now(), now(), true, resource_changes from updates, generate_series(1, 60) where id = $1
       returning id, stack_id, number
     ), segments as (
       insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec,
         inline_bytes)
       select c.id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec, inline_bytes
       from copied c, event_segments where update_id = $1
     )
     insert into drift_runs (update_id, stack_id, number, state) select id, stack_id, number, 'waiting' from copied`,
    [id],
  );

test('one call evaluates all runs, however many before them cannot be read', async () => {
  const flags = { 'pulumi.flag.refresh': 'true' };
  const damaged = await run({ kind: 'preview', outputs: [{ op: 'refresh', urn: 'a', old: {}, new: null }], flags });
  expect(await pack(app, damaged)).toBe(true);
  await query(app, `update event_segments set inline_bytes = '\\x00', blob_key = null where update_id = $1`, [damaged]);
  await repeat(damaged);
  const drifted = await run({ changes: { delete: 1 } });
  await repeat(drifted);
  expect(await evaluate()).toBe(61);
  const counts = 'select state, count(*)::int as count from drift_runs where stack_id = $1 group by 1 order by 1';
  expect(await query(app, counts, [await stackId(app, stack)])).toEqual([
    { state: 'done', count: 61 },
    { state: 'waiting', count: 61 },
  ]);
  await query(app, 'delete from drift_runs');
});

test('the runs of a deleted stack go with it', async () => {
  await run({ changes: { delete: 1 } });
  await evaluate();
  await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
  await query(app, 'delete from updates where stack_id in (select id from stacks where deleted_at is not null)');
  expect(
    await query(app, 'select 1 from drift_runs r join stacks s on s.id = r.stack_id where s.deleted_at is not null'),
  ).toEqual([]);
});
