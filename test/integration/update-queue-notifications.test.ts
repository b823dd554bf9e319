import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel } from '../support/update-calls.ts';
import { keepQueueProcesses } from '../support/update-queue.ts';
import { setRule } from '../support/update-rules.ts';

const app = testApp({ settings: { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100' } });

beforeAll(() => keepQueueProcesses(app));

const most = (count: number) => ({ kind: 'concurrency', settings: { most: count } });

/** Another stack of the organization. */
async function another(of: TestStack, project: string, stack: string): Promise<TestStack> {
  const path = `/api/stacks/${of.organization}/${project}`;
  await ok(app.call('POST', path, { auth: of.auth, body: { stackName: stack } }));
  return { ...of, project, stack, path: `${path}/${stack}` };
}

const create = ({ auth, path }: TestStack): Promise<TestResponse> =>
  app.call('POST', `${path}/update`, { auth, body: { metadata: { message: '', environment: {} } } });

async function end(stack: TestStack, { json }: TestResponse): Promise<void> {
  await ok(cancel(app, stack, { path: `${stack.path}/update/${json.updateID}` }));
}

/** Waits until limits delay so many calls, which have taken their turns among themselves from then on. */
const untilDeferred = (count: number): Promise<void> =>
  until(async () => {
    const rows = await query(app, 'select 1 from update_queue_waiters where held_by is not null');
    return rows.length === count;
  }, `limits delay ${count} calls`);

/** Collects the notifications of the update queues. */
async function listenToQueue() {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  const notified: (string | undefined)[] = [];
  client.on('notification', ({ payload }) => notified.push(payload));
  await client.query('listen holdfast_update_queue');
  return { client, notified, [Symbol.asyncDispose]: () => client.end() };
}

test('the end of an update notifies the first call that waits for its stack, and calls that a limit defers', async () => {
  const stack = await createStack(app);
  const [busy, other] = [await another(stack, 'web', 'a'), await another(stack, 'web', 'b')];
  await setRule(app, stack, most(1));
  const running = await ok(create(busy));
  await using listening = await listenToQueue();
  const { notified } = listening;
  const first = create(busy);
  await untilWaiting([app], 1);
  const deferred = create(other);
  await untilDeferred(1);
  const [entry] = await query<{ id: string; organization: string }>(
    app,
    `select w.id, (select id from organizations where name = $1) as organization from update_queue_waiters w order by number limit 1`,
    [stack.organization],
  );
  await end(busy, running);
  const expected = [entry?.id, `held:${entry?.organization}`];
  await until(() => expected.every((payload) => notified.includes(payload)), 'the end is notified');
  await Promise.all([
    ok(first).then((created) => end(busy, created)),
    ok(deferred).then((created) => end(other, created)),
  ]);
});

test('only rare changes send NOTIFY in their transaction, because their commits wait for each other', async () => {
  const senders = await query<{ name: string }>(
    app,
    `select proname as name from pg_proc
     where pronamespace = 'public'::regnamespace and prosrc ~* '\\mpg_notify\\M|\\mnotify\\s+["[:alpha:]_]' order by 1`,
  );
  expect(senders.map(({ name }) => name)).toEqual(['notify_live_of_rights', 'update_rules_changed']);
  const folder = join(import.meta.dirname, '../../src');
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  // This statement is a transaction of its own, and waits for no disk.
  expect(files.filter((_, at) => /\bpg_notify\b|[`;]\s*notify\s+["\w]/i.test(texts[at] ?? ''))).toEqual([
    'shared/platform/db/notification-channel.ts',
  ]);
});

test('a change of rules notifies waiting calls of its organization alone, once for each statement', async () => {
  const stack = await createStack(app);
  await using listening = await listenToQueue();
  const { client, notified } = listening;
  await setRule(app, stack, most(2));
  await query(app, 'delete from update_rules where organization_id = (select id from organizations where name = $1)', [
    stack.organization,
  ]);
  await client.query(`notify holdfast_update_queue, 'end'`);
  await until(() => notified.includes('end'), 'all notifications are there');
  const [row] = await query<{ id: string }>(app, 'select id from organizations where name = $1', [stack.organization]);
  // Updates of other tests may be notified, too.
  const ofRules = notified.filter((payload) => payload?.startsWith('rules:'));
  expect(ofRules).toEqual([`rules:${row?.id}`, `rules:${row?.id}`]);
});
