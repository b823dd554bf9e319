import { DeliveryLoop } from '../../src/shared/webhooks/delivery-loop.ts';
import { query } from './database.ts';
import { ok, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';

/** Creates a webhook of the stack, or of its organization, and returns its path. */
export async function createHook(
  app: TestApp,
  stack: TestStack,
  scope: 'stack' | 'organization',
  hook: object,
): Promise<string> {
  const hooks = `${scope === 'stack' ? stack.path : `/api/orgs/${stack.organization}`}/hooks`;
  const { json } = await ok(
    app.call('POST', hooks, { auth: stack.auth, body: { displayName: 'chat', active: true, ...hook } }),
  );
  return `${hooks}/${json.name}`;
}

/** Makes the attempts that are due, as a worker does. Returns how many. */
export async function deliverDue(app: TestApp): Promise<number> {
  const delivery = new DeliveryLoop(app.context, 'all');
  let made = 0;
  for (let begun = -1; begun !== 0; made += begun) {
    begun = await delivery.begin(new AbortController().signal);
    await delivery.settle();
  }
  return made;
}

/** Also ends the claims of processes that died. */
export async function endPauses(app: TestApp): Promise<void> {
  await query(app, 'update webhook_deliveries set next_at = now(), claimed_until = null');
}

/** The log of a webhook, as the CLI reads it. */
export async function readLog(app: TestApp, stack: TestStack, hook: string): Promise<TestResponse['json']> {
  return (await ok(app.call('GET', `${hook}/deliveries`, { auth: stack.auth }))).json;
}
