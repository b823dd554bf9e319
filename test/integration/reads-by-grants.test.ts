import { expect, test } from '@jest/globals';
import { createDueIndexRepository } from '../../src/shared/search/due-index-repository.ts';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { ask } from '../support/procedures.ts';
import { createStack, deployment, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();

/** A member of the organization of a new stack to whom many grants apply. */
async function grantee() {
  const stack = await createStack(app);
  const member = await person(app, stack.organization, 'member');
  for (let at = 0; at <= 50; at++)
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], { stacks: `p${at}/*` });
  return { stack, member };
}

/** Comparisons of grants take long, until it is disposed. */
async function slowGrants(): Promise<AsyncDisposable> {
  await query(app, 'alter function effective_permissions rename to real_permissions');
  await query(
    app,
    `create function effective_permissions(facts jsonb, organization uuid, project text, stack text) returns integer
     language plpgsql stable as $$ begin perform pg_sleep(40); return 0; end $$`,
  );
  return {
    [Symbol.asyncDispose]: async () => {
      await query(app, 'drop function effective_permissions');
      await query(app, 'alter function real_permissions rename to effective_permissions');
    },
  };
}

/** How many comparisons run at once until the first of these calls has ended. */
async function mostAtOnce(calls: readonly Promise<unknown>[]): Promise<number> {
  let isAnswered = false;
  void Promise.race(calls).then(() => {
    isAnswered = true;
  });
  let atMost = 0;
  const other = await createStack(app);
  await until(async () => {
    await ok(app.call('GET', other.path, { auth: other.auth }));
    const [row] = await query<{ running: number }>(
      app,
      `select count(*)::integer as running from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
    );
    atMost = Math.max(atMost, row?.running ?? 0);
    return isAnswered;
  }, 'a call ends');
  return atMost;
}

test('lists that compare many grants with many stacks end in time, and leave connections to others', async () => {
  const { member, stack } = await grantee();
  const list = () => app.call('GET', `/api/user/stacks?organization=${stack.organization}`, { auth: member.auth });
  let lists: ReturnType<typeof list>[];
  {
    await using _ = await slowGrants();
    lists = Array.from({ length: 12 }, list);
    const first = Promise.race(lists);
    expect(await mostAtOnce(lists)).toBe(2);
    const { json, status } = await first;
    expect([status, json.message]).toEqual([422, expect.stringContaining('name a project')]);
  }
  await Promise.all(lists);
  expect((await ok(list())).json.stacks).toHaveLength(1);
});

test('so does the lag of the index', async () => {
  const { member, stack } = await grantee();
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  const { organization } = stack;
  const graph = () => ask(app, member.auth.replace('token ', ''), 'references.graph', { organization });
  let graphs: ReturnType<typeof graph>[];
  {
    await using _ = await slowGrants();
    graphs = Array.from({ length: 4 }, graph);
    const first = Promise.race(graphs);
    expect(await mostAtOnce(graphs)).toBe(2);
    expect((await first).status).toBe(422);
  }
  await Promise.all(graphs);
  expect((await graph()).data?.behind?.stacks).toBe(1);
});

test('the more grants apply, the fewer stacks does the lag look at', async () => {
  const stack = await createStack(app);
  const [row] = await query<{ id: string }>(
    app,
    `with s as (insert into stacks (project_id, name) select p.id, 's' || n from projects p
         join organizations o on o.id = p.organization_id, generate_series(1, 300) n where o.name = $1 returning id, project_id),
       due as (insert into state_index_due (stack_id) select id from s)
     select organization_id as id from projects where id = (select project_id from s limit 1)`,
    [stack.organization],
  );
  const organization = { id: row?.id as string, name: stack.organization };
  const { readLag } = createDueIndexRepository(app.context.db);
  expect(await readLag([{ ...organization, facts: null }])).toMatchObject({ stacks: 300 });
  const facts = JSON.stringify({ grants: [], padding: ' '.repeat(1_000_000) });
  expect(await readLag([{ ...organization, facts }])).toMatchObject({ stacks: 100 });
});
