import { describe, expect, jest, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { blockedBy, during } from '../support/held-transactions.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { createTestApp, type TestResponse, testApp } from '../support/test-app.ts';

const quotas = { HOLDFAST_QUOTA_STACKS: '1000', HOLDFAST_QUOTA_UPDATES: '1000' };

describe.each([
  ['without quotas', {}],
  ['with quotas', quotas],
])('%s', (_, limits) => {
  const app = testApp({ settings: { HOLDFAST_DELETED_STACK_DAYS: '7', ...limits } });

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

  test('a creation that waits holds up no other in its project', async () => {
    const stack = await createStack(app);
    const sameName: [string, ...unknown[]] = [
      `insert into stacks (project_id, name, tags) select project_id, 'taken', '{}' from stacks where id = $1`,
      await idOf(stack),
    ];
    await during(app, sameName, async (session, end) => {
      const waiting = create(stack, 'proj', 'taken');
      await blockedBy(app, session);
      await ok(create(stack, 'proj', 'free'));
      await end('rollback');
      await ok(waiting);
    });
  });

  test('a restoration that waits for its name holds up no creation', async () => {
    const stack = await createStack(app);
    const id = await idOf(stack);
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    const sameName: [string, ...unknown[]] = [
      `insert into stacks (project_id, name, tags) select project_id, name, '{}' from stacks where id = $1`,
      id,
    ];
    await during(app, sameName, async (session, end) => {
      const path = `/api/orgs/${stack.organization}/deleted-stacks/${id}/restore`;
      const waiting = app.call('POST', path, { auth: stack.auth, body: {} });
      await blockedBy(app, session);
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
      await during(app, deletion, async (session, end) => {
        // As if the namesake were created only now.
        const find = app.context.stacks.find;
        const spy = jest
          .spyOn(app.context.stacks, 'find')
          .mockImplementation(async (ref) => (ref.stack === stack.stack ? null : find(ref)));
        const { auth, organization } = stack;
        const waiting =
          how === 'created'
            ? create(stack, 'proj', stack.stack)
            : app.call('POST', `/api/stacks/${organization}/proj/other/rename`, {
                auth,
                body: { newName: stack.stack },
              });
        await blockedBy(app, session);
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
});

/** As while another update of the organization is counted. */
const lockedCount = ({ organization }: TestStack): [string, ...unknown[]] => [
  'select pg_advisory_xact_lock(hashtextextended(id::text, 92)) from organizations where name = $1',
  organization,
];

test('an update that waits for the limits of its organization gives its connection back from time to time', async () => {
  await using app = await createTestApp({ settings: quotas });
  const stack = await createStack(app);
  await during(app, lockedCount(stack), async (session, end) => {
    const waiting = app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
    await blockedBy(app, session, 2);
    await end('rollback');
    await ok(waiting);
  });
});

test('an update is refused as before when the limits of its organization stay locked', async () => {
  await using app = await createTestApp({ settings: { ...quotas, statementTimeoutMs: 6_000 } });
  const stack = await createStack(app);
  await during(app, lockedCount(stack), async () => {
    const refused = await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
    expect([refused.status, refused.json.message]).toEqual([503, expect.stringContaining('another call holds a lock')]);
  });
});
