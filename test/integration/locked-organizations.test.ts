import { expect, test } from '@jest/globals';
import { createConcurrencyLimitRepository } from '../../src/api/updates/rules/concurrency-limit-repository.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { query } from '../support/database.ts';
import { person, team } from '../support/grants.ts';
import { blockedBy, during } from '../support/held-transactions.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { complete } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

const poolSize = 4;
const app = testApp({
  settings: { HOLDFAST_DATABASE_POOL_SIZE: String(poolSize), HOLDFAST_LOCK_WAIT_SECONDS: '600' },
});

const ofOrganization = `organizations where name = $1`;
const lockedStack = ({ organization, project, stack }: TestStack): [string, ...unknown[]] => [
  `select 1 from stacks where name = $3 and project_id = (
     select id from projects where name = $2 and organization_id = (select id from ${ofOrganization})) for update`,
  organization,
  project,
  stack,
];

test('while more calls than connections wait for a stack, an update of another organization starts', async () => {
  const [stack, other] = await Promise.all([createStack(app), createStack(app)]);
  await during(app, lockedStack(stack), async (session, end) => {
    const setTags = (value: string) =>
      app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { place: value } });
    const waiting = Array.from({ length: 2 * poolSize }, (_, at) => setTags(String(at)));
    await until(async () => {
      const { acquired, waiting: others } = app.context.db.poolState();
      return acquired === poolSize && others > 0;
    }, 'the pool is in use');
    await startUpdate(app, other);
    await blockedBy(app, session);
    await end('rollback');
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([204]));
  });
});

test('while a change of people waits for an organization that is in use, one of another organization is made', async () => {
  const [stack, other] = await Promise.all([createStack(app), createStack(app)]);
  const rule = { kind: 'lock-wait', settings: { seconds: 60 } };
  const use = [`select lock_shared(id) from ${ofOrganization}`, stack.organization] as const;
  await during(app, [...use], async (session) => {
    const waiting = setRule(app, stack, rule).catch(String);
    await blockedBy(app, session);
    // On a busy machine, it may wait for the other one for too long.
    await setRule(app, other, rule).catch(() => setRule(app, other, rule));
    // It ends by itself, so that changes in other organizations never wait for long.
    expect(await waiting).toMatch(/^Error: 503: .*another call holds a lock; please retry/);
  });
  await setRule(app, stack, rule);
});

test('what is granted waits for nobody who uses the organization, and what is denied for all of them', async () => {
  const { auth, organization } = await createStack(app);
  const { login, organizationId, userId } = await person(app, organization, 'viewer');
  await team(app, organizationId, 'builders', [userId]);
  const change = (effect: 'allow' | 'deny', stacks: string): Promise<TestResponse> => {
    const body = { effect, user: login, stacks, permissions: ['write'] };
    return ok(app.call('POST', `/api/orgs/${organization}/grants`, { auth, body }));
  };
  await during(app, [`select lock_shared(id) from ${ofOrganization}`, organization], async (session, end) => {
    await change('allow', 'proj/*');
    const body = { stackName: 'shared', teams: ['builders'] };
    await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body }));
    const denied = change('deny', 'proj/dev');
    denied.catch(() => {});
    await blockedBy(app, session);
    await end('rollback');
    // On a busy machine, it may have waited for too long.
    await denied.catch(() => change('deny', 'proj/dev'));
  });
  const grants = await query(app, 'select effect from grants where organization_id = $1 order by 1', [organizationId]);
  expect(grants.map(({ effect }) => effect)).toEqual(['allow', 'allow', 'deny']);
});

test('updates with different limits do not wait for each other', async () => {
  const stack = await createStack(app);
  await setRule(app, stack, { kind: 'concurrency', settings: { most: 5, per: 'project' } });
  const another = async (project: string): Promise<TestStack> => {
    const path = `/api/stacks/${stack.organization}/${project}`;
    await ok(app.call('POST', path, { auth: stack.auth, body: { stackName: 'dev' } }));
    return { ...stack, project, stack: 'dev', path: `${path}/dev` };
  };
  // Two limits may share a lock, but hardly all of these.
  const others = await Promise.all(['a', 'b', 'c', 'd'].map(another));
  const create = ({ path }: TestStack): Promise<TestResponse> =>
    app.call('POST', `${path}/update`, { auth: stack.auth, body: {} });
  const [limit] = await query<{ key: string; organization: string }>(
    app,
    `select r.id || ':' || p.id as key, p.organization_id as organization
     from update_rules r join organizations o on o.id = r.organization_id join projects p on p.organization_id = o.id
     where o.name = $1 and p.name = $2`,
    [stack.organization, stack.project],
  );
  if (!limit) throw new Error('There is no limit');
  const counting = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  const holding = app.context.db.inTransaction(async (tx) => {
    await tx.query(sql.nothing`set local idle_in_transaction_session_timeout = 0`);
    await createConcurrencyLimitRepository(tx).lock(limit.organization, [limit.key]);
    isHeld.resolve();
    await counting.promise;
  });
  let isLimitedDone = false;
  const calls: Promise<unknown>[] = [];
  try {
    await Promise.race([isHeld.promise, holding]);
    const limited = ok(create(stack)).then(() => (isLimitedDone = true));
    limited.catch(() => {});
    calls.push(limited);
    // Nobody else holds such a lock. The call may time out and repeat this.
    const isAwaited = `select 1 from pg_stat_activity
      where datname = current_database() and query like '%limits.lock%' and cardinality(pg_blocking_pids(pid)) > 0`;
    await until(async () => (await query(app, isAwaited)).length > 0, 'the update waits for its limit');
    const created = others.map((other) => ok(create(other)));
    calls.push(...created);
    await Promise.any(created);
    expect(isLimitedDone).toBe(false);
  } finally {
    counting.resolve();
    await Promise.allSettled([holding, ...calls]);
  }
  await Promise.all([holding, ...calls]);
});

test('an update whose turn comes while its organization is locked keeps its position for longer than a statement may take', async () => {
  await using impatient = await createTestApp({
    settings: { HOLDFAST_LOCK_WAIT_SECONDS: '600', statementTimeoutMs: 6_000 },
  });
  const stack = await createStack(impatient);
  const running = await startUpdate(impatient, stack);
  const waiting = impatient.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
  await until(
    async () => (await query(impatient, 'select 1 from update_queue_waiters')).length > 0,
    'the update waits for its stack',
  );
  const lock = [`select lock_exclusive(id) from ${ofOrganization}`, stack.organization] as const;
  await during(impatient, [...lock], async (session, end) => {
    await ok(complete(impatient, running));
    // The transactions of two turns: each repeats its first one, and then ends.
    await blockedBy(impatient, session, 4);
    await end('rollback');
    await ok(waiting);
  });
});
