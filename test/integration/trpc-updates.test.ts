import { beforeAll, describe, expect, test } from '@jest/globals';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask, command } from '../support/procedures.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();
let stack: TestStack;
let token: string;
const ref = (of = stack) => ({ organization: of.organization, project: of.project, stack: of.stack });

beforeAll(async () => {
  stack = await createStack(app);
  token = stack.auth.slice('token '.length);
});

async function ended(kind = 'update', status = 'succeeded'): Promise<RunningUpdate> {
  const update = await startUpdate(app, stack, { kind });
  await ok(complete(app, update, status));
  return update;
}

describe('updates', () => {
  test('are listed newest first, page by page, with previews on demand', async () => {
    const first = await ended();
    const preview = await ended('preview');
    const second = await ended('refresh', 'failed');
    const third = await ended();
    const list = async (rest: object = {}) => {
      const ids: string[] = [];
      let cursor: string | null = null;
      do {
        const { data }: { data: { items: { updateId: string }[]; next: string | null } } = await ask(
          app,
          token,
          'updates.list',
          {
            ...ref(),
            limit: 2,
            cursor,
            ...rest,
          },
        );
        ids.push(...data.items.map(({ updateId }) => updateId));
        cursor = data.next;
      } while (cursor !== null);
      return ids;
    };
    expect(await list()).toEqual([third.id, second.id, first.id]);
    expect(await list({ previews: true })).toEqual([third.id, second.id, preview.id, first.id]);
    expect(await list({ beforeId: third.id })).toEqual([second.id, first.id]);
    expect(await list({ beforeId: second.id, previews: true })).toEqual([preview.id, first.id]);
    const { items } = (await ask(app, token, 'updates.list', ref())).data;
    expect(items[1]).toMatchObject({ kind: 'refresh', dryRun: false, status: 'failed', result: 'failed', version: 2 });
    const got = await ask(app, token, 'updates.get', { ...ref(), version: 2 });
    expect(got.data).toMatchObject({ updateId: second.id, preview: preview.id, baseVersion: 1 });
    expect((await ask(app, token, 'updates.get', { ...ref(), updateId: third.id })).data.preview).toBeNull();
    const previewed = (await ask(app, token, 'updates.get', { ...ref(), updateId: preview.id })).data;
    expect(previewed).toMatchObject({ dryRun: true, preview: null, follower: second.id, waited: null });
    const later = await ended('preview');
    await ended('preview');
    const last = await ended();
    const follower = async (id: string) =>
      (await ask(app, token, 'updates.get', { ...ref(), updateId: id })).data.follower as unknown;
    expect([await follower(later.id), await follower(last.id)]).toEqual([null, null]);
  });

  test('show the holder of the stack during the wait, their statistics, and removed outputs', async () => {
    const before = await ended();
    const holder = await ended('destroy');
    const waiting = await startUpdate(app, stack);
    await query(app, `update updates set ended_at = created_at - interval '1 hour' where id = $1`, [before.id]);
    await query(app, `update updates set waited_ms = 90500 where id = $1`, [waiting.id]);
    await query(app, `insert into output_losses values ($1, '["url"]')`, [waiting.id]);
    const summary = { resourceChanges: { create: 2 }, PolicyPacks: { rules: '1.2.0', odd: 3 } };
    const events = [{ sequence: 0, timestamp: 1, summaryEvent: summary }];
    await ok(app.call('POST', `${waiting.path}/events/batch`, { auth: waiting.lease, body: { events } }));
    await ok(complete(app, waiting));
    const { waited } = (await ask(app, token, 'updates.get', { ...ref(), updateId: waiting.id })).data;
    expect(waited.seconds).toBe(90.5);
    expect(waited.behind.at(-1)).toMatchObject({ updateId: holder.id, kind: 'destroy', by: expect.any(String) });
    expect(JSON.stringify(waited)).not.toContain(before.id);
    expect((await ask(app, token, 'updates.statistics', { ...ref(), updateId: waiting.id })).data).toMatchObject({
      changes: { creates: 2, updates: 0, replaces: 0, deletes: 0 },
      policyPacks: [{ name: 'rules', version: '1.2.0' }],
      removedOutputs: { names: ['url'], consumers: null },
      ...{ steps: null, failedBefore: null, usual: null },
    });
    expect((await ask(app, token, 'updates.statistics', { ...ref(), updateId: holder.id })).data).toMatchObject({
      policyPacks: [],
      removedOutputs: null,
    });
  });

  test('are found in their own stack only', async () => {
    const other = await createStack(app);
    const foreign = await startUpdate(app, other);
    for (const input of [{ updateId: foreign.id }, { version: 999 }])
      expect(await ask(app, token, 'updates.get', { ...ref(), ...input })).toMatchObject({ status: 404 });
    for (const name of ['updates.events', 'updates.statistics'])
      expect(await ask(app, token, name, { ...ref(), updateId: foreign.id })).toMatchObject({ status: 404 });
    for (const name of ['updates.cancel', 'updates.drain'])
      expect(await command(app, token, name, { ...ref(), updateId: foreign.id })).toMatchObject({ status: 404 });
    for (const input of [
      {},
      { version: 1, updateId: foreign.id },
      { version: 0 },
      { updateId: 'x' },
      { version: 2 ** 31 },
    ])
      expect(await ask(app, token, 'updates.get', { ...ref(), ...input })).toMatchObject({ status: 400 });
    const [row] = await query(app, 'select status from updates where id = $1', [foreign.id]);
    expect(row).toEqual({ status: 'running' });
  });
});

describe('events', () => {
  test('are read page by page, in both directions, by resource and type', async () => {
    const update = await startUpdate(app, stack);
    const event = (sequence: number, urn: string, text = '') => ({
      sequence,
      timestamp: 1_700_000_000 + sequence,
      resourcePreEvent: { metadata: { op: 'create', urn, type: 'a:b:C', text } },
    });
    const events = [0, 1, 2, 3].map((sequence) => event(sequence, `urn:${sequence % 2}`));
    events.push(event(4, 'urn:large', 'x'.repeat(300 * 1024)));
    await ok(app.call('POST', `${update.path}/events/batch`, { auth: update.lease, body: { events } }));
    const read = async (rest: object) =>
      (await ask(app, token, 'updates.events', { ...ref(), updateId: update.id, ...rest })).data;
    const first = await read({ limit: 3 });
    expect(first.items).toEqual(events.slice(0, 3).map((each) => ({ type: 'resourcePreEvent', ...each })));
    expect(first).toMatchObject({ isActive: true, next: expect.any(String) });
    const second = await read({ limit: 3, cursor: first.next });
    expect(second.items.map(({ sequence }: { sequence: number }) => sequence)).toEqual([3, 4]);
    // A removal with 300 KiB of properties is one that reviewers look for.
    expect(second.items[1]).toEqual({ type: 'resourcePreEvent', ...events[4] });
    expect(second.next).toBeNull();
    expect(await read({ cursor: second.resume })).toMatchObject({ items: [], next: null, resume: second.resume });
    const newest = await read({ limit: 2, newestFirst: true });
    expect(newest.items.map(({ sequence }: { sequence: number }) => sequence)).toEqual([4, 3]);
    const odd = await read({ urn: 'urn:1' });
    expect(odd.items.map(({ sequence }: { sequence: number }) => sequence)).toEqual([1, 3]);
    expect((await read({ type: 'diagnosticEvent' })).items).toEqual([]);
    await ok(complete(app, update));
    expect(await read({})).toMatchObject({ isActive: false });
  });
});

describe('a run', () => {
  test('is cancelled, on record with the name of who did', async () => {
    const update = await startUpdate(app, stack);
    expect(await command(app, token, 'updates.cancel', { ...ref(), updateId: update.id })).toMatchObject({
      status: 200,
    });
    expect((await ask(app, token, 'updates.get', { ...ref(), updateId: update.id })).data).toMatchObject({
      status: 'cancelled',
    });
    const events = await listEvents(app, stack.organization);
    const found = events.filter(({ action, update_id }) => action === 'update.cancel' && update_id === update.id);
    expect(found).toMatchObject([{ outcome: 'done', object: `${stack.organization}/proj/dev`, sign_in: 'token' }]);
    // Cancelling what has ended changes nothing, and is no error.
    expect(await command(app, token, 'updates.cancel', { ...ref(), updateId: update.id })).toMatchObject({
      status: 200,
    });
  });

  test('cannot be cancelled by a caller who may only read, which is recorded', async () => {
    const viewer = await person(app, stack.organization, 'viewer');
    const update = await startUpdate(app, stack);
    const refused = await command(app, viewer.token, 'updates.cancel', { ...ref(), updateId: update.id });
    expect(refused).toMatchObject({ status: 403, error: { code: 'FORBIDDEN' } });
    // Passes the check of the call, but not that of the transaction.
    await grant(app, viewer.organizationId, { userId: viewer.userId }, 'allow', ['preview']);
    expect(await command(app, viewer.token, 'updates.cancel', { ...ref(), updateId: update.id })).toMatchObject({
      status: 403,
    });
    expect((await ask(app, token, 'updates.get', { ...ref(), updateId: update.id })).data).toMatchObject({
      status: 'running',
    });
    const events = await listEvents(app, stack.organization);
    expect(events.filter(({ login, outcome }) => login === viewer.login && outcome === 'refused')).toMatchObject([
      { action: 'update.cancel', object: `${stack.organization}/proj/dev` },
    ]);
    await ok(complete(app, update));
  });

  test('is drained with a reason', async () => {
    const update = await startUpdate(app, stack, { journal: true });
    const input = { ...ref(), updateId: update.id, reason: 'the region is down' };
    const drained = await command(app, token, 'updates.drain', input);
    expect(drained).toMatchObject({ status: 200, error: null });
    const events = (await listEvents(app, stack.organization)).filter(({ action }) => action === 'update.drain');
    expect(events).toMatchObject([{ outcome: 'done', update_id: update.id }]);
    expect(await command(app, token, 'updates.drain', { ...input, reason: 'x'.repeat(501) })).toMatchObject({
      status: 400,
    });
    await ok(complete(app, update, 'failed'));
  });
});

describe('the queue', () => {
  test('shows the holder of a stack and the waiting calls in order, as far as the caller may read', async () => {
    const busy = await createStack(app);
    const ownToken = busy.auth.slice('token '.length);
    const { organization } = busy;
    const update = await startUpdate(app, busy);
    await query(
      app,
      `insert into update_queue_waiters (stack_id, token_id, kept_until, is_urgent, run)
       select s.id, t.id, now() + interval '1 hour', w.urgent, case when w.urgent then null else '{"commit":"abc1234","url":"https://ci.example.com/1"}'::jsonb end
       from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id,
         (select t.id from api_tokens t join memberships m on m.user_id = t.user_id join organizations o on o.id = m.organization_id
          where o.name = $1 limit 1) t, (values (1, false), (2, true)) as w (n, urgent)
       where o.name = $1 order by w.n`,
      [organization],
    );
    const { data } = await ask(app, ownToken, 'queue.list', { organization });
    expect(data).toMatchObject({
      next: null,
      items: [
        { updateId: update.id, position: 0, state: 'running', kind: 'update', stack: 'dev' },
        { updateId: null, position: 1, state: 'waiting', commit: null },
        { updateId: null, position: 2, state: 'waiting', commit: 'abc1234', ciUrl: 'https://ci.example.com/1' },
      ],
    });
    const first = (await ask(app, ownToken, 'queue.list', { organization, limit: 2 })).data;
    expect(first.items).toHaveLength(2);
    const rest = (await ask(app, ownToken, 'queue.list', { organization, limit: 2, cursor: first.next })).data;
    expect(rest).toMatchObject({ items: [{ position: 2 }], next: null });
    expect((await ask(app, ownToken, 'queue.list', { organization, project: 'none' })).data.items).toEqual([]);
    expect((await ask(app, ownToken, 'stacks.get', ref(busy))).data.waiting).toBe(2);
    const blind = await person(app, organization, 'member');
    await grant(app, blind.organizationId, { userId: blind.userId }, 'deny', ['read']);
    expect((await ask(app, blind.token, 'queue.list', { organization })).data.items).toEqual([]);
    expect(await ask(app, token, 'queue.list', { organization })).toMatchObject({ status: 404 });
    await query(app, 'delete from update_queue_waiters');
    await ok(complete(app, update));
  });
});
