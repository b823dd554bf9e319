import { beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { UpdateService } from '../../src/api/updates/update-service.ts';
import { listEvents } from '../support/audit.ts';
import { query } from '../support/database.ts';
import { person } from '../support/grants.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { cliAccept, type TestResponse } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';
import { cancel } from '../support/update-calls.ts';
import { keepQueueProcesses } from '../support/update-queue.ts';
import { removeRule, setRule } from '../support/update-rules.ts';
import { WireServer } from '../support/wire.ts';

const settings = { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' };
const apps = testReplicas(settings, settings);

beforeAll(() => keepQueueProcesses(apps[0]));

const most = (count: number, scope: object = {}, per?: string) => ({
  kind: 'concurrency',
  settings: { most: count, ...(per === undefined ? {} : { per }) },
  ...scope,
});
const noWait = { kind: 'lock-wait', settings: { seconds: 0 } };

/** Another stack of the organization. */
async function another(of: TestStack, project: string, stack: string, tags: object = {}): Promise<TestStack> {
  const path = `/api/stacks/${of.organization}/${project}`;
  await ok(apps[0].call('POST', path, { auth: of.auth, body: { stackName: stack, tags } }));
  return { ...of, project, stack, path: `${path}/${stack}` };
}

const create = (
  stack: TestStack,
  { at = 0, auth = stack.auth, message = '' }: { at?: 0 | 1; auth?: string; message?: string } = {},
) => apps[at].call('POST', `${stack.path}/update`, { auth, body: { metadata: { message, environment: {} } } });

async function end(stack: TestStack, { json }: TestResponse): Promise<void> {
  await ok(cancel(apps[0], stack, { path: `${stack.path}/update/${json.updateID}` }));
}

/** A transaction of somebody else that changes the stack. */
async function holdStack({ organization, project, stack }: TestStack): Promise<{ end(): Promise<void> }> {
  const client = new pg.Client({ connectionString: apps[0].database.ownerUrl });
  await client.connect();
  await client.query('begin');
  await client.query(
    `select 1 from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where (o.name, p.name, s.name) = ($1, $2, $3) for update of s`,
    [organization, project, stack],
  );
  return { end: () => client.end() };
}

const untilStackAwaited = (): Promise<void> =>
  until(async () => {
    const rows = await query(
      apps[0],
      `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and query like '%lockStack%'`,
    );
    return rows.length === 1;
  }, 'the call waits for its stack');

/** Waits until limits delay so many calls, which have taken their turns among themselves from then on. */
const untilDeferred = (count: number): Promise<void> =>
  until(async () => {
    const rows = await query(apps[0], 'select 1 from update_queue_waiters where held_by is not null');
    return rows.length === count;
  }, `limits delay ${count} calls`);

test('a call whose stack is renamed while it waits creates no update under the new name', async () => {
  const stack = await createStack(apps[0]);
  const [busy, waits] = [await another(stack, 'web', 'a'), await another(stack, 'web', 'b')] as [TestStack, TestStack];
  await setRule(apps[0], stack, most(1));
  const running = await ok(create(busy));
  const waiting = create(waits);
  await untilDeferred(1);
  await ok(apps[0].call('POST', `${waits.path}/rename`, { auth: stack.auth, body: { newName: 'c' } }));
  await end(busy, running);
  expect(await waiting).toMatchObject({ status: 404, json: { message: expect.stringContaining('/web/b') } });
  const renamed = { ...waits, stack: 'c', path: waits.path.replace(/b$/, 'c') };
  await end(renamed, await ok(create(renamed)));
});

test('no more updates run at once than the organization, the project, the tag and the user may', async () => {
  const stack = await createStack(apps[0]);
  await setRule(apps[0], stack, noWait);
  const [web, web2, data] = [
    await another(stack, 'web', 'a', { account: 'eu' }),
    await another(stack, 'web', 'b'),
    await another(stack, 'data', 'a', { account: 'eu' }),
  ] as [TestStack, TestStack, TestStack];
  const running = await ok(create(web));
  const { auth } = await person(apps[0], stack.organization, 'member');
  const cases: [object, TestStack, string][] = [
    [most(1), data, stack.auth],
    [most(1, { project: 'web' }), web2, stack.auth],
    [most(1, {}, 'project'), web2, stack.auth],
    [most(1, { tag: { name: 'account', value: 'eu' } }), data, stack.auth],
    [most(1, {}, 'user'), data, stack.auth],
  ];
  for (const [rule, blocked, who] of cases) {
    const id = await setRule(apps[0], stack, { ...rule, note: 'Quota of the cloud' });
    const refused = await create(blocked, { auth: who });
    expect([rule, refused.status]).toEqual([rule, 409]);
    expect(refused.json.message).toMatch(
      /^Too many updates at once: 1 of the 1 allowed in .* are running: Quota of the cloud\. Run it again .*; `pulumi cancel` does not help$/,
    );
    await removeRule(apps[0], stack, id);
  }
  // What is not counted.
  for (const [rule, free, who] of [
    [most(1, { project: 'web' }), data, stack.auth],
    [most(1, {}, 'project'), data, stack.auth],
    [most(1, { tag: { name: 'account', value: 'eu' } }), web2, stack.auth],
    [most(1, {}, 'user'), data, auth],
    [most(2), data, stack.auth],
  ] as [object, TestStack, string][]) {
    const id = await setRule(apps[0], stack, rule);
    await end(free, await ok(create(free, { auth: who })));
    const preview = await apps[0].call('POST', `${free.path}/preview`, { auth: who, body: {} });
    expect(preview.status).toBe(200);
    await removeRule(apps[0], stack, id);
  }
  await end(web, running);
});

test('a limit holds under any number of concurrent calls, across all replicas', async () => {
  const stack = await createStack(apps[0]);
  await setRule(apps[0], stack, noWait);
  await setRule(apps[0], stack, most(2));
  const stacks = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => another(stack, 'web', name)));
  const answers = await Promise.all(stacks.map((each, index) => create(each, { at: (index % 2) as 0 | 1 })));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409, 409]);
});

test('the rest wait, and projects alternate', async () => {
  const stack = await createStack(apps[0]);
  await setRule(apps[0], stack, most(2));
  const web = await Promise.all(['a', 'b', 'c', 'd'].map((name) => another(stack, 'web', name)));
  const data = await another(stack, 'data', 'a');
  const running = [await ok(create(web[0] as TestStack)), await ok(create(web[1] as TestStack))];
  const order: string[] = [];
  const wait = (each: TestStack, at: 0 | 1) =>
    create(each, { at }).then((answer) => {
      order.push(`${each.project}/${each.stack}`);
      return answer;
    });
  const third = wait(web[2] as TestStack, 0);
  await untilDeferred(1);
  const fourth = wait(web[3] as TestStack, 1);
  await untilDeferred(2);
  const late = wait(data, 1);
  await untilDeferred(3);
  await end(web[0] as TestStack, running[0] as TestResponse);
  const first = await late;
  expect(order).toEqual(['data/a']);
  expect(first.json.messages[0].message).toMatch(/^Waited .*, which a limit of 2 updates at once delayed/);
  await end(web[1] as TestStack, running[1] as TestResponse);
  await end(web[2] as TestStack, await third);
  await end(web[3] as TestStack, await fourth);
  expect(order).toEqual(['data/a', 'web/c', 'web/d']);
  await end(data, first);
});

test('a limit that is raised, or that comes while updates wait, holds from then on', async () => {
  const stack = await createStack(apps[0]);
  const held = await startUpdate(apps[0], stack);
  const calls = [create(stack)];
  await untilWaiting(apps, 1);
  const id = await setRule(apps[0], stack, most(1));
  const other = await another(stack, 'web', 'a');
  calls.push(create(other, { at: 1 }));
  await untilWaiting(apps, 2);
  await ok(cancel(apps[0], stack, held));
  const first = await Promise.race(calls.map(async (call, index) => ({ index, answer: await call })));
  await untilWaiting(apps, 1);
  expect(await setRule(apps[0], stack, most(2))).toBe(id);
  const [mine, theirs] = (await Promise.all(calls)) as [TestResponse, TestResponse];
  expect([mine.status, theirs.status, first.answer.status]).toEqual([200, 200, 200]);
  await end(stack, mine);
  await end(other, theirs);
});

test('in an emergency an admin passes a limit, which is on record', async () => {
  const stack = await createStack(apps[0]);
  const id = await setRule(apps[0], stack, most(1));
  await ok(create(stack));
  const other = await another(stack, 'web', 'a');
  await ok(create(other, { message: 'break-glass: fire' }));
  const events = (await listEvents(apps[0], stack.organization)).filter(
    ({ action }) => action === 'update.break-glass',
  );
  expect(events).toMatchObject([{ details: { reason: 'fire', rules: [id] } }]);
});

test.each([
  ['waits for a stack', []],
  ['may not wait in the queue', [noWait]],
])(
  'a call that %s does not hold up the others of its organization while its stack is being changed',
  async (_, rules) => {
    const stack = await createStack(apps[0]);
    for (const rule of rules) await setRule(apps[0], stack, rule);
    const [changed, free] = [await another(stack, 'web', 'a'), await another(stack, 'web', 'b')] as [
      TestStack,
      TestStack,
    ];
    await setRule(apps[0], stack, most(5));
    const held = await holdStack(changed);
    try {
      const waiting = create(changed);
      await untilStackAwaited();
      await end(free, await ok(create(free)));
      await held.end();
      await end(changed, await ok(waiting));
    } finally {
      await held.end();
    }
  },
);

test('a call that may not wait in the queue asks no more for its stack, which is being changed, once its client has left', async () => {
  const stack = await createStack(apps[0]);
  await setRule(apps[0], stack, noWait);
  await setRule(apps[0], stack, most(5));
  const { url } = await WireServer.listen(apps[0]);
  const creating = jest.spyOn(UpdateService.prototype, 'create');
  const held = await holdStack(stack);
  try {
    const client = new AbortController();
    const { auth: authorization, path } = stack;
    const headers = { authorization, accept: cliAccept, 'content-type': 'application/json' };
    const body = JSON.stringify({ metadata: { message: '', environment: {} } });
    const call = fetch(`${url}${path}/update`, { method: 'POST', headers, body, signal: client.signal });
    await untilStackAwaited();
    client.abort();
    await expect(call).rejects.toThrow('aborted');
    await expect(creating.mock.results[0]?.value).rejects.toThrow('The client has disconnected');
  } finally {
    await held.end();
    creating.mockRestore();
  }
});
