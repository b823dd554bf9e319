import { beforeAll, describe, expect, test } from '@jest/globals';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { beginning, creation } from '../support/journal-entries.ts';
import { exportState, resourceNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { noteStatements } from '../support/statement-count.ts';
import type { TestApp } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { append, cancel, complete, getUpdate } from '../support/update-calls.ts';

/** Three replicas; the last one leaves every body to a job. */
const apps = testReplicas({}, {}, { HOLDFAST_DIRECT_BYTES: '1' });
let app: TestApp;
beforeAll(() => {
  [app] = apps;
});

const started = async (): Promise<{ stack: TestStack; update: RunningUpdate }> => {
  const stack = await createStack(app);
  return { stack, update: await startUpdate(app, stack, { journal: true }) };
};
const drain = (stack: TestStack, update: { path: string }, reason?: string) =>
  app.call('POST', `${update.path}/drain`, { auth: stack.auth, body: reason === undefined ? {} : { reason } });

/** What the state of a stack says. */
const stateOf = async (stack: TestStack): Promise<{ resources: string[]; pending: string[] }> => {
  const { json } = await exportState(app, stack);
  const pending: { resource: { urn: string } }[] = json.deployment.pending_operations ?? [];
  return {
    resources: resourceNames(json),
    pending: pending.map(({ resource }) => resource.urn.split('::').at(-1) as string),
  };
};

describe.each([0, 1, 2])('replica %i, which knows the lease', (replica) => {
  test('stores what is finished and refuses what begins', async () => {
    const on = apps[replica] as TestApp;
    const { stack, update } = await started();
    const [beginA, successA] = creation(1, 'a', stack);
    await ok(append(on, update, [beginA]));
    await ok(drain(stack, update, 'node pool is replaced'));
    const [beginB] = creation(3, 'b', stack);
    const batch = [successA, beginB, beginning(4, 4)];
    // The first answer was lost, say.
    for (const _ of [1, 2]) {
      const refused = await append(on, update, batch);
      expect(refused.status).toBe(403);
      expect(refused.json.message).toMatch(
        /drains this update \(node pool is replaced\): it begins no more operations/,
      );
    }
    expect(await stateOf(stack)).toEqual({ resources: ['a'], pending: [] });
    await ok(complete(app, update, 'failed'));
    expect(await stateOf(stack)).toEqual({ resources: ['a'], pending: [] });
    expect(await getUpdate(app, stack, update)).toMatchObject({ status: 'failed', version: 1 });
  });

  test('accepts what was begun before, when the call is repeated', async () => {
    const on = apps[replica] as TestApp;
    const { stack, update } = await started();
    const [begin, success] = creation(1, 'a', stack);
    await ok(append(on, update, [begin]));
    await ok(drain(stack, update));
    await ok(append(on, update, [begin]));
    expect(await stateOf(stack)).toEqual({ resources: [], pending: ['a'] });
    await ok(append(on, update, [success]));
    expect(await stateOf(stack)).toEqual({ resources: ['a'], pending: [] });
  });
});

test('a refused entry leaves no gap in the journal, which can be compacted incrementally and from a snapshot', async () => {
  const { stack, update } = await started();
  await ok(append(app, update, creation(1, 'a', stack)));
  const [begin] = creation(3, 'b', stack);
  await ok(drain(stack, update));
  expect((await append(app, update, [begin])).status).toBe(403);
  await ok(append(app, update, [{ ...creation(4, 'c', stack)[1], sequenceID: 4 }]));
  await app.context.compactor.takeSnapshot(update.id);
  const snapshots = await query(app, 'select entries from journal_snapshots where update_id = $1', [update.id]);
  expect(snapshots).toEqual([{ entries: 4 }]);
  expect(await stateOf(stack)).toEqual({ resources: ['a', 'c'], pending: [] });
});

test('a large batch of a drained update is stored whole, in one transaction', async () => {
  const { stack, update } = await started();
  await ok(append(app, update, creation(1, 'a', stack)));
  await ok(drain(stack, update));
  const finished = Array.from({ length: 300 }, (_, at) => ({
    ...(creation(3 + 2 * at, `n${at}`, stack)[1] as object),
    filler: 'x'.repeat(8_000),
  }));
  const batch = [...finished, creation(1_000, 'late', stack)[0]];
  for (const on of apps) expect((await append(on, update, batch)).status).toBe(403);
  expect((await stateOf(stack)).resources).toHaveLength(301);
});

test('once the call has returned, no operation begins at any replica', async () => {
  const { stack, update } = await started();
  let next = 1;
  let isDrained = false;
  const late: number[] = [];
  const accepted: string[] = [];
  const begin = async (on: TestApp): Promise<void> => {
    for (let time = 0; time < 15; time++) {
      const id = next++;
      const wasDrained = isDrained;
      const { status } = await append(on, update, [creation(id, `n${id}`, stack)[0]]);
      if (status === 204) accepted.push(`n${id}`);
      if (status === 204 && wasDrained) late.push(id);
    }
  };
  const draining = (async () => {
    await append(app, update, [creation(next++, 'first', stack)[0]]);
    await ok(drain(stack, update));
    isDrained = true;
  })();
  await Promise.all([...apps.map(begin), draining]);
  expect(late).toEqual([]);
  const { pending } = await stateOf(stack);
  expect(pending.filter((name) => name !== 'first').sort()).toEqual(accepted.sort());
});

test('the lease goes on, and cancelling ends the update as before', async () => {
  const { stack, update } = await started();
  await ok(append(app, update, [creation(1, 'a', stack)[0]]));
  await ok(drain(stack, update));
  await ok(app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: { duration: 100 } }));
  await ok(cancel(app, stack, update));
  expect(await getUpdate(app, stack, update)).toMatchObject({ status: 'cancelled' });
  expect((await append(app, update, [creation(3, 'b', stack)[0]])).json.message).toContain('lease');
  expect(await stateOf(stack)).toEqual({ resources: [], pending: ['a'] });
});

test('an update without change limits costs one statement', async () => {
  const { stack, update } = await started();
  await ok(append(app, update, [creation(1, 'a', stack)[0]]));
  const noted = noteStatements(app);
  await ok(append(app, update, [creation(1, 'a', stack)[1], creation(3, 'b', stack)[0]]));
  expect(noted.begun).toEqual(['journalEntries.append']);
});

describe('refused', () => {
  test.each(['preview', 'update'])('for a %s that sends no journal', async (kind) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { kind });
    expect(await drain(stack, update)).toMatchObject({
      status: 409,
      json: { message: expect.stringContaining('sends no journal') },
    });
  });

  test('before the start, after the end, and for updates that do not exist', async () => {
    const stack = await createStack(app);
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    const path = `${stack.path}/update/${json.updateID}`;
    expect((await drain(stack, { path })).status).toBe(409);
    await ok(cancel(app, stack, { path }));
    expect((await drain(stack, { path })).status).toBe(409);
    const unknown = { path: `${stack.path}/update/00000000-0000-4000-8000-000000000000` };
    expect((await drain(stack, unknown)).status).toBe(404);
  });

  test.each(['x'.repeat(301), 'two\nlines', '\u001b[31mred'])(
    'for a reason that is not one line: %j',
    async (reason) => {
      const { stack, update } = await started();
      expect((await drain(stack, update, reason)).status).toBe(400);
      await ok(append(app, update, [creation(1, 'a', stack)[0]]));
    },
  );
});

describe('the command', () => {
  test('drains the update that holds the stack, and both are on record once', async () => {
    const { stack, update } = await started();
    const name = `${stack.organization}/${stack.project}/${stack.stack}`;
    expect(await runAdminCommand(app, 'drain', name, '--reason', 'shift ends')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Update ${update.id} starts no new steps`),
    });
    expect((await append(app, update, [creation(1, 'a', stack)[0]])).json.message).toContain('(shift ends)');
    await ok(drain(stack, update));
    const events = await query(
      app,
      `select actor, details::json ->> 'reason' as reason from audit_events where action = 'update.drain' and update_id = $1`,
      [update.id],
    );
    expect(events).toEqual([{ actor: 'operator', reason: 'shift ends' }]);
    await ok(complete(app, update, 'failed'));
    expect(await runAdminCommand(app, 'drain', name)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no update of'),
    });
  });
});
