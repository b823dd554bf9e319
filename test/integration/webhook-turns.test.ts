import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { DeliveryLoop } from '../../src/shared/webhooks/delivery-loop.ts';
import { createDeliveryRepository } from '../../src/shared/webhooks/delivery-repository.ts';
import { createWebhookEventRepository } from '../../src/shared/webhooks/webhook-event-repository.ts';
import { explainingPool } from '../../testkit/query-plan.ts';
import { query } from '../support/database.ts';
import { Receiver } from '../support/receiver.ts';
import { createStack, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { createHook } from '../support/webhooks.ts';

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
beforeEach(async () => {
  await query(app, 'delete from webhooks');
  await query(app, 'delete from webhook_events');
  receiver.received.length = 0;
});

const addHook = (stack: TestStack, name: string, path: string) =>
  createHook(app, stack, 'organization', { name, displayName: name, payloadUrl: `${receiver.url}${path}` });

async function addSlowHooks(stack: TestStack): Promise<void> {
  for (let at = 0; at < 10; at++) await addHook(stack, `slow${at}`, '/slow');
}

const notify = (stack: TestStack, times: number) =>
  query(
    app,
    `select notify_webhooks(o.id, null, null, 'stack_created', 'stacks', '{}') from organizations o, generate_series(1, $2) where o.name = $1`,
    [stack.organization, times],
  );

/** Begins as many attempts as one worker may at once, and returns how many `/fast` got. No other path responds. */
async function deliverOnce(): Promise<number> {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  receiver.answer = async ({ path }) => {
    if (path !== '/fast') await gate;
    return 200;
  };
  const worker = new DeliveryLoop(app.context, 'all');
  try {
    const begun = await worker.begin(new AbortController().signal);
    await until(() => receiver.received.length === begun, 'all attempts arrive');
    return receiver.received.filter(({ path }) => path === '/fast').length;
  } finally {
    open();
    await worker.settle();
  }
}

test('slow receivers of one organization do not keep others from theirs, however many they are', async () => {
  const [busy, other] = [await createStack(app), await createStack(app)];
  await addSlowHooks(busy);
  await addHook(other, 'fast', '/fast');
  await notify(busy, 8);
  await notify(other, 2);
  expect(await deliverOnce()).toBe(2);
});

test('many slow webhooks of an organization do not keep its newest one from its events', async () => {
  const stack = await createStack(app);
  await addSlowHooks(stack);
  await notify(stack, 8);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 1);
  expect(await deliverOnce()).toBe(1);
});

test('an organization that has many claims already waits for others', async () => {
  const [busy, other] = [await createStack(app), await createStack(app)];
  await addSlowHooks(busy);
  await addHook(other, 'fast', '/fast');
  await notify(busy, 8);
  await query(
    app,
    `update webhook_deliveries d set claimed_until = now() + interval '1 hour'
     where number in (select min(number) from webhook_deliveries group by webhook_id)`,
  );
  await notify(other, 9);
  expect(await deliverOnce()).toBe(4);
});

/** The deliveries in order of `next_at`, one second apart, with falling ids. */
const order = () =>
  query(
    app,
    `update webhook_deliveries d set id = ('00000000-0000-4000-8000-' || lpad(to_hex(1000 - o.at), 12, '0'))::uuid,
       next_at = now() - interval '1 hour' + make_interval(secs => o.at)
     from (select id, row_number() over (order by number) as at from webhook_deliveries) o where o.id = d.id`,
  );
const claim = (limit = 32) =>
  app.context.db.inTransaction((tx) => createDeliveryRepository(tx).claim({ limit, seconds: 60, share: 'all' }));

test('the deliveries of a webhook that are due first are claimed first', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 40);
  await order();
  const rows = await query<{ id: string }>(app, 'select id from webhook_deliveries order by next_at limit 4');
  expect((await claim()).map(({ id }) => id).toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
});

/** Adds 5,000 webhooks that nothing is sent to yet. */
const addIdleHooks = (stack: TestStack) =>
  query(
    app,
    `insert into webhooks (organization_id, name, display_name, url, format, is_active, events, event_groups)
     select id, 'idle' || n, 'idle' || n, 'https://idle.example', 'raw', true, '{}', '{}' from organizations, generate_series(1, 5000) n
     where name = $1`,
    [stack.organization],
  );

/** The pages that a claim touches. */
async function pagesOfClaim(): Promise<number | undefined> {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    for (const table of ['webhooks', 'webhook_deliveries', 'webhook_events'])
      await client.query(`vacuum analyze ${table}`);
    const { pool, statements } = explainingPool(client);
    await client.query('begin');
    const claiming = { ...(pool as Queryable), exists: async () => true } as Queryable;
    await createDeliveryRepository(claiming).claim({ limit: 32, seconds: 60, share: 'all' });
    await client.query('rollback');
    return statements.find(({ name }) => name === 'webhookDeliveries.claim')?.pages;
  } finally {
    await client.end();
  }
}

test('a claim does not look at webhooks for which nothing waits', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 3);
  await addIdleHooks(stack);
  expect(await pagesOfClaim()).toBeLessThan(300);
  expect(await claim()).toHaveLength(3);
});

test('a claim reads no webhooks whose next attempt is later', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await addIdleHooks(stack);
  await notify(stack, 1);
  await query(
    app,
    `update webhook_deliveries set next_at = now() + interval '1 hour'
     where webhook_id <> (select id from webhooks where name = 'fast')`,
  );
  // One descent of an index for each.
  expect(await pagesOfClaim()).toBeLessThan(5_000 * 4);
  expect(await claim()).toHaveLength(1);
});

test('a claim does not wait for another one', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 1);
  await app.context.db.inTransaction(async (tx) => {
    expect(await createDeliveryRepository(tx).claim({ limit: 1, seconds: 0, share: 'all' })).toHaveLength(1);
    expect(await claim()).toEqual([]);
  });
  expect(await claim()).toHaveLength(1);
});

test('while all that is due is being attempted, nothing else is looked for', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 2);
  const deliveries = createDeliveryRepository(app.context.db);
  expect(await deliveries.isAnyDue()).toBe(true);
  expect(await claim()).toHaveLength(2);
  expect(await deliveries.isAnyDue()).toBe(false);
});

test('what waits behind the limit of its own webhook is not overdue', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'slow', '/slow');
  await notify(stack, 24);
  await order();
  const deliveries = createDeliveryRepository(app.context.db);
  expect((await deliveries.countDue()).seconds).toBeGreaterThan(3_000);
  expect(await claim()).toHaveLength(4);
  expect(await deliveries.countDue()).toMatchObject({ count: 24, seconds: 0 });
  await addHook(stack, 'other', '/other');
  await notify(stack, 1);
  expect((await deliveries.countDue()).seconds).toBeGreaterThan(0);
});

test('many deliveries of one slow webhook do not hide what stands still', async () => {
  const [busy, other] = [await createStack(app), await createStack(app)];
  await addHook(busy, 'slow', '/slow');
  await notify(busy, 1);
  await query(
    app,
    `insert into webhook_deliveries (webhook_id, event_id, next_at)
     select webhook_id, event_id, next_at - interval '1 hour' from webhook_deliveries, generate_series(1, 10000)`,
  );
  expect(await claim()).toHaveLength(4);
  const deliveries = createDeliveryRepository(app.context.db);
  expect(await deliveries.countDue()).toMatchObject({ count: 10_000, seconds: 0 });
  await addHook(other, 'other', '/other');
  await notify(other, 1);
  await query(
    app,
    `update webhook_deliveries set next_at = now() - interval '10 minutes'
     where webhook_id = (select id from webhooks where name = 'other')`,
  );
  expect((await deliveries.countDue()).seconds).toBeGreaterThan(500);
});

test('a fast receiver gets its next events once it has answered, not with the next poll', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 40);
  receiver.answer = () => 200;
  const worker = new DeliveryLoop(app.context, 'all');
  await worker.deliver(new AbortController().signal, () => false);
  await worker.settle();
  // A claim takes four of one webhook.
  expect(receiver.received.length).toBeGreaterThan(4);
});

test('a site that another one has replaced begins no more attempts', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 12);
  receiver.answer = () => 200;
  const worker = new DeliveryLoop(app.context, 'all');
  let asked = 0;
  await worker.deliver(new AbortController().signal, () => ++asked > 1);
  await worker.settle();
  // Those of the one round before.
  expect(receiver.received).toHaveLength(4);
});

test('what is sent about an event is what the first process has read', async () => {
  const stack = await createStack(app);
  await addHook(stack, 'fast', '/fast');
  await notify(stack, 1);
  const [event] = await query<{ id: string }>(app, 'select id from webhook_events');
  const events = createWebhookEventRepository(app.context.db);
  expect(await events.keepFacts(event?.id as string, 'first')).toBe('first');
  expect(await events.keepFacts(event?.id as string, 'second')).toBe('first');
});
