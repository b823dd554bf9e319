import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { WebhookDispatcher } from '../../src/shared/webhooks/webhook-dispatcher.ts';
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
  const worker = new WebhookDispatcher(app.context, 'all');
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
