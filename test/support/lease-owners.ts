import { createHash, randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';
import { query } from './database.ts';
import { creation } from './journal-entries.ts';
import { exportedNames, getStack } from './stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';
import { append, complete, getUpdate, saveState, saveVerbatim } from './update-calls.ts';

/** Events end the lease of a member's update of another user's stack. */

/** `login` is a member; `auth` is the member's. */
export interface Membership {
  readonly stack: TestStack;
  readonly login: string;
  readonly auth: string;
  readonly tokenHash: Buffer;
  readonly owner: TestStack;
}

export async function join(app: TestApp): Promise<Membership> {
  const owner = await createStack(app);
  const login = `member-${randomBytes(4).toString('hex')}`;
  const token = await app.createUser(owner.organization, 'member', login);
  const auth = `token ${token}`;
  const tokenHash = createHash('sha256').update(token).digest();
  return { owner, login, auth, tokenHash, stack: { ...owner, auth } };
}

/** It has saved `r0`, and every replica caches its lease. */
export async function leaveRunning(app: TestApp, { stack }: Membership, journal = true): Promise<RunningUpdate> {
  const update = await startUpdate(app, stack, { journal });
  await ok(journal ? append(app, update, creation(1, 'r0', stack)) : saveState(app, update, 1));
  return update;
}

export const revoke = (app: TestApp, { tokenHash }: Membership) =>
  query(app, 'update api_tokens set revoked_at = now() where token_hash = $1', [tokenHash]);

type LeaseCall = (app: TestApp, update: RunningUpdate, stack: TestStack) => Promise<TestResponse>;

export const renew: LeaseCall = (app, update) =>
  app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 300 } });

/** Every kind of call that a lease authorizes. */
export const calls: Readonly<Record<string, LeaseCall>> = {
  renewal: renew,
  complete: (app, update) => complete(app, update),
  'complete as cancelled': (app, update) => complete(app, update, 'cancelled'),
  'journal entries': (app, update, stack) => append(app, update, creation(7, 'late', stack)),
  'batch of events': (app, update) =>
    app.call('POST', `${update.path}/events/batch`, {
      auth: update.lease,
      body: { events: [{ sequence: 1, timestamp: 1, summaryEvent: { resourceChanges: {} } }] },
    }),
  'full checkpoint': (app, update) => saveState(app, update, 3),
  'verbatim checkpoint': (app, update) => saveVerbatim(app, update, 9, deployment(3)),
  'delta checkpoint': (app, update) =>
    app.call('PATCH', `${update.path}/checkpointdelta`, {
      auth: update.lease,
      body: { version: 3, checkpointHash: '0'.repeat(64), sequenceNumber: 9, deploymentDelta: [] },
    }),
};

/** The update has ended, `r0` is its state, and the stack is not locked. */
export async function expectKept(app: TestApp, member: Membership, update: RunningUpdate): Promise<void> {
  const { owner } = member;
  expect(await getUpdate(app, owner, update)).toMatchObject({ status: 'cancelled', result: 'failed', version: 1 });
  expect(await getStack(app, owner)).toMatchObject({ activeUpdate: '', version: 1 });
  expect(await exportedNames(app, owner)).toEqual(['r0']);
  expect(await exportedNames(app, owner, 1)).toEqual(['r0']);
  const { json } = await ok(app.call('GET', `${owner.path}/updates`, { auth: owner.auth }));
  expect(json.updates).toHaveLength(1);
  expect(json.updates[0]).toMatchObject({ result: 'failed', version: 1 });
}
