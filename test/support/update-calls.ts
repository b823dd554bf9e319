import { query } from './database.ts';
import { deployment, ok, type RunningUpdate, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';

export function complete(app: TestApp, update: RunningUpdate, status = 'succeeded'): Promise<TestResponse> {
  return app.call('POST', `${update.path}/complete`, { auth: update.lease, body: { status } });
}

export function cancel(app: TestApp, stack: TestStack, update: { path: string }): Promise<TestResponse> {
  return app.call('POST', `${update.path}/cancel`, { auth: stack.auth });
}

/** Saves a full checkpoint with `count` resources. */
export function saveState(app: TestApp, update: RunningUpdate, count: number, note = ''): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(count, note) });
}

export function saveVerbatim(
  app: TestApp,
  update: RunningUpdate,
  sequenceNumber: number,
  untypedDeployment: object = deployment(1),
): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/checkpointverbatim`, {
    auth: update.lease,
    body: { version: 3, untypedDeployment, sequenceNumber },
  });
}

export function append(app: TestApp, update: RunningUpdate, entries: readonly object[]): Promise<TestResponse> {
  return app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body: { entries } });
}

export async function getUpdate(
  app: TestApp,
  stack: TestStack,
  update: { path: string },
): Promise<TestResponse['json']> {
  return (await ok(app.call('GET', update.path, { auth: stack.auth }))).json;
}

/** One second ago: its lease, or its wait for the start. */
export async function expire(app: TestApp, updateId: string): Promise<void> {
  await query(app, `update updates set expires_at = clock_timestamp() - interval '1 second' where id = $1`, [updateId]);
}
