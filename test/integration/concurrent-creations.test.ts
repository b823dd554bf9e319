import { expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { type TestResponse, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7' } });

const create = ({ auth, organization }: TestStack, project: string, stackName: string): Promise<TestResponse> =>
  app.call('POST', `/api/stacks/${organization}/${project}`, { auth, body: { stackName } });

async function idOf({ organization }: TestStack): Promise<string> {
  const [row] = await query<{ id: string }>(
    app,
    `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1 and p.name = 'proj' and s.name = 'dev'`,
    [organization],
  );
  return String(row?.id);
}

/** Runs `work` while a transaction that has run `statement` is open; `end` commits or rolls back. */
async function during<T>(
  [statement, ...values]: readonly [string, ...unknown[]],
  work: (session: pg.Client, end: (how: 'commit' | 'rollback') => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const session = new pg.Client({ connectionString: app.database.ownerUrl });
  await session.connect();
  try {
    await session.query('begin');
    await session.query(statement, values);
    return await work(session, (how) => session.query(how));
  } finally {
    await session.end();
  }
}

/** Waits until a call waits for the transaction of `session`. */
async function blockedBy(session: pg.Client): Promise<void> {
  const { rows } = await session.query('select pg_backend_pid() as pid');
  const blocked = 'select 1 from pg_stat_activity where $1 = any (pg_blocking_pids(pid))';
  await until(async () => (await query(app, blocked, [rows[0].pid])).length > 0, 'a call waits');
}

test('a creation that waits holds up no other in its project', async () => {
  const stack = await createStack(app);
  const sameName: [string, ...unknown[]] = [
    `insert into stacks (project_id, name, tags) select project_id, 'taken', '{}' from stacks where id = $1`,
    await idOf(stack),
  ];
  await during(sameName, async (session, end) => {
    const waiting = create(stack, 'proj', 'taken');
    await blockedBy(session);
    await ok(create(stack, 'proj', 'free'));
    await end('rollback');
    await ok(waiting);
  });
});

test('many stacks are created at once in a new project', async () => {
  const stack = await createStack(app);
  const created = await Promise.all(Array.from({ length: 20 }, (_, index) => create(stack, 'fresh', `s-${index}`)));
  expect(created.map(({ status }) => status)).toEqual(created.map(() => 200));
  expect(await query(app, `select 1 from projects where name = 'fresh'`)).toHaveLength(1);
});

test.each(['created', 'renamed'])(
  'a stack that is %s while its namesake is being deleted takes over the policy groups',
  async (how) => {
    const stack = await createStack(app);
    const id = await idOf(stack);
    await ok(create(stack, 'proj', 'other'));
    await query(
      app,
      `with g as (insert into policy_groups (organization_id, name) select organization_id, 'strict' from projects
       where id = (select project_id from stacks where id = $1) returning id)
     insert into policy_group_stacks (group_id, stack_id) select id, $1 from g`,
      [id],
    );
    const deletion: [string, ...unknown[]] = [
      `update stacks set deleted_at = now(), restorable_until = now() + interval '1 day' where id = $1`,
      id,
    ];
    await during(deletion, async (session, end) => {
      // As if the namesake were created only now.
      const find = app.context.stacks.find;
      const spy = jest
        .spyOn(app.context.stacks, 'find')
        .mockImplementation(async (ref) => (ref.stack === stack.stack ? null : find(ref)));
      const { auth, organization } = stack;
      const waiting =
        how === 'created'
          ? create(stack, 'proj', stack.stack)
          : app.call('POST', `/api/stacks/${organization}/proj/other/rename`, { auth, body: { newName: stack.stack } });
      await blockedBy(session);
      spy.mockRestore();
      await end('commit');
      await ok(waiting);
    });
    const members = await query(
      app,
      `select s.deleted_at is null as "isLive" from policy_group_stacks m join stacks s on s.id = m.stack_id
     where s.name = $1 and s.project_id = (select project_id from stacks where id = $2)`,
      [stack.stack, id],
    );
    expect(members).toContainEqual({ isLive: true });
  },
);
