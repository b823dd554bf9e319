import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { type ChangeName, changeStatement } from '../support/differential/changes.ts';
import { changeBefore, withLateChanges } from '../support/differential/late-changes.ts';
import { person } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, ok } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';

// What is committed just before the statement that decides about a call counts, whatever was so when the call was admitted.

let app: TestApp;
let client: pg.Client;
beforeAll(async () => {
  app = await createTestApp({ settings: { leaseSeconds: 3600 } });
  client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await app[Symbol.asyncDispose]();
});

type Kind = 'update' | 'preview';
type Call = 'create' | 'start' | 'complete';

/** The status of the response and a part of its text. */
type Answer = string;

const lostAccess = '401 The API token, its user or the membership was removed during the call';
const notInTime = '409 This update has ended: it was not started in time';
const noPermission = '409 This update has ended: its token may no longer update this stack';
const leaseLost = '403 The lease of this update is no longer valid';
const gap = '409 The journal of this update is not complete: entries 3-900 are missing';

/** What each call is answered after a change: for an update (null: cannot be), and for a preview if that is something else. */
const answers: Record<Call, Partial<Record<ChangeName, readonly [update: Answer | null, preview?: Answer]>>> = {
  create: {
    'the token is revoked': [lostAccess],
    'the token has expired': [lostAccess],
    'the user is deactivated': [lostAccess],
    'the membership ends': [lostAccess],
    'the member may only read': ['403 This needs the permission write', '403 This needs the permission preview'],
    'the member may not write': ['403 This needs the permission write', '200'],
    'the token may not write': ['403 This needs the permission write', '200'],
    'members may only preview': ['403 This needs the permission write', '200'],
    'the stack is deleted': ['404 not found'],
    'the stack is renamed': ['404 not found'],
    'another update begins': ['409 Conflict: Another update is currently in progress', '200'],
    'another update has expired': ['409 Conflict: Another update is currently in progress', '200'],
    'a call waits': ['409 at position 2 of the queue', '200'],
    'the stack is frozen': ['409 Frozen: updates of organization', '200'],
    'a rule for a tag is set': ['409 Frozen: updates of stacks with the tag env=x', '200'],
    'a rule for another stack is set': ['200'],
    'a rule of a later release is set': ['200'],
    'updates are limited': ['200'],
    'deletes are limited': ['200'],
    'a preview is needed': ['403 need a preview of the same commit', '200'],
    'a fault is found': ['409 is incomplete: unknown', '200'],
    'a fault was accepted': ['200'],
    'a kind of entries is unknown': ['200'],
  },
  start: {
    'the token is revoked': [lostAccess],
    'the token has expired': [lostAccess],
    'the user is deactivated': [lostAccess],
    'the membership ends': [lostAccess],
    'the member may only read': ['403 This needs the permission write', '403 This needs the permission preview'],
    'the member may not write': ['403 This needs the permission write', '200'],
    'the token may not write': ['403 This needs the permission write', '200'],
    'members may only preview': ['403 This needs the permission write', '200'],
    'the stack is deleted': ['404 There is no update'],
    'the stack is renamed': ['404 There is no update'],
    'the stack is tagged': ['200'],
    'another update has expired': [null, '200'],
    'it is guarded': ['403 need an update that sends a journal', '200'],
    'its lease expires': [notInTime],
    'its lease is lost': [noPermission],
    'its lease is taken away': [noPermission],
    'it waits for long': ['200'],
    'it is cancelled': ['409 This update has ended: cancelled'],
    'entries are in no checkpoint': ['200'],
    'a fault is found': ['409 is incomplete: unknown', '200'],
    'a kind of entries is unknown': ['200'],
  },
  complete: {
    'the token is revoked': ['403 the API token under which it was started was revoked'],
    'the member may not write': ['403 its token may no longer update this stack', '204'],
    'the stack is deleted': [leaseLost],
    'it is cancelled': [leaseLost],
    'its lease expires': [leaseLost],
    'its lease is lost': ['403 its token may no longer update this stack'],
    'it is taken over': [leaseLost],
    'it gets entries': [gap, '204'],
    'secrets are read': ['204'],
  },
};

/** Makes the calls of an update up to this one, with the change just before the statement that decides about it. */
async function callAfter(call: Call, kind: Kind, change: ChangeName): Promise<TestResponse> {
  const stack = await createStack(app);
  const tags = change === 'a call waits' ? { 'lock-wait': '1s' } : { env: 'x' };
  await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: tags }));
  const member = await person(app, stack.organization, 'member');
  // An update that the member has created loses its permission with the member.
  const creator = call === 'start' && kind === 'update' ? stack.auth : member.auth;
  const [ids] = await query<Record<string, string>>(
    app,
    `select s.id as stack, p.organization_id as organization, t.user_id as member, t.id as caller
     from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id, api_tokens t
     where o.name = $1 and t.id = $2`,
    [stack.organization, member.tokenId],
  );
  let latest = randomUUID() as string;
  const late = (of: Call, updateId: string | null, send: () => Promise<TestResponse>) =>
    changeBefore(
      updateId,
      of === call
        ? async () => void (await client.query(changeStatement(change, { ...ids, latest, fresh: randomUUID() })))
        : null,
      send,
    );
  const created = await late('create', null, () =>
    app.call('POST', `${stack.path}/${kind}`, { auth: creator, body: {} }),
  );
  if (call === 'create') return created;
  latest = (await ok(Promise.resolve(created))).json.updateID;
  const path = `${stack.path}/update/${latest}`;
  const withJournal = change !== 'it is guarded';
  const started = await late('start', latest, () =>
    app.call('POST', path, { auth: member.auth, body: { journalVersion: withJournal ? 1 : 0 } }),
  );
  if (call === 'start') return started;
  const auth = `update-token ${(await ok(Promise.resolve(started))).json.token}`;
  if (kind === 'update')
    await ok(app.call('PATCH', `${path}/journalentries`, { auth, body: { entries: creation(1, 'a', stack) } }));
  return late('complete', latest, () => app.call('POST', `${path}/complete`, { auth, body: { status: 'succeeded' } }));
}

describe.each(Object.keys(answers) as Call[])('before the statement that decides about a %s', (call) => {
  const rows = Object.entries(answers[call]).flatMap(([change, [update, preview = update]]) =>
    Object.entries({ update, preview }).flatMap(([kind, answer]) =>
      answer === null ? [] : [[change as ChangeName, kind as Kind, answer] as const],
    ),
  );
  test.each(rows)('%s (%s)', async (change, kind, answer) => {
    const { status, text } = await withLateChanges(() => callAfter(call, kind, change));
    const [expected = '', ...part] = answer.split(' ');
    expect({ status, text }).toEqual({ status: Number(expected), text: expect.stringContaining(part.join(' ')) });
  });
});
