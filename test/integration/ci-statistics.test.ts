import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createBackgroundTaskRepository } from '../../src/shared/platform/background-tasks/background-task-repository.ts';
import { startHeartbeat } from '../../src/shared/platform/processes/heartbeat.ts';
import { measureStorage } from '../../src/workers/access/measure-storage.ts';
import { startBackgroundTask } from '../../src/workers/platform/background-task.ts';
import { deleteOldCiStatistics } from '../../src/workers/statistics/delete-ci-statistics.ts';
import { sumProjectDays } from '../../src/workers/statistics/sum-project-days.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { beginning } from '../support/journal-entries.ts';
import { ask, command } from '../support/procedures.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testReplicas } from '../support/test-replicas.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, saveState } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

/** The second replica lets nobody wait. */
const apps = testReplicas(
  { HOLDFAST_LOCK_WAIT_SECONDS: '600', HOLDFAST_LONG_POLL_SECONDS: '100', HOLDFAST_DELETED_STACK_DAYS: '7' },
  {},
);

const tokenOf = ({ auth }: TestStack) => auth.slice('token '.length);

const statistics = async (stack: TestStack, token = tokenOf(stack), days = 7) =>
  (await ask(apps[0], token, 'ci.statistics', { organization: stack.organization, days })).data;
const refusals = async (stack: TestStack, more: object = {}, token = tokenOf(stack)) =>
  (await ask(apps[0], token, 'ci.refusals', { organization: stack.organization, days: 7, ...more })).data;
const drift = async (stack: TestStack, more: object = {}) =>
  (await ask(apps[0], tokenOf(stack), 'ci.drift', { organization: stack.organization, days: 7, ...more })).data;

/** Another stack of the same organization. */
async function another({ auth, organization }: TestStack, project: string, stack = 'dev'): Promise<TestStack> {
  await ok(apps[0].call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName: stack } }));
  return { auth, organization, project, stack, path: `/api/stacks/${organization}/${project}/${stack}` };
}

async function runOf(stack: TestStack, status = 'succeeded', kind = 'update'): Promise<RunningUpdate> {
  const update = await startUpdate(apps[0], stack, { kind });
  await ok(complete(apps[0], update, status));
  return update;
}

/** Asks for an update as the CLI does in a CI run. */
function create({ auth, path }: TestStack, commit: string, { at = 0 as 0 | 1, message = '' } = {}) {
  const environment = {
    'git.head': commit,
    'git.headName': 'refs/heads/main',
    'ci.build.url': `https://ci.example/${commit}`,
  };
  return apps[at].call('POST', `${path}/update`, { auth, body: { metadata: { message, environment } } });
}

/** Pretends that what was counted and refused so far was some days ago. */
const age = ({ organization }: TestStack, days: number) =>
  query(
    apps[0],
    `with o as (select id from organizations where name = $1),
       f as (update refused_runs set refused_at = refused_at - make_interval(days => $2) where organization_id = (select id from o))
     update stack_days set day = day - $2 where organization_id = (select id from o)`,
    [organization, days],
  );

test('runs are counted by day and by project, however they end, and only for stacks that the caller may read', async () => {
  const api = await createStack(apps[0]);
  const other = await createStack(apps[0]);
  await runOf(other, 'failed');
  const web = await another(api, 'web');
  const prod = await another(api, 'web', 'prod');
  await runOf(api);
  await runOf(api, 'failed');
  await runOf(api, 'failed', 'preview');
  const longest = await startUpdate(apps[0], web);
  await query(
    apps[0],
    `update updates set started_at = started_at - interval '1 hour', waited_ms = 90000 where id = $1`,
    [longest.id],
  );
  await ok(complete(apps[0], longest));
  await ok(cancel(apps[0], web, await startUpdate(apps[0], web)));
  await age(api, 2);
  const lost = await startUpdate(apps[0], prod);
  await expire(apps[0], lost.id);
  // Its lease has expired: the next one ends it.
  await runOf(prod);
  // Never started: no run.
  await ok(cancel(apps[0], api, { path: `${api.path}/update/${(await ok(create(api, 'abc1234'))).json.updateID}` }));

  const { days, isTrimmed, projects } = await statistics(api);
  expect(isTrimmed).toBe(false);
  expect(days).toHaveLength(7);
  const [early, , today] = days.slice(-3);
  expect(early).toMatchObject({
    runs: 4,
    failed: 1,
    cancelled: 1,
    previews: 1,
    failedPreviews: 1,
    waits: 1,
    waitedMs: 90_000,
  });
  expect(today).toMatchObject({ runs: 2, failed: 0, cancelled: 1, previews: 0 });
  expect(days.slice(0, 4).every(({ runs }: { runs: number }) => runs === 0)).toBe(true);
  const [ofApi, ofWeb] = projects;
  expect(ofApi).toMatchObject({ project: 'proj', runs: 2, failed: 1, previews: 1, waitedMs: 0 });
  expect(ofWeb).toMatchObject({ project: 'web', runs: 4, failed: 0, cancelled: 2, waitedMs: 90_000 });
  expect(ofWeb.longestMs).toBeGreaterThan(3_599_000);
  expect(ofWeb.runMs).toBeGreaterThan(3_599_000);
  expect(projects).toHaveLength(2);
  // The longest of several projects and days, not their sum.
  expect(ofWeb.longestMs).toBe(Math.max(...days.map(({ longestMs }: { longestMs: number }) => longestMs)));

  const blind = await person(apps[0], api.organization, 'member');
  await grant(apps[0], blind.organizationId, { userId: blind.userId }, 'deny', ['read'], { stacks: 'web/*' });
  expect(await statistics(api, blind.token)).toMatchObject({
    isTrimmed: true,
    projects: [{ project: 'proj', runs: 2 }],
  });
  // The earlier runs are now those of the first day that is left out.
  await age(api, 5);
  expect((await statistics(api)).projects).toMatchObject([{ project: 'web', runs: 2 }]);
  await sumProjectDays(apps[0].context, new AbortController().signal);
  expect((await statistics(api)).projects).toMatchObject([{ project: 'web', runs: 2 }]);
  expect((await statistics(api, blind.token)).projects).toEqual([]);
});

test('sums of projects are those of their stacks, however stacks come, move and leave', async () => {
  const { signal } = new AbortController();
  const first = await createStack(apps[0]);
  const second = await another(first, 'proj', 'prod');
  const third = await another(first, 'web');
  // Each stack must be looked at: others of the same project could be denied.
  const reader = await person(apps[0], first.organization, 'member');
  await grant(apps[0], reader.organizationId, { userId: reader.userId }, 'deny', ['read'], { stacks: 'none/none' });
  const moved = { ...second, project: 'web', path: `/api/stacks/${first.organization}/web/prod` };
  const deleted = `/api/orgs/${first.organization}/deleted-stacks`;
  const remove = (of: TestStack) => ok(apps[0].call('DELETE', `${of.path}?force=true`, { auth: of.auth }));
  const restore = async () => {
    const { json } = await ok(apps[0].call('GET', deleted, { auth: first.auth }));
    await ok(apps[0].call('POST', `${deleted}/${json.deletedStacks[0].id}/restore`, { auth: first.auth, body: {} }));
  };
  const both = async () =>
    Promise.all(
      [tokenOf(first), reader.token].map(async (token) => {
        const { days, projects } = await statistics(first, token, 90);
        const deliveries = await ask(apps[0], token, 'ci.delivery', { organization: first.organization, days: 90 });
        const { isTrimmed: _, ...delivered } = deliveries.data;
        return { days, projects, delivered };
      }),
    );
  const withoutLongest = (all: object) => JSON.stringify(all).replaceAll(/"longestMs":\d+/g, '');
  const lengthen = (of: TestStack, ms: number) =>
    query(
      apps[0],
      `update stack_days set longest_ms = $2, run_ms = $2 where stack_id in (
         select stack_id from stack_listings where tag_name = '' and stack_name = $3 and project_name = $4 and organization_id = (
           select id from organizations where name = $1))`,
      [of.organization, ms, of.stack, of.project],
    );
  const deliver = (of: TestStack, lead: number[], restore: number[]) =>
    query(
      apps[0],
      `update stack_days set changed = changed + 1, lead_seconds = lead_seconds || $4::int[], restore_seconds = $5 where runs > 0 and stack_id in (
         select stack_id from stack_listings where tag_name = '' and stack_name = $2 and project_name = $3 and organization_id = (
           select id from organizations where name = $1))`,
      [of.organization, of.stack, of.project, lead, restore],
    );
  const steps: [string, () => Promise<unknown>, number][] = [
    ['runs', () => Promise.all([runOf(first), runOf(second, 'failed'), runOf(third)]), 3],
    ['runs of different length', () => Promise.all([lengthen(first, 5_000), lengthen(second, 9_000)]), 3],
    ['deliveries', () => Promise.all([deliver(first, [7, 90_001], [299]), deliver(second, [7, 3_611], [])]), 3],
    ['a run of another day', () => age(first, 20), 3],
    ['a preview', () => runOf(third, 'failed', 'preview'), 3],
    ['a cancelled run', async () => ok(cancel(apps[0], third, await startUpdate(apps[0], third))), 4],
    [
      'a move',
      () =>
        ok(
          apps[0].call('POST', `${second.path}/rename`, {
            auth: first.auth,
            body: { newName: 'prod', newProject: 'web' },
          }),
        ),
      4,
    ],
    ['a run after the move', () => runOf(moved), 5],
    ['a delivery after the move', () => Promise.all([deliver(moved, [5], [10_000_000]), deliver(third, [8], [])]), 5],
    ['a deletion', () => remove(moved), 3],
    ['a run beside the deleted stack', () => runOf(third), 4],
    ['a restoration', restore, 6],
    ['a run after the restoration', () => runOf(moved), 7],
    ['a shorter longest run', () => lengthen(moved, 10), 7],
    ['the deletion of the only stack', () => remove(first), 6],
    ['the deletion of all', () => Promise.all([remove(moved), remove(third)]), 0],
  ];
  const delivered: unknown[] = [];
  for (const [at, [name, step, runs]] of steps.entries()) {
    await step();
    const [all, each] = await both();
    const counted = all?.days.reduce((sum: number, day: { runs: number }) => sum + day.runs, 0);
    expect({ name, counted, sums: withoutLongest(all as object) }).toEqual({
      ...{ name, counted: runs, sums: withoutLongest(each as object) },
    });
    // Several changes at once, and each alone.
    if (at % 3 === 1) continue;
    await sumProjectDays(apps[0].context, signal);
    const [summed, read] = await both();
    expect({ name, ...summed }).toEqual({ name, ...read });
    expect(
      await query(apps[0], 'select id from project_day_changes union all select id from project_day_delivery_changes'),
    ).toEqual([]);
    delivered.push(summed?.delivered.total.leadTime);
  }
  // Rounded: of an hour and 11 s, and of a day, an hour and a second.
  expect(delivered).toContainEqual({ count: 4, medianSeconds: 7, p90Seconds: 90_000 });
  expect(await sumProjectDays(apps[0].context, signal)).toBe(0);
});

/** A stack whose run is summed, in a project whose longest run, of 5 s, has left. `organization`: its id, as SQL. */
async function withLongestLeft() {
  const stack = await createStack(apps[0]);
  await runOf(stack);
  const { signal } = new AbortController();
  await sumProjectDays(apps[0].context, signal);
  const organization = `(select id from organizations where name = '${stack.organization}')`;
  await query(
    apps[0],
    `update project_days set longest_ms = 5000, left_ms = 5000 where organization_id = ${organization}`,
  );
  return { organization, signal, stack };
}

test('a longest run that has left is looked up even if a shorter one leaves before that', async () => {
  const { organization, signal, stack } = await withLongestLeft();
  for (const ms of [2_000, 3_000])
    await query(apps[0], `update stack_days set longest_ms = ${ms} where organization_id = ${organization}`);
  await sumProjectDays(apps[0].context, signal);
  expect((await statistics(stack)).projects).toMatchObject([{ longestMs: 3_000 }]);
});

test('the longest run of a project is not forgotten if another process adds one while a worker looks for it', async () => {
  const { organization, signal } = await withLongestLeft();
  const other = new pg.Client({ connectionString: apps[0].database.ownerUrl });
  await other.connect();
  await other.query(`begin; update project_days set runs = runs where organization_id = ${organization}`);
  const summed = sumProjectDays(apps[0].context, signal);
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await until(async () => (await query(apps[0], waiting)).length > 0, 'the worker waits');
  await query(apps[0], `update stack_days set longest_ms = 3000 where organization_id = ${organization}`);
  await other.query(`with taken as (delete from project_day_changes returning longest_ms)
    update project_days d set longest_ms = greatest(d.longest_ms, (select max(longest_ms) from taken)) where organization_id = ${organization}`);
  await other.query('commit');
  await other.end();
  await summed;
  const kept = `select longest_ms::int as longest from project_days where organization_id = ${organization}`;
  expect(await query(apps[0], kept)).toEqual([{ longest: 3_000 }]);
});

test('a waiting run is visible, and the user who evicts it is named to it, recorded and listed', async () => {
  const stack = await createStack(apps[0]);
  const { organization, project, stack: name } = stack;
  const holder = await startUpdate(apps[0], stack);
  const waiting = create(stack, 'aaaa111');
  await untilWaiting(apps, 1);
  const list = async () => (await ask(apps[0], tokenOf(stack), 'queue.list', { organization })).data.items;
  const [, waiter] = await list();
  expect(waiter).toMatchObject({
    ...{ cause: 'lock', kind: 'update', commit: 'aaaa111', branch: 'main', ciUrl: 'https://ci.example/aaaa111' },
    why: 'waits for the stack',
  });
  const ref = { organization, project, stack: name };
  const place = { ...ref, placeId: waiter.placeId };
  // A place of another stack is none of this one.
  const elsewhere = await createStack(apps[0]);
  const wrong = { organization: elsewhere.organization, project, stack: name, placeId: waiter.placeId };
  expect(await command(apps[0], tokenOf(elsewhere), 'queue.evict', wrong)).toMatchObject({ status: 404 });
  expect(await command(apps[0], tokenOf(stack), 'queue.evict', { ...place, reason: 'a\nb' })).toMatchObject({
    status: 400,
  });
  expect(await command(apps[0], tokenOf(stack), 'queue.evict', { ...place, reason: 'not on a Friday' })).toMatchObject({
    error: null,
  });
  const { json, status } = await waiting;
  expect(status).toBe(409);
  expect(json.message).toMatch(
    / has removed this run from the queue of the stack: not on a Friday\. It has changed nothing\. `pulumi cancel` does not help$/,
  );
  expect(await command(apps[0], tokenOf(stack), 'queue.evict', place)).toMatchObject({ status: 404 });
  expect((await list()).map(({ position }: { position: number }) => position)).toEqual([0]);
  const [found] = (await refusals(stack)).items;
  expect(found).toMatchObject({ reason: 'evicted', commit: 'aaaa111', branch: 'main', kind: 'update', times: 1 });
  expect(found.message).toMatch(/^Removed from the queue by .*: not on a Friday$/);
  const actions = await query<{ action: string; object: string }>(
    apps[0],
    `select action, object from audit_events where action = 'update.evict'`,
  );
  expect(actions).toEqual([{ action: 'update.evict', object: `${organization}/${project}/${name}` }]);
  await ok(complete(apps[0], holder));
});

test('refused, superseded and stopped runs are listed by page, and counted by reason', async () => {
  const stack = await createStack(apps[0]);
  const other = await createStack(apps[0]);
  await setRule(apps[0], other, { kind: 'freeze', settings: {} });
  expect((await create(other, 'ffff000')).status).toBe(409);

  await setRule(apps[0], stack, { kind: 'supersede', settings: { by: 'branch' } });
  const holder = await startUpdate(apps[0], stack);
  const older = create(stack, 'aaaa111');
  await untilWaiting(apps, 1);
  const newer = create(stack, 'bbbb222');
  expect((await older).status).toBe(409);
  // Those who do not wait are refused at once; repeats are counted.
  for (const _ of [1, 2, 3]) expect((await create(stack, 'cccc333', { at: 1 })).status).toBe(409);
  await ok(complete(apps[0], holder));
  const path = `${stack.path}/update/${(await ok(newer)).json.updateID}`;
  await ok(apps[0].call('POST', path, { auth: stack.auth, body: {} }));
  await ok(cancel(apps[0], stack, { path }));
  await setRule(apps[0], stack, { kind: 'require-preview', settings: { mode: 'refuse' } });
  expect((await create(stack, 'dddd444')).status).toBe(403);
  await setRule(apps[0], stack, { kind: 'freeze', settings: {}, note: 'release' });
  expect((await create(stack, 'eeee555')).status).toBe(409);

  const page = await refusals(stack, { limit: 2 });
  const rest = await refusals(stack, { limit: 10, cursor: page.next });
  const all = [...page.items, ...rest.items];
  expect(rest.next).toBeNull();
  expect(all.map(({ commit, reason, times }) => [reason, commit, times])).toEqual([
    ['frozen', 'eeee555', 1],
    ['preview-needed', 'dddd444', 1],
    ['busy', 'cccc333', 3],
    ['superseded', 'aaaa111', 1],
  ]);
  expect(all.at(-1)).toMatchObject({
    ciUrl: 'https://ci.example/aaaa111',
    message: expect.stringMatching(/^Superseded by commit bbbb222/),
  });
  expect(all.at(-1).waitedMs).toBeGreaterThan(0);
  expect((await refusals(stack, { reasons: ['superseded', 'frozen'] })).items).toHaveLength(2);
  expect((await refusals(stack, { project: 'none' })).items).toEqual([]);
  const summary = await statistics(stack);
  const counts = Object.fromEntries(
    summary.refusals.map(({ reason, times }: { reason: string; times: number }) => [reason, times]),
  );
  expect(counts).toMatchObject({ superseded: 1, frozen: 1, 'preview-needed': 1 });
  expect(summary.days.at(-1).refused).toBe(all.reduce((sum, { times }) => sum + times, 0));
  expect(summary.projects).toMatchObject([{ project: 'proj', refused: summary.days.at(-1).refused }]);
  expect(summary.days.at(-1).waitedMs).toBeGreaterThan(all.at(-1).waitedMs);

  // Only for as long as pages show it.
  await age(stack, 98);
  expect(await deleteOldCiStatistics(apps[0].context, new AbortController().signal)).toBe(0);
  await age(stack, 3);
  expect(await deleteOldCiStatistics(apps[0].context, new AbortController().signal)).toBe(1 + all.length);
  expect((await refusals(other)).items).toMatchObject([{ reason: 'frozen', commit: 'ffff000' }]);
});

test('a stop by a change limit is listed with its update; a drained update is not', async () => {
  const stack = await createStack(apps[0]);
  await setRule(apps[0], stack, { kind: 'change-limit', settings: { changes: 0 } });
  const update = await startUpdate(apps[0], stack, { journal: true });
  const resource = { urn: 'urn:pulumi:dev::proj::a:b:C::none', type: 'a:b:C', custom: true };
  const batch = [beginning(1, 1, { resource, type: 'deleting' })];
  expect((await append(apps[0], update, batch)).status).toBe(403);
  expect((await append(apps[0], update, batch)).status).toBe(403);
  await ok(complete(apps[0], update, 'failed'));
  const drained = await startUpdate(apps[0], stack, { journal: true });
  await ok(apps[0].call('POST', `${drained.path}/drain`, { auth: stack.auth, body: {} }));
  await ok(complete(apps[0], drained, 'failed'));
  expect((await refusals(stack)).items).toMatchObject([
    { reason: 'change-limit', updateId: update.id, stack: 'dev', kind: 'update' },
  ]);
});

test('drift has its beginning and its end', async () => {
  const stack = await createStack(apps[0]);
  const clean = await another(stack, 'clean');
  const refresh = async (of: TestStack, state: object) => {
    const update = await startUpdate(apps[0], of, { kind: 'refresh' });
    await ok(complete(apps[0], update));
    const { detected = false, changes = '{}' } = state as { detected?: boolean; changes?: string };
    await query(apps[0], `update drift_runs set state = 'done', is_detected = $2, changes = $3 where update_id = $1`, [
      update.id,
      detected,
      changes,
    ]);
    return update.id;
  };
  await refresh(clean, {});
  expect((await drift(stack)).items).toEqual([]);
  const [first, second] = [
    await refresh(stack, { detected: true, changes: '{"update":1}' }),
    await refresh(stack, { detected: true, changes: '{"update":2,"delete":1}' }),
  ];
  const endOf = async (id: string) =>
    (await query<{ at: Date }>(apps[0], 'select ended_at as at from updates where id = $1', [id]))[0]?.at.toISOString();
  const drifted = {
    project: 'proj',
    stack: 'dev',
    updateId: second,
    differences: 3,
    since: await endOf(first),
    foundAt: await endOf(second),
  };
  expect((await drift(stack)).items).toMatchObject([{ ...drifted, cleanAt: null }]);
  // Neither a failed update nor `destroy --preview-only` repairs anything.
  await runOf(stack, 'failed');
  const destruction = await startUpdate(apps[0], stack, { kind: 'destroy', dryRun: true });
  await ok(complete(apps[0], destruction));
  expect((await drift(stack)).items).toMatchObject([{ ...drifted, cleanAt: null }]);
  const repairing = await runOf(stack);
  expect((await drift(stack)).items).toMatchObject([{ ...drifted, cleanUpdateId: repairing.id }]);
  expect((await drift(stack, { onlyDrifted: true })).items).toEqual([]);
  // Drift of another stack that a later look has not found any more.
  await refresh(clean, { detected: true, changes: '{"update":1}' });
  const look = await refresh(clean, {});
  const page = await drift(stack, { limit: 1 });
  expect(page.items).toMatchObject([{ project: 'clean', cleanUpdateId: look }]);
  expect((await drift(stack, { limit: 1, cursor: page.next })).items).toMatchObject([{ project: 'proj' }]);
  expect((await drift(await createStack(apps[0]))).items).toEqual([]);
});

test('`up --refresh` repairs the drift that it finds; a later drift begins after it', async () => {
  const stack = await createStack(apps[0]);
  const find = async (kind: string) => {
    const update = await startUpdate(apps[0], stack, { kind });
    if (kind === 'update')
      await query(apps[0], `update updates set environment = '{"pulumi.flag.refresh":"true"}' where id = $1`, [
        update.id,
      ]);
    await ok(complete(apps[0], update));
    const [{ at } = { at: new Date(0) }] = await query<{ at: Date }>(
      apps[0],
      `with found as (update drift_runs set state = 'done', is_detected = true, changes = '{"update":1}' where update_id = $1 returning update_id)
       select ended_at as at from updates join found on update_id = id`,
      [update.id],
    );
    return { id: update.id, at: at.toISOString() };
  };
  const repaired = await find('update');
  expect((await drift(stack)).items).toMatchObject([{ updateId: repaired.id, cleanUpdateId: repaired.id }]);
  const later = await find('refresh');
  expect((await drift(stack)).items).toMatchObject([{ updateId: later.id, since: later.at, cleanAt: null }]);
});

describe('for operators', () => {
  const operator = async () => {
    const { token, userId } = await person(apps[0], 'operators', 'viewer');
    await query(apps[0], 'update users set site_admin = true where id = $1', [userId]);
    return async (procedure: string, input: object = {}) => {
      const { data, error } = await ask(apps[0], token, `operator.${procedure}`, input);
      expect(error).toBeNull();
      return data;
    };
  };

  test('locks, slow updates and storage are those of all organizations', async () => {
    const read = await operator();
    const [one, two] = [await createStack(apps[0]), await createStack(apps[0])];
    const [first, second] = [await startUpdate(apps[0], one), await startUpdate(apps[0], two)];
    await ok(saveState(apps[0], first, 5));
    await query(
      apps[0],
      `update updates set created_at = '2020-01-01', started_at = started_at - interval '9 days' where id = $1`,
      [first.id],
    );
    await query(apps[0], `update updates set created_at = '2020-01-02' where id = $1`, [second.id]);
    const page = await read('locks', { limit: 1 });
    expect(page.items).toMatchObject([
      { updateId: first.id, organization: one.organization, waiting: 0, isExpired: false },
    ]);
    expect((await read('locks', { limit: 1, cursor: page.next })).items).toMatchObject([{ updateId: second.id }]);
    for (const update of [first, second]) await ok(complete(apps[0], update));
    const [slowest] = (await read('slow')).items;
    expect(slowest).toMatchObject({ updateId: first.id, status: 'succeeded', stack: 'dev' });
    expect(slowest.lastedMs).toBeGreaterThan(9 * 86_400_000);

    expect((await read('organizations')).items).toEqual([]);
    expect(await measureStorage(apps[0].context)).toBeGreaterThan(1);
    // Not due again.
    expect(await measureStorage(apps[0].context)).toBe(0);
    const most = await read('organizations', { limit: 1 });
    expect(most.items).toMatchObject([{ organization: one.organization, stacks: 1, bytesBefore: null }]);
    expect(most.items[0].stateBytes).toBeGreaterThan(0);
    const rest = await read('organizations', { limit: 200, cursor: most.next });
    expect(rest.items.map(({ organization }: { organization: string }) => organization)).not.toContain(
      one.organization,
    );
    await query(apps[0], 'update organization_storage set day = day - 31');
    await query(apps[0], `update organization_storage set measured_at = measured_at - interval '1 day'`);
    await measureStorage(apps[0].context);
    expect((await read('organizations', { limit: 1 })).items[0].bytesBefore).toBe(most.items[0].bytes);
    const { databaseBytes, days, tables } = await read('storage');
    expect(databaseBytes).toBeGreaterThan(1_000_000);
    expect(days).toHaveLength(2);
    expect(tables.map(({ name }: { name: string }) => name)).toContain('updates');
  });

  test('processes, parts, queues and tasks are shown', async () => {
    const read = await operator();
    startHeartbeat(apps[0].context, 'server');
    const processes = async () => (await read('health')).processes;
    await until(async () => (await processes()).length === 1, 'the process has said that it is alive');
    expect(await read('health')).toMatchObject({
      ...{ database: { isUp: true, lastFailure: null }, blobs: { isUp: true }, queue: null },
      processes: [{ role: 'server', pid: process.pid, isLate: false }],
    });
    // Again if it has said so once more meanwhile.
    await until(async () => {
      await query(apps[0], `update processes set seen_at = seen_at - interval '1 minute'`);
      return (await processes())[0].isLate;
    }, 'the process is late');
    expect(await processes()).toHaveLength(1);
    expect(await read('queues')).toMatchObject({
      redis: null,
      queues: [{ name: 'small', waiting: 0 }, { name: 'large' }],
    });

    const { config, db, logger, metrics, readOnly } = apps[0].context;
    const runs = createBackgroundTaskRepository(db);
    const everySlice = { config: { ...config, sweepSeconds: 0.05 }, logger, metrics, readOnly };
    let outcome = async (): Promise<unknown> => 7;
    const stop = startBackgroundTask(everySlice, runs, randomUUID(), {
      name: 'tested',
      everySeconds: 0,
      run: () => outcome(),
    });
    const tested = async () => (await read('maintenance')).runs.find(({ name }: { name: string }) => name === 'tested');
    try {
      await until(async () => (await tested())?.count === 7, 'a run has said what it has done');
      outcome = () => Promise.reject(new Error('the store is away'));
      await until(async () => (await tested())?.error === 'the store is away', 'a run has failed');
      outcome = async () => undefined;
      await until(async () => (await tested())?.failedAt === null, 'a run has succeeded');
    } finally {
      await stop();
    }
    const { migrations, waiting } = await read('maintenance');
    expect(migrations).toHaveLength(10);
    expect(waiting).toMatchObject({ index: expect.any(Number), archiving: expect.any(Number), deliveries: 0 });
  });
});
