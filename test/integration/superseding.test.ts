import { expect, test } from '@jest/globals';
import pg from 'pg';
import { createUpdateQueueRepository } from '../../src/shared/updates/update-queue-repository.ts';
import { query } from '../support/database.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestResponse } from '../support/test-app.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';
import { cancel } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

const settings = { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' };
const apps = testReplicas(settings, settings);

interface Run {
  readonly commit: string;
  readonly branch?: string;
  readonly kind?: string;
  readonly build?: string;
  readonly at?: 0 | 1;
  readonly query?: string;
}

/** Asks for an update as the CLI does in a CI run. */
function create(
  stack: TestStack,
  { at = 0, branch = 'refs/heads/main', build, commit, kind = 'update', ...rest }: Run,
) {
  const environment = {
    'git.head': commit,
    'git.headName': branch,
    'ci.system': 'X',
    'ci.build.url': `https://ci.example/${commit}`,
    ...(build === undefined ? {} : { 'ci.build.number': build }),
  };
  return apps[at].call('POST', `${stack.path}/${kind}${rest.query ?? ''}`, {
    auth: stack.auth,
    body: { metadata: { message: '', environment } },
  });
}

const cancelById = (stack: TestStack, id: string) => ok(cancel(apps[0], stack, { path: `${stack.path}/update/${id}` }));

/** A stack that an update of its own holds, with the rule or the tag. */
async function heldStack(by: 'rule' | 'tag' | 'nothing' = 'rule'): Promise<{ stack: TestStack; first: string }> {
  const stack = await createStack(apps[0]);
  if (by === 'rule') await setRule(apps[0], stack, { kind: 'supersede', settings: { by: 'branch' } });
  const body = { supersede: 'branch' };
  if (by === 'tag') await ok(apps[0].call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body }));
  return { stack, first: (await startUpdate(apps[0], stack)).id };
}

/** Ends the update that holds the stack; then all of these run, one after another. */
async function expectToRun(stack: TestStack, first: string, calls: readonly Promise<TestResponse>[]): Promise<void> {
  await cancelById(stack, first);
  for (const call of calls) {
    const { json, status } = await call;
    expect(status).toBe(200);
    await cancelById(stack, json.updateID);
  }
}

test.each(['rule', 'tag'] as const)('a newer commit sends a waiting run of the branch away, by %s', async (by) => {
  const { first, stack } = await heldStack(by);
  const older = create(stack, { commit: 'aaa' });
  await untilWaiting(apps, 1);
  const others = [
    create(stack, { commit: 'aaa', branch: 'refs/heads/other' }),
    create(stack, { commit: 'aaa', kind: 'refresh' }),
  ];
  await untilWaiting(apps, 3);
  const newer = create(stack, { commit: 'bbb', at: 1 });
  const { json, status } = await older;
  expect(status).toBe(409);
  expect(json.message).toMatch(/^Superseded by commit bbb \(https:\/\/ci\.example\/bbb\), which also waits/);
  await untilWaiting(apps, 3);
  // The one that runs is of an older commit, too.
  const [row] = await query<{ status: string }>(apps[0], 'select status from updates where id = $1', [first]);
  expect(row?.status).toBe('running');
  // Two may be the first of them: they arrived at once.
  await cancelById(stack, first);
  let left = [...others, newer];
  while (left.length > 0) {
    const { at, answer } = await Promise.race(left.map(async (call, index) => ({ at: index, answer: await call })));
    expect(answer.status).toBe(200);
    left = left.filter((_, index) => index !== at);
    await cancelById(stack, answer.json.updateID);
  }
});

test('the same commit, an earlier build, and runs without the setting evict none', async () => {
  const { first, stack } = await heldStack();
  const calls = [create(stack, { commit: 'aaa', build: '7' })];
  await untilWaiting(apps, 1);
  calls.push(create(stack, { commit: 'aaa', build: '8' }));
  await untilWaiting(apps, 2);
  calls.push(create(stack, { commit: 'bbb', build: '6' }));
  await untilWaiting(apps, 3);
  await expectToRun(stack, first, calls);
  const without = await heldStack('nothing');
  const waiting = [create(without.stack, { commit: 'aaa' })];
  await untilWaiting(apps, 1);
  waiting.push(create(without.stack, { commit: 'bbb' }));
  await untilWaiting(apps, 2);
  await expectToRun(without.stack, without.first, waiting);
});

test('a run between two calls is evicted when it calls again, and takes no queue position meanwhile', async () => {
  const { first, stack } = await heldStack();
  await using short = await createTestApp({
    database: apps[0].database,
    settings: { ...settings, HOLDFAST_LONG_POLL_SECONDS: '1' },
  });
  const environment = { 'git.head': 'aaa', 'git.headName': 'main' };
  const body = { metadata: { message: '', environment } };
  const asked = await short.call('POST', `${stack.path}/update`, { auth: stack.auth, body });
  expect(asked.status).toBe(307);
  const newer = create(stack, { commit: 'bbb', branch: 'main' });
  await untilWaiting(apps, 1);
  const again = await create(stack, { commit: 'aaa', branch: 'main', query: asked.headers['location'] as string });
  expect(again.json.message).toMatch(/^Superseded by commit bbb/);
  await expectToRun(stack, first, [newer]);
});

test('a run that has lost its position is a new run, but evicts none', async () => {
  const { first, stack } = await heldStack();
  const newer = create(stack, { commit: 'bbb' });
  await untilWaiting(apps, 1);
  const late = create(stack, { commit: 'aaa', query: `?entry=${crypto.randomUUID()}&hop=1` });
  await untilWaiting(apps, 2);
  await expectToRun(stack, first, [newer, late]);
});

test('an eviction that is rolled back ends no wait, although it was notified', async () => {
  const { first, stack } = await heldStack();
  const call = create(stack, { commit: 'aaa' });
  await untilWaiting(apps, 1);
  const client = new pg.Client({ connectionString: apps[0].database.ownerUrl });
  await client.connect();
  try {
    const notified: (string | undefined)[] = [];
    client.on('notification', ({ payload }) => notified.push(payload));
    await client.query('listen holdfast_update_queue');
    const [entry] = await query<{ id: string; stack: string }>(
      apps[0],
      'select id, stack_id as stack from update_queue_waiters',
    );
    if (!entry) throw new Error('No call waits');
    const evicting = apps[0].context.db.inTransaction(async (tx) => {
      await createUpdateQueueRepository(tx).evict(entry.id, entry.stack, { login: 'ada', reason: 'outdated' });
      throw new Error('rolled back');
    });
    await expect(evicting).rejects.toThrow('rolled back');
    await until(() => notified.includes(`superseded:${entry.id}`), 'the eviction is notified');
  } finally {
    await client.end();
  }
  await expectToRun(stack, first, [call]);
});

test('a lost notification does not matter, and a superseded queue entry gets no turn', async () => {
  const { first, stack } = await heldStack();
  const older = create(stack, { commit: 'aaa' });
  await untilWaiting(apps, 1);
  await query(apps[0], `update update_queue_waiters set superseded_by = '{"commit":"ccc","url":null}'`);
  await cancelById(stack, first);
  const { json } = await older;
  expect(json.message).toMatch(/^Superseded by commit ccc, which/);
});

test('a run that gets its lost entry back is superseded by a newer one that has come meanwhile', async () => {
  const { first, stack } = await heldStack();
  const older = create(stack, { commit: 'aaa', build: '7' });
  await untilWaiting(apps, 1);
  const other = new pg.Client({ connectionString: apps[0].database.ownerUrl });
  await other.connect();
  try {
    await other.query('begin');
    await other.query('delete from update_queue_waiters');
    const { rows } = await other.query('select pg_backend_pid() as pid');
    const newer = create(stack, { commit: 'bbb', build: '8', at: 1 });
    const blocked = 'select 1 from pg_stat_activity where $1 = any (pg_blocking_pids(pid))';
    await until(async () => (await query(apps[0], blocked, [rows[0]?.pid])).length > 0, 'the newer one waits');
    await other.query('commit');
    const { json, status } = await older;
    expect([status, json.message]).toEqual([409, expect.stringMatching(/^Superseded by commit bbb/)]);
    await expectToRun(stack, first, [newer]);
  } finally {
    await other.end();
  }
});

test('a newer commit sends no run away that waits for another stack, also if its entry was lost', async () => {
  const [one, other] = [await heldStack('tag'), await heldStack('tag')];
  const older = create(one.stack, { commit: 'aaa', build: '7' });
  await untilWaiting(apps, 1);
  const newer = create(other.stack, { commit: 'bbb', build: '8', at: 1 });
  await untilWaiting(apps, 2);
  const entries = 'from update_queue_waiters';
  await query(apps[0], `delete ${entries} where number = (select min(number) ${entries})`);
  const back = `select superseded_by ${entries}`;
  await until(async () => (await query(apps[0], back)).length === 2, 'the entry is back');
  expect(await query(apps[0], back)).toEqual([{ superseded_by: null }, { superseded_by: null }]);
  await expectToRun(one.stack, one.first, [older]);
  await expectToRun(other.stack, other.first, [newer]);
});

test('the tag must have a meaning', async () => {
  const stack = await createStack(apps[0]);
  const { status } = await apps[0].call('PATCH', `${stack.path}/tags`, {
    auth: stack.auth,
    body: { supersede: 'all' },
  });
  expect(status).toBe(400);
});

test('an evicted run stays evicted while its process cannot reach the database, and when it restores its entries', async () => {
  const { first, stack } = await heldStack('nothing');
  const entries = createUpdateQueueRepository(apps[0].context.db);
  const rows = await query<{ stack_id: string; token_id: string }>(
    apps[0],
    'select stack_id, token_id from updates where id = $1',
    [first],
  );
  const { stack_id: stackId, token_id: tokenId } = rows[0] as (typeof rows)[number];
  const processId = crypto.randomUUID();
  const lost = [];
  await entries.renewProcess(processId, 60);
  for (const id of [crypto.randomUUID(), crypto.randomUUID()]) {
    const shown = { kind: 'update', commit: null, branch: null, url: null };
    const entry = { id, stackId, tokenId, isUrgent: false, run: null, shown, tags: '{}', waitSeconds: 1 };
    const { number } = await entries.join({ ...entry, processId, supersedes: false });
    lost.push({ ...entry, number, waitedSeconds: 1, isLateNotified: false });
  }
  const [evicted, other] = lost.map(({ id }) => id) as [string, string];
  expect(await entries.evict(evicted, stackId, { login: 'ada', reason: 'outdated' })).toBe(true);
  const listed = async () =>
    Object.fromEntries((await entries.listOf(processId)).map((row) => [row.id, row.isSuperseded]));
  await entries.renewProcess(processId, -60);
  await entries.removeGone();
  expect(await listed()).toEqual({ [evicted]: true });
  await entries.renewProcess(processId, 60);
  await entries.restore(processId, lost);
  expect(await listed()).toEqual({ [evicted]: true, [other]: false });
  await entries.renewProcess(processId, -601);
  await entries.removeGone();
  expect(await listed()).toEqual({});
  await cancelById(stack, first);
});
