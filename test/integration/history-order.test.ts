import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, type TestResponse, testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const app = testApp();

const get = (stack: TestStack, path: string): Promise<TestResponse['json']> =>
  ok(app.call('GET', `${stack.path}/${path}`, { auth: stack.auth })).then(({ json }) => json);

async function importInto(stack: TestStack): Promise<string> {
  const { json } = await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  return json.updateId;
}

/** As if the database's clock had been set back by an hour before each update. */
async function setClockBack(...updateIds: string[]): Promise<void> {
  for (const [at, id] of updateIds.entries()) {
    await query(
      app,
      `update updates set created_at = created_at - make_interval(hours => $2), started_at = started_at - make_interval(hours => $2)
       where id = $1`,
      [id, at + 1],
    );
  }
}

test('history is in the order in which updates were created, whatever the clock says', async () => {
  const stack = await createStack(app);
  const ids = [await importInto(stack), await importInto(stack), await importInto(stack)];
  const refresh = await startUpdate(app, stack, { kind: 'refresh' });
  await ok(complete(app, refresh));
  const waiting = await ok(app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
  ids.push(refresh.id, waiting.json.updateID);
  await setClockBack(...ids);

  const newestFirst = ids.toReversed();
  const idsOf = (answer: TestResponse['json']) => answer.updates.map(({ updateID }: { updateID: string }) => updateID);
  expect(idsOf(await get(stack, 'updates'))).toEqual(newestFirst);
  expect(idsOf(await get(stack, 'updates?pageSize=2&page=1'))).toEqual(newestFirst.slice(0, 2));
  expect(idsOf(await get(stack, 'updates?pageSize=2&page=2'))).toEqual(newestFirst.slice(2, 4));
  expect(idsOf(await get(stack, 'updates?pageSize=2&page=3'))).toEqual(newestFirst.slice(4));
  expect((await get(stack, 'updates/latest')).info.updateID).toBe(waiting.json.updateID);
});

test('the last update in a list of stacks is the one created last', async () => {
  const stack = await createStack(app);
  const imported = await importInto(stack);
  const destroy = await startUpdate(app, stack, { kind: 'destroy' });
  await ok(complete(app, destroy, 'failed'));
  await ok(complete(app, await startUpdate(app, stack, { kind: 'preview' })));
  await setClockBack(imported, destroy.id);
  const { json } = await ok(
    app.call('GET', `/api/user/stacks?organization=${stack.organization}`, {
      auth: stack.auth,
      accept: contractAccept,
    }),
  );
  expect(json.stacks).toEqual([
    expect.objectContaining({ lastUpdate: expect.objectContaining({ kind: 'destroy', status: 'failed' }) }),
  ]);
});

test('the latest previews are those created last', async () => {
  const stack = await createStack(app);
  const previews: string[] = [];
  for (let round = 0; round < 3; round++) previews.push((await startUpdate(app, stack, { kind: 'preview' })).id);
  await setClockBack(...previews);
  const { updates } = await get(stack, 'updates/latest/previews?pageSize=2');
  expect(updates).toEqual([{ updateID: previews[2] }, { updateID: previews[1] }]);
});
