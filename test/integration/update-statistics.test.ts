import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { registerDeliveryGauges } from '../../src/api/statistics/delivery-metrics.ts';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { createMetrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { DocumentMissingError } from '../../src/shared/state/checkpoints/document-store.ts';
import { findUnusualOfUpdate } from '../../src/shared/statistics/unusual-updates.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { untilWaiting } from '../support/queue-metrics.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete, saveVerbatim } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  app = await createTestApp({ settings: { eventArchiveDelaySeconds: 0 } });
});
afterAll(() => app?.[Symbol.asyncDispose]());
beforeEach(async () => {
  stack = await createStack(app);
});

const commit = 'ab12'.repeat(10);
const environment = { 'git.head': commit, 'git.dirty': 'false' };
const urn = (name: string) => `urn:pulumi:dev::proj::t:i:T::${name}`;

interface Run {
  readonly kind?: string;
  readonly dryRun?: boolean;
  /** Instead of the stack of the test. */
  readonly on?: TestStack;
  readonly environment?: object;
  readonly changes?: object;
  /** As in `[name, operation, from, to]`. */
  readonly steps?: readonly (readonly [string, string, number, number])[];
  /** Names by the names on which they depend. */
  readonly state?: Readonly<Record<string, readonly string[]>>;
  readonly status?: string;
}

/** A run of the CLI with its events and its state. Returns the path of the update. */
async function run({
  changes = {},
  dryRun = false,
  environment: checkout = environment,
  kind = 'update',
  on: { auth, path: stackPath } = stack,
  state,
  status,
  steps = [],
}: Run = {}): Promise<string> {
  const body = { metadata: { message: '', environment: checkout }, options: { dryRun } };
  const { json } = await ok(app.call('POST', `${stackPath}/${kind}`, { auth, body }));
  const path = `${stackPath}/update/${json.updateID}`;
  const started = await ok(app.call('POST', path, { auth, body: {} }));
  const update = {
    id: json.updateID,
    path,
    lease: `update-token ${started.json.token}`,
    version: started.json.version,
  };
  if (state) {
    const resources = Object.entries(state).map(([name, dependencies]) => ({
      ...{ urn: urn(name), type: 't:i:T', custom: true, id: name, dependencies: dependencies.map(urn) },
    }));
    await ok(saveVerbatim(app, update, 1, { version: 3, deployment: { manifest: {}, resources } }));
  }
  const events = [
    ...steps
      .flatMap(([name, op, from, to]) => {
        const metadata = { op, urn: urn(name), type: 't:i:T' };
        return [
          { timestamp: from, resourcePreEvent: { metadata } },
          { timestamp: to, resOutputsEvent: { metadata } },
        ];
      })
      .sort((a, b) => a.timestamp - b.timestamp),
    ...steps
      .filter(([name]) => name === 'db')
      .map(([name]) => ({ timestamp: 1, diagnosticEvent: { urn: urn(name), message: 'Retry #1; creation failed' } })),
    { timestamp: 0, summaryEvent: { resourceChanges: changes } },
  ].map((event, sequence) => ({ sequence, ...event }));
  await ok(app.call('POST', `${path}/events/batch`, { auth: update.lease, body: { events } }));
  await ok(complete(app, update, status));
  return path;
}

const statisticsOf = async (path: string) =>
  (await ok(app.call('GET', `${path}/statistics`, { auth: stack.auth }))).json;
const pack = () => archiveEvents(app.context);

test('steps, the critical path and failed runs of the commit are kept when the events are archived', async () => {
  const failed = await run({ status: 'failed' });
  const path = await run({
    changes: { create: 3, same: 1 },
    state: { app: ['db'], db: ['net'], net: [], bucket: [] },
    steps: [
      ['net', 'create', 100, 103],
      ['bucket', 'create', 100, 130],
      ['db', 'create', 103, 190],
      ['app', 'create', 190, 200],
    ],
  });
  expect(await statisticsOf(path)).toMatchObject({
    ...{ kind: 'update', isPreview: false, result: 'succeeded', isComplete: false, steps: null, failedBefore: null },
    ...{ waitedSeconds: null, usual: null, changes: { creates: 3, updates: 0, replaces: 0, deletes: 0 } },
  });
  // Two processes at once, and once more: nothing changes.
  await Promise.all([pack(), pack()]);
  const found = await statisticsOf(path);
  await pack();
  expect(await statisticsOf(path)).toEqual(found);
  expect(found).toMatchObject({ isComplete: true, failedBefore: 1, steps: { count: 4, failed: 0 } });
  const name = ({ urn: of }: { urn: string }) => of.split('::').at(-1);
  expect(found.steps.slowest.map(name)).toEqual(['db', 'bucket', 'app', 'net']);
  expect(found.steps.criticalPath.seconds).toBe(100);
  expect(found.steps.criticalPath.steps.map(name)).toEqual(['net', 'db', 'app']);
  expect(found.steps.slowest[0]).toEqual({
    ...{ urn: urn('db'), type: 't:i:T', operation: 'create', startSeconds: 3, seconds: 87 },
  });
  expect(found.steps.retries).toEqual({
    repeats: 0,
    messages: 1,
    resources: [{ urn: urn('db'), repeats: 0, messages: 1 }],
  });
  expect(await statisticsOf(failed)).toMatchObject({ failedBefore: 0, result: 'failed' });

  const destroy = await run({
    kind: 'destroy',
    state: {},
    steps: [
      ['app', 'delete', 10, 12],
      ['db', 'delete', 12, 40],
      ['net', 'delete', 40, 41],
    ],
  });
  await pack();
  // Of the same kind and commit, but previews.
  await run({ kind: 'destroy', dryRun: true, status: 'failed' });
  await run({ kind: 'destroy', dryRun: true });
  const again = await run({ kind: 'destroy' });
  await pack();
  expect(await statisticsOf(again)).toMatchObject({ failedBefore: 0, usual: { count: 1 } });
  expect((await statisticsOf(destroy)).steps.criticalPath.steps.map(name)).toEqual(['app', 'db', 'net']);
});

test('an update whose state is damaged has no critical path; while the blob store is away, updates wait', async () => {
  const done = { state: { app: [] }, steps: [['app', 'create', 100, 103]] } as const;
  const damaged = await run(done);
  const id = (path: string) => path.split('/').at(-1);
  await query(
    app,
    `update checkpoints c set inline_bytes = '\\x00', damaged_at = now(), checked_at = now()
     from updates u where u.id = $1 and c.stack_id = u.stack_id`,
    [id(damaged)],
  );
  await pack();
  expect(await statisticsOf(damaged)).toMatchObject({ isComplete: true, steps: { count: 1, criticalPath: null } });

  const waiting = await run(done);
  const away = new BlobStoreUnavailableError('timeout', 'away');
  const fail = async () => Promise.reject(away);
  const { blobs } = app.context;
  const statistics = { keep: fail } as unknown as typeof app.context.statistics;
  await expect(
    archiveEvents({ ...app.context, statistics, blobs: { check: fail } as unknown as typeof blobs }),
  ).rejects.toThrow('away');
  // It is back meanwhile, or one object cannot be read.
  await archiveEvents({ ...app.context, statistics });
  expect(await statisticsOf(waiting)).toMatchObject({ isComplete: false });
  await pack();
  expect(await statisticsOf(waiting)).toMatchObject({ isComplete: true });
});

test('an update whose state is replaced while it is read is looked at again', async () => {
  const path = await run({ state: { app: [] }, steps: [['app', 'create', 100, 103]] });
  const keep = async () => Promise.reject(new DocumentMissingError('The state was replaced'));
  const statistics = { keep } as unknown as typeof app.context.statistics;
  await archiveEvents({ ...app.context, statistics });
  expect(await statisticsOf(path)).toMatchObject({ isComplete: false });
  await pack();
  expect(await statisticsOf(path)).toMatchObject({ isComplete: true });
});

test('earlier updates of the last 90 days define the usual values, and users are informed of deviations', async () => {
  await setRule(app, stack, { kind: 'require-preview', settings: { mode: 'warn' } });
  for (const deletes of [0, 1, 0, 2, 0, 2]) await run({ changes: { delete: deletes, create: 1 } });
  await run({ changes: { delete: 500 }, status: 'failed' });
  const old = await run({ changes: { delete: 300 } });
  await run({ kind: 'preview', changes: { delete: 400 } });
  await pack();
  await query(app, `update update_statistics set ended_at = ended_at - interval '91 days' where update_id = $1`, [
    old.split('/').at(-1),
  ]);
  const slow = await run({ changes: { delete: 1, create: 7 } });
  const updateId = slow.split('/').at(-1) as string;
  await query(app, `update updates set waited_ms = 90000, ended_at = started_at + interval '1 hour' where id = $1`, [
    updateId,
  ]);
  const { unusual, usual } = await statisticsOf(slow);
  const [seconds = 0, most = 0] = usual.seconds.map(Math.round);
  expect(usual.medians.seconds).toBeLessThan(3600);
  expect(unusual.map(({ name }: { name: string }) => name)).toEqual(['seconds', 'waitedSeconds', 'creates']);
  // As in the payload of webhooks.
  expect(await findUnusualOfUpdate(app.context.db, updateId)).toEqual([
    `took 3600 s, usually ${seconds === most ? most : `${seconds} to ${most}`} s`,
    'waited 90 s, usually 0 s',
    'creates 7, usually 1',
  ]);
  const preview = await run({ kind: 'preview', changes: { delete: 14, create: 1 } });
  expect(await statisticsOf(preview)).toMatchObject({
    ...{ isPreview: true, changes: { deletes: 14 } },
    usual: {
      ...{ count: 6, creates: [1, 1], updates: [0, 0], replaces: [0, 0], deletes: [0, 2], waitedSeconds: [0, 0] },
      medians: { creates: 1, updates: 0, replaces: 0, deletes: 0, waitedSeconds: 0 },
    },
    unusual: [{ name: 'deletes', value: 14, range: [0, 2] }],
  });
  const create = () =>
    ok(
      app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: { metadata: { message: '', environment } } }),
    );
  expect((await create()).json.messages).toEqual([
    { severity: 'info', message: 'The preview deletes 14, usually 0 to 2 (of 6 updates in 90 days)' },
  ]);
});

test('the time in the queue is known at once', async () => {
  await setRule(app, stack, { kind: 'lock-wait', settings: { seconds: 600 } });
  const holder = await startUpdate(app, stack);
  const waiting = app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
  await untilWaiting([app], 1);
  await ok(complete(app, holder));
  const { json } = await ok(waiting);
  const statistics = await statisticsOf(`${stack.path}/update/${json.updateID}`);
  expect(statistics).toMatchObject({ result: 'not started', seconds: null, steps: null });
  expect(statistics.waitedSeconds).toBeGreaterThan(0);
  const other = await createStack(app);
  const { path } = await startUpdate(app, other);
  expect((await app.call('GET', `${path}/statistics`, { auth: stack.auth })).status).toBe(404);
});

test('without readable events the statistics are left out, and the events are archived', async () => {
  const path = await run({ state: { a: [] }, steps: [['a', 'create', 1, 2]] });
  const id = path.split('/').at(-1);
  await query(app, `update updates set environment = 'no JSON' where id = $1`, [id]);
  await pack();
  expect(await statisticsOf(path)).toMatchObject({ isComplete: false, result: 'succeeded' });
  expect(await query(app, 'select events_archived from updates where id = $1', [id])).toEqual([
    { events_archived: true },
  ]);
});

test('the trend of a stack has the duration, the queue and the resources of each update of 90 days, without previews', async () => {
  const trend = async () => {
    const { organization, project, stack: name } = stack;
    const { data } = await ask(app, stack.auth.replace('token ', ''), 'updates.trend', {
      organization,
      project,
      stack: name,
    });
    return data;
  };
  expect(await trend()).toEqual({ days: 90, items: [], isCut: false });
  await run({ state: { a: [] } });
  await run({ kind: 'preview' });
  await run({ kind: 'destroy', dryRun: true });
  const path = await run({ state: { a: [], b: [] }, status: 'failed' });
  await run({ kind: 'destroy' });
  await startUpdate(app, stack);
  await query(app, `update updates set waited_ms = 2500, started_at = ended_at - interval '90 seconds' where id = $1`, [
    path.split('/').at(-1),
  ]);
  const { items } = await trend();
  expect(
    items.map(({ kind, resources, status, version }: Record<string, unknown>) => [version, kind, status, resources]),
  ).toEqual([
    [1, 'update', 'succeeded', 1],
    [2, 'update', 'failed', 2],
    [3, 'destroy', 'succeeded', expect.any(Number)],
  ]);
  expect(items[1]).toMatchObject({ seconds: 90, waitedSeconds: 2.5, endedAt: expect.stringMatching(/Z$/) });
  await query(
    app,
    `update updates set ended_at = ended_at - interval '91 days' where stack_version = 1 and kind = 'update'`,
  );
  expect((await trend()).items).toHaveLength(2);
});

/** Pretends that a run took place some hours ago. */
const earlier = (path: string, hours: number) =>
  query(
    app,
    `update updates set created_at = created_at - d.by, started_at = started_at - d.by, ended_at = ended_at - d.by
     from make_interval(hours => $2) as d (by) where id = $1`,
    [path.split('/').at(-1), hours],
  );

/** A session that ends with its scope, so that a failed test leaves no lock. */
async function ownSession() {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return {
    pid: rows[0]?.pid as number,
    query: (text: string, values: unknown[] = []) => client.query(text, values),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

const untilBlockedBy = ({ pid }: { readonly pid: number }) =>
  until(
    async () =>
      (await query(app, 'select 1 from pg_stat_activity where $1 = any (pg_blocking_pids(pid))', [pid])).length > 0,
    'another session waits for it',
  );

describe('deliveries', () => {
  const tokenOf = ({ auth }: TestStack) => auth.slice('token '.length);
  const delivery = async (token = tokenOf(stack)) =>
    (await ask(app, token, 'ci.delivery', { organization: stack.organization, days: 7 })).data;
  let web: TestStack;
  beforeEach(async () => {
    const { auth, organization } = stack;
    await ok(app.call('POST', `/api/stacks/${organization}/web`, { auth, body: { stackName: 'dev' } }));
    web = { auth, organization, project: 'web', stack: 'dev', path: `/api/stacks/${organization}/web/dev` };
  });

  const hours = (count: number) => ({ from: 3600 * count, to: 3600 * count + 600 });
  const expectTimes = (
    times: { count: number; medianSeconds: number; p90Seconds: number },
    middle: number,
    long: number,
  ) => {
    for (const [seconds, { from, to }] of [
      [times.medianSeconds, hours(middle)],
      [times.p90Seconds, hours(long)],
    ] as const) {
      expect(seconds).toBeGreaterThanOrEqual(from);
      expect(seconds).toBeLessThanOrEqual(to);
    }
  };

  test('a commit is delivered once to each stack, from its first run; a failure ends with the next success', async () => {
    const elsewhere = await createStack(app);
    await earlier(await run({ on: elsewhere, kind: 'preview' }), 90);
    await earlier(await run({ on: web, kind: 'preview' }), 5);
    await earlier(await run({ status: 'failed' }), 3);
    await earlier(await run({ status: 'failed' }), 1);
    await run({ changes: { create: 1 } });
    // Again, with and without changes.
    await run({ changes: { update: 1 } });
    await run({ changes: { same: 4 } });
    await run({ kind: 'refresh', changes: { update: 1 } });
    await run({ kind: 'destroy', changes: { delete: 1 } });
    const changed = { 'git.head': 'cd34'.repeat(10), 'git.dirty': 'true' };
    await run({ changes: { create: 1 }, environment: changed });
    await run({ on: web, changes: { create: 1 } });
    await run({ on: web, status: 'failed' });
    // Two processes at once, and once more: nothing is counted again.
    await Promise.all([pack(), pack()]);
    await pack();

    const found = await delivery();
    expect(found).toMatchObject({
      days: 7,
      isTrimmed: false,
      total: {
        finished: 10,
        failed: 3,
        changed: 5,
        failureRate: 0.3,
        leadTime: { count: 2 },
        timeToRestore: { count: 1 },
      },
      projects: [
        { project: 'proj', finished: 8, failed: 2, changed: 4, leadTime: { count: 1 }, timeToRestore: { count: 1 } },
        { project: 'web', finished: 2, failed: 1, changed: 1, leadTime: { count: 1 }, timeToRestore: null },
      ],
    });
    expect(found.total.changesPerDay).toBeCloseTo(5 / 7);
    expectTimes(found.total.leadTime, 5, 5);
    expectTimes(found.total.timeToRestore, 3, 3);

    const { auth, organization } = stack;
    const at = `/api/orgs/${organization}/delivery`;
    expect((await ok(app.call('GET', `${at}?days=7`, { auth }))).json).toEqual(found);
    expect((await ok(app.call('GET', at, { auth }))).json).toMatchObject({
      days: 30,
      total: { changesPerDay: 5 / 30 },
    });
    expect((await app.call('GET', `${at}?days=91`, { auth })).status).toBe(400);
    const csv = (search: string) => app.call('GET', `/trpc/download/delivery.csv?${search}`, { auth, accept: null });
    const { headers, text } = await ok(csv(`organization=${organization}&days=7`));
    expect(headers['content-type']).toContain('text/csv');
    const [names, ...lines] = text.trimEnd().split('\r\n');
    expect(names).toBe(
      'project,finished runs,failed runs,failure rate,changes,changes per day,lead times,median lead time in seconds,' +
        '90th percentile of lead time in seconds,times to restore,median time to restore in seconds,' +
        '90th percentile of time to restore in seconds',
    );
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^proj,8,2,0\.25,4,0\.57\d*,1,1\d{4},1\d{4},1,1\d{4},1\d{4}$/);
    expect(lines[1]).toMatch(/^web,2,1,0\.5,1,0\.14\d*,1,1\d{4},1\d{4},0,,$/);
    expect((await csv(`organization=${organization}&days=8`)).status).toBe(400);
    expect((await csv(`organization=${elsewhere.organization}&days=7`)).status).toBe(404);

    // As a process that has just started. Its gauges do not wait for a database that is slow.
    let metrics = '';
    const measured = async () => {
      const fresh = createMetrics();
      registerDeliveryGauges(fresh, app.context.db);
      metrics = await fresh.registry.metrics();
      return ['runs', 'seconds'].every((name) =>
        metrics.includes(`holdfast_delivery_${name}{organization="${organization}"`),
      );
    };
    await until(measured, 'metrics of deliveries');
    const figure = (name: string, label: string) =>
      new RegExp(`^${name}{organization="${organization}",${label}} (\\d+)$`, 'm').exec(metrics)?.[1];
    expect(figure('holdfast_delivery_runs', 'result="finished"')).toBe('10');
    expect(figure('holdfast_delivery_runs', 'result="failed"')).toBe('3');
    expect(figure('holdfast_delivery_runs', 'result="changed"')).toBe('5');
    expect(figure('holdfast_delivery_seconds', 'time="lead"')).toBe(`${found.total.leadTime.medianSeconds}`);
    expect(figure('holdfast_delivery_seconds', 'time="restore"')).toBe(`${found.total.timeToRestore.medianSeconds}`);

    const blind = await person(app, organization, 'member');
    await grant(app, blind.organizationId, { userId: blind.userId }, 'deny', ['read'], { stacks: 'web/*' });
    expect(await delivery(blind.token)).toMatchObject({
      isTrimmed: true,
      total: { finished: 8 },
      projects: [{ project: 'proj' }],
    });
    await ok(app.call('POST', `${web.path}/rename`, { auth, body: { newProject: 'site' } }));
    expect((await delivery()).projects).toMatchObject([{ project: 'proj' }, { project: 'site', changed: 1 }]);
    await ok(app.call('DELETE', `/api/stacks/${organization}/site/dev?force=true`, { auth }));
    expect(await delivery()).toMatchObject({ total: { finished: 8 }, projects: [{ project: 'proj' }] });
  });

  test('what an import has copied is counted neither as the first run of a commit, nor as a failure', async () => {
    const preview = await run({ kind: 'preview' });
    const succeeded = await run({ changes: { create: 1 } });
    const failed = await run({ status: 'failed' });
    for (const path of [preview, failed, succeeded]) await earlier(path, 5);
    const ids = [failed, succeeded].map((path) => path.split('/').at(-1));
    await query(app, `insert into imported_versions (update_id, entry) select unnest($1::uuid[]), ''`, [ids]);
    await query(
      app,
      `insert into imported_previews (stack_id, entry, update_id) select stack_id, '', id from updates where id = $1`,
      [preview.split('/').at(-1)],
    );
    await run({ changes: { create: 1 } });
    await pack();
    const { total } = await delivery();
    expect(total).toMatchObject({ changed: 1, leadTime: { count: 1 }, timeToRestore: null });
    expectTimes(total.leadTime, 0, 0);
  });

  test('a commit is delivered once, in whichever order its runs are recorded, from the run that was created first', async () => {
    const preview = await run({ kind: 'preview' });
    // It took long: the other one ended before it.
    await query(app, `update updates set created_at = created_at - interval '5 hours' where id = $1`, [
      preview.split('/').at(-1),
    ]);
    await earlier(await run({ status: 'failed' }), 3);
    await run({ changes: { create: 1 } });
    const last = await run({ changes: { update: 1 } });
    const unchanged = await run({ changes: { same: 1 } });
    for (const path of [unchanged, preview, last]) await app.context.statistics.keep(path.split('/').at(-1) as string);
    await pack();
    const { total } = await delivery();
    expect(total).toMatchObject({ changed: 2, leadTime: { count: 1 } });
    expectTimes(total.leadTime, 5, 5);
  });

  test('a commit is delivered once if two processes record two of its runs at once', async () => {
    const idOf = (path: string) => path.split('/').at(-1) as string;
    const first = idOf(await run({ changes: { create: 1 } }));
    const second = idOf(await run({ changes: { update: 1 } }));
    await using other = await ownSession();
    await other.query('begin');
    await other.query(
      `insert into update_statistics (update_id, stack_id, kind, is_preview, is_success, ended_at, commit_id, seconds, creates, updates,
         deletes, replaces, steps, created_at, organization_id)
       select id, stack_id, kind, false, true, ended_at, $2, 1, 1, 0, 0, 0, '{}', created_at, organization_id from updates where id = $1`,
      [first, commit],
    );
    const recorded = app.context.statistics.keep(second);
    await untilBlockedBy(other);
    await other.query('commit');
    await recorded;
    expect((await delivery()).total).toMatchObject({ changed: 2, leadTime: { count: 1 } });
  });

  test('a delivery that is counted while its stack moves is one of its new project, and no ending update waits for it', async () => {
    const id = (await run({ changes: { create: 1 } })).split('/').at(-1) as string;
    const own = `(select stack_id from updates where id = '${id}')`;
    await using other = await ownSession();
    await other.query('begin');
    await other.query(
      `update stacks s set name = 'moved', project_id = p.id from projects p join organizations o on o.id = p.organization_id
       where s.id = ${own} and p.name = 'web' and o.name = '${stack.organization}'`,
    );
    const recorded = app.context.statistics.keep(id);
    await untilBlockedBy(other);
    // As an update that ends.
    await other.query(`update stack_days set runs = runs + 1 where stack_id = ${own}`);
    await other.query('commit');
    await recorded;
    expect((await delivery()).projects).toMatchObject([{ project: 'web', finished: 2, changed: 1 }]);
  });

  test('a stack is deleted with a running preview while its deliveries are counted', async () => {
    const id = (await run({ changes: { create: 1 } })).split('/').at(-1) as string;
    const own = `(select stack_id from updates where id = '${id}')`;
    await startUpdate(app, stack, { kind: 'preview' });
    await using other = await ownSession();
    await other.query('begin');
    await other.query(`select 1 from stack_changes where stack_id = ${own} for share`);
    const deleted = app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth });
    await untilBlockedBy(other);
    // As the worker, which would wait for the deletion, and the deletion for it.
    await other.query(`select 1 from stack_days where stack_id = ${own} for update nowait`);
    await other.query('commit');
    expect((await deleted).status).toBe(204);
  });

  test('a day of a stack keeps 50 times', async () => {
    await run({ status: 'failed' });
    await query(
      app,
      `update stack_days d set lead_seconds = array_fill(60, array[50]), restore_seconds = array_fill(60, array[50])
       from organizations o where o.id = d.organization_id and o.name = $1`,
      [stack.organization],
    );
    await run({ changes: { create: 1 } });
    await pack();
    expect((await delivery()).total).toMatchObject({
      ...{ changed: 1, leadTime: { count: 50, medianSeconds: 60, p90Seconds: 60 }, timeToRestore: { count: 50 } },
    });
  });
});
