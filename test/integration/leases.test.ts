import { describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, getStack } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { type TestApp, testApp } from '../support/test-app.ts';
import { append, complete, expire, getUpdate, saveState } from '../support/update-calls.ts';

const app = testApp();

const renew = (update: RunningUpdate, body: object = { token: '', duration: 300 }) =>
  app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body });

async function secondsLeft(update: RunningUpdate): Promise<number> {
  const [row] = await query<{ left: number }>(
    app,
    'select extract(epoch from expires_at - clock_timestamp())::float8 as left from updates where id = $1',
    [update.id],
  );
  return row?.left ?? Number.NaN;
}

const setSecondsLeft = (update: RunningUpdate, seconds: number) =>
  query(app, 'update updates set expires_at = clock_timestamp() + make_interval(secs => $2) where id = $1', [
    update.id,
    seconds,
  ]);

describe('renew', () => {
  test('grants the requested duration, at most the configured maximum, with the same token', async () => {
    const update = await startUpdate(app, await createStack(app));
    for (const [duration, granted] of [
      [300, 300],
      [120, 120],
      [86_400, 300],
      [null, 300],
    ] as const) {
      await setSecondsLeft(update, 60);
      const { json } = await ok(renew(update, { token: '', duration }));
      expect(`update-token ${json.token}`).toBe(update.lease);
      expect(Math.abs((await secondsLeft(update)) - granted)).toBeLessThan(50);
      expect(Math.abs(json.tokenExpiration - Date.now() / 1000 - granted)).toBeLessThan(50);
    }
  });

  test('never shortens a lease', async () => {
    const update = await startUpdate(app, await createStack(app));
    await ok(renew(update, { duration: 1 }));
    expect(await secondsLeft(update)).toBeGreaterThan(250);
  });

  test.each([
    [0, 400],
    [-1, 400],
    [1.5, 400],
    ['300', 400],
    [2 ** 40, 200],
  ])('answers a duration of %p with %p', async (duration, status) => {
    const update = await startUpdate(app, await createStack(app));
    expect((await renew(update, { duration })).status).toBe(status);
    expect(await secondsLeft(update)).toBeGreaterThan(250);
    expect(await secondsLeft(update)).toBeLessThan(301);
  });

  test('ends with the time limit of the update, and revives no lease that ended after its check', async () => {
    const update = await startUpdate(app, await createStack(app));
    const { updates } = app.context;
    const epoch = (await updates.find(update.id))?.epoch ?? Number.NaN;
    await setSecondsLeft(update, 60);
    const limit = `update updates set must_end_at = clock_timestamp() + interval '100 seconds' where id = $1`;
    await query(app, limit, [update.id]);
    await ok(renew(update));
    expect(Math.abs((await secondsLeft(update)) - 100)).toBeLessThan(40);
    await expire(app, update.id);
    expect(await updates.renewLease(update.id, epoch, 300)).toBeNull();
    expect(await secondsLeft(update)).toBeLessThanOrEqual(0);
  });

  test('works for previews too', async () => {
    const update = await startUpdate(app, await createStack(app), { kind: 'preview' });
    expect((await renew(update)).status).toBe(200);
  });
});

describe('an expired lease', () => {
  const leave = async (stack: TestStack, journal: boolean): Promise<RunningUpdate> => {
    const update = await startUpdate(app, stack, { journal });
    if (journal) {
      const [begin] = creation(3, 'pending', stack);
      await ok(append(app, update, [...creation(1, 'r0', stack), begin]));
    } else await ok(saveState(app, update, 1));
    await expire(app, update.id);
    return update;
  };

  test.each([false, true])('is reclaimed by the next create; the state is kept (journal: %p)', async (journal) => {
    const stack = await createStack(app);
    const lost = await leave(stack, journal);
    const next = await startUpdate(app, stack);
    expect(await getUpdate(app, stack, lost)).toMatchObject({ status: 'cancelled', result: 'failed', version: 1 });
    expect((await getStack(app, stack)).activeUpdate).toBe(next.id);
    expect(next.version).toBe(2);
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.json.deployment.resources).toHaveLength(1);
    if (journal) expect(exported.json.deployment.pending_operations).toMatchObject([{ type: 'creating' }]);
    expect((await ok(app.call('GET', `${stack.path}/export/1`, { auth: stack.auth }))).text).toBe(exported.text);
  });

  test.each([false, true])('is reclaimed by the sweep; the state is kept (journal: %p)', async (journal) => {
    const stack = await createStack(app);
    const lost = await leave(stack, journal);
    expect(await expireLeases(app.context)).toBeGreaterThanOrEqual(1);
    expect(await expireLeases(app.context)).toBe(0);
    expect(await getStack(app, stack)).toMatchObject({ activeUpdate: '', version: 1 });
    expect((await getUpdate(app, stack, lost)).status).toBe('cancelled');
    expect(await exportedNames(app, stack)).toEqual(['r0']);
    expect(await query(app, 'select 1 from journals where update_id = $1 and compacted_at is null', [lost.id])).toEqual(
      [],
    );
    const [row] = await query(app, 'select end_reason from updates where id = $1', [lost.id]);
    expect(row).toEqual({ end_reason: 'lease-expired' });
  });

  test.each(['import', 'rename', 'delete'])('does not block %s', async (what) => {
    const stack = await createStack(app);
    await leave(stack, true);
    const { auth, path } = stack;
    const calls: Record<string, () => ReturnType<TestApp['call']>> = {
      import: () => app.call('POST', `${path}/import`, { auth, body: { version: 3, deployment: {} } }),
      rename: () => app.call('POST', `${path}/rename`, { auth, body: { newName: 'moved' } }),
      delete: () => app.call('DELETE', `${path}?force=true`, { auth }),
    };
    const response = await calls[what]?.();
    expect(response?.status).toBeLessThan(300);
  });

  test('can be neither renewed nor completed, whether or not it was noticed', async () => {
    for (const noticed of [false, true]) {
      const stack = await createStack(app);
      const lost = await leave(stack, false);
      if (noticed) await expireLeases(app.context);
      for (const response of [await renew(lost), await complete(app, lost), await saveState(app, lost, 5)])
        expect([response.status, response.json.code]).toEqual([403, 403]);
      expect(await exportedNames(app, stack)).toEqual(['r0']);
    }
  });

  test('of a preview is swept as well', async () => {
    const stack = await createStack(app);
    const preview = await startUpdate(app, stack, { kind: 'preview' });
    await expire(app, preview.id);
    await expireLeases(app.context);
    expect((await getUpdate(app, stack, preview)).status).toBe('cancelled');
  });

  test('is counted in the metrics', async () => {
    const count = async () =>
      Number(/^holdfast_leases_expired_total (\d+)/m.exec((await app.call('GET', '/metrics')).text)?.[1]);
    const before = await count();
    await leave(await createStack(app), false);
    await expireLeases(app.context);
    expect(await count()).toBe(before + 1);
  });
});

describe('after the database clock was set back by an hour', () => {
  const setBack = (updateId: string) =>
    query(app, `update updates set expires_at = expires_at + interval '1 hour' where id = $1`, [updateId]);

  test.each(['running', 'not started'])('the sweep leaves one lease of an update that is %s', async (status) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await query(app, 'update updates set status = $2 where id = $1', [update.id, status]);
    await setBack(update.id);
    await expireLeases(app.context);
    expect(await secondsLeft(update)).toBeLessThanOrEqual(300);
    expect(await secondsLeft(update)).toBeGreaterThan(250);
    expect((await getStack(app, stack)).activeUpdate).toBe(update.id);
  });

  test('the next create leaves one lease and is rejected while it lasts', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    await setBack(update.id);
    const create = () => app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
    expect((await create()).status).toBe(409);
    expect(await secondsLeft(update)).toBeLessThanOrEqual(300);
    // Callers who retry must not keep it alive.
    await setSecondsLeft(update, 100);
    expect((await create()).status).toBe(409);
    expect(await secondsLeft(update)).toBeLessThanOrEqual(100);
    await ok(saveState(app, update, 1));
    await expire(app, update.id);
    expect((await create()).status).toBe(200);
  });

  test('a lease within the maximum duration is left alone', async () => {
    const update = await startUpdate(app, await createStack(app));
    await setSecondsLeft(update, 200);
    await expireLeases(app.context);
    expect(await secondsLeft(update)).toBeLessThanOrEqual(200);
  });
});

describe('an update that nobody starts', () => {
  const create = async (stack: TestStack) => {
    const { json } = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    return { id: json.updateID as string, path: `${stack.path}/update/${json.updateID}` };
  };

  test('is replaced by the next create and cannot be started any more', async () => {
    const stack = await createStack(app);
    const forgotten = await create(stack);
    await expire(app, forgotten.id);
    const start = () => app.call('POST', forgotten.path, { auth: stack.auth, body: {} });
    expect((await start()).status).toBe(409);
    const next = await create(stack);
    expect((await getStack(app, stack)).activeUpdate).toBe(next.id);
    expect((await start()).status).toBe(409);
    expect((await getUpdate(app, stack, forgotten)).status).toBe('cancelled');
  });

  test('is swept', async () => {
    const stack = await createStack(app);
    const forgotten = await create(stack);
    await expireLeases(app.context);
    expect((await getStack(app, stack)).activeUpdate).toBe(forgotten.id);
    await expire(app, forgotten.id);
    await expireLeases(app.context);
    expect(await getStack(app, stack)).toMatchObject({ activeUpdate: '', version: 0 });
  });
});

test('a failing compaction of one stack does not keep the sweep from the others', async () => {
  const broken = await createStack(app);
  const sound = await createStack(app);
  const [first, second] = [
    await startUpdate(app, broken, { journal: true }),
    await startUpdate(app, sound, { journal: true }),
  ];
  await ok(append(app, second, creation(1, 'kept', sound)));
  // As if its checkpoint were lost: its compaction throws each time.
  await query(
    app,
    `with counted as (update journals set entry_count = 1 where update_id = $1)
     update updates set status = 'failed', ended_at = 'epoch', environment = 'no JSON' where id = $1`,
    [first.id],
  );
  await query(app, 'update stacks set active_update_id = null where active_update_id = $1', [first.id]);
  await expire(app, second.id);
  await expireLeases(app.context).catch(() => {});
  const [row] = await query(
    app,
    'select u.status, j.compacted_entries from updates u join journals j on j.update_id = u.id where u.id = $1',
    [second.id],
  );
  expect(row).toEqual({ compacted_entries: 2, status: 'cancelled' });
});
