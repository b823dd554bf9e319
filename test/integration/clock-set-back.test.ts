import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createBlobHoldRepository } from '../../src/shared/backup/blob-hold-repository.ts';
import { createBundleRepository } from '../../src/shared/bundle/bundle-repository.ts';
import { createSignInPaceRepository } from '../../src/shared/identity/sign-in-pace-repository.ts';
import { createCopyQueueRepository } from '../../src/shared/platform/blobs/second/copy-queue-repository.ts';
import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { createDueIndexRepository } from '../../src/shared/search/due-index-repository.ts';
import { clipWaits } from '../../src/workers/clip-waits.ts';
import { indexDue } from '../../src/workers/search/index-states.ts';
import { query } from '../support/database.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId, stateOf } from '../support/state-index.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook, deliverDue } from '../support/webhooks.ts';

let receiver: Receiver;
let app: TestApp;
beforeAll(async () => {
  receiver = await Receiver.start();
  app = await createTestApp({ overrides: { outgoing: receiver.outgoing() } });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

const sweep = () => clipWaits(app.context, new AbortController().signal);
const indexAll = () => indexDue(app.context, { delaySeconds: 0, backlog: new BytePace(1e9) });

async function up(stack: TestStack): Promise<void> {
  const update = await startUpdate(app, stack);
  const body = stateOf(stack, [{ name: 'bucket' }]);
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body }));
  await ok(complete(app, update));
}

/** As if the clock of Postgres had been two hours ahead until now. */
const setBack = (table: string, ...columns: string[]) =>
  query(app, `update ${table} set ${columns.map((column) => `${column} = ${column} + interval '2 hours'`).join(', ')}`);

test('events are delivered, in their order', async () => {
  const stack = await createStack(app);
  await createHook(app, stack, 'organization', { name: 'all', payloadUrl: `${receiver.url}/all` });
  receiver.answer = () => 200;
  await up(stack);
  await setBack('webhook_events', 'occurred_at');
  await setBack('webhook_deliveries', 'next_at');
  expect(await deliverDue(app)).toBe(0);
  await sweep();
  expect(await deliverDue(app)).toBe(2);
  expect(receiver.bodies.map(({ type }) => type)).toEqual(['update_started', 'update_succeeded']);
});

test('claims and retries of deliveries end after their longest time', async () => {
  await query(app, 'delete from webhooks');
  const stack = await createStack(app);
  await createHook(app, stack, 'organization', { name: 'failing', payloadUrl: `${receiver.url}/failing` });
  receiver.answer = () => 500;
  await up(stack);
  expect(await deliverDue(app)).toBe(2);
  await query(
    app,
    `update webhook_deliveries set next_at = now() + interval '11 hours', claimed_until = now() + interval '11 hours' where state = 'waiting'`,
  );
  await sweep();
  const [row] = await query(
    app,
    `select count(*)::integer, bool_and(next_at <= now() and claimed_until <= now() + interval '1 minute') as clipped
     from webhook_deliveries where state = 'waiting'`,
  );
  expect(row).toEqual({ count: 2, clipped: true });
  // The longest valid retry keeps its time.
  await query(
    app,
    `update webhook_deliveries set next_at = now() + interval '9 hours 30 minutes', claimed_until = null`,
  );
  expect(await sweep()).toBe(0);
});

test('stacks are indexed, and until then a rule about consumers refuses, and the lag is not negative', async () => {
  const stack = await createStack(app);
  await up(stack);
  await indexAll();
  const { auth, organization } = stack;
  await ok(app.call('POST', `/api/stacks/${organization}/apps`, { auth, body: { stackName: 'shop' } }));
  await up({ ...stack, project: 'apps', stack: 'shop', path: `/api/stacks/${organization}/apps/shop` });
  await setRule(app, stack, { kind: 'consumers', settings: { mode: 'refuse' } });
  await setBack('state_index_due', 'noted_at');
  const remove = () => app.call('DELETE', `${stack.path}?force=true`, { auth });
  expect((await remove()).json.message).toContain('is not indexed yet');
  const [{ id } = { id: '' }] = await query<{ id: string }>(app, 'select id from organizations where name = $1', [
    organization,
  ]);
  expect(await createDueIndexRepository(app.context.db).readLag([{ id, name: organization, facts: null }])).toEqual({
    stacks: 1,
    oldestSeconds: 0,
  });
  expect(await indexAll()).toBe(0);
  // Due by now, but not indexed.
  const removing = remove();
  await sweep();
  expect((await removing).json.message).toContain('is not indexed yet');
  expect(await indexAll()).toBe(1);
  expect((await remove()).status).toBe(204);
}, 120_000);

test('a claim of a stack to be indexed ends after the longest one', async () => {
  const stack = await createStack(app);
  await up(stack);
  await query(app, `update state_index_due set claimed_until = now() + interval '2 hours', failures = 3`);
  await sweep();
  const [row] = await query(
    app,
    `select max(claimed_until) <= now() + interval '1 hour' as clipped from state_index_due`,
  );
  expect(row).toEqual({ clipped: true });
  await query(app, 'delete from state_index_due');
});

test('a killed backup holds blobs no longer, and copies are made', async () => {
  const holds = createBlobHoldRepository(app.context.db);
  await holds.insert(300, 86_400);
  await setBack('blob_holds', 'held_until', 'ends_at');
  await createCopyQueueRepository(app.context.db).addPostponed('checkpoints/aa/late');
  await setBack('blob_copies_due', 'try_at');
  await sweep();
  expect(await query(app, `select 1 from blob_holds where held_until > now() + interval '5 minutes'`)).toEqual([]);
  expect(await createCopyQueueRepository(app.context.db).listDue(1)).toHaveLength(1);
  await query(app, 'delete from blob_copies_due');
});

test('a stack that could not be bundled is tried again', async () => {
  const stack = await createStack(app);
  await up(stack);
  const rows = createBundleRepository(app.context.db);
  const id = await stackId(app, stack);
  const isDue = async () => (await rows.listDue(1000)).some((due) => due.stackId === id);
  await rows.postpone(stack, { stackId: id, changedAt: null, error: 'no space' });
  expect(await isDue()).toBe(false);
  await setBack('bundled_stacks', 'postponed_until');
  expect(await isDue()).toBe(true);
});

test('a login gets its next attempt, and no longer pauses', async () => {
  const paces = createSignInPaceRepository(app.context.db);
  expect(await paces.take('ann')).toBe(0);
  await setBack('sign_in_paces', 'at', 'next_at');
  expect(await paces.take('ann')).toBe(0);
  const [row] = await query(app, `select level, next_at <= now() as free from sign_in_paces where login_hash = 'ann'`);
  expect(row).toEqual({ level: 2, free: true });
});
