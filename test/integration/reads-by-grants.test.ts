import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { createStack, ok } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();

test('lists that compare many grants with many stacks end in time, and leave connections to others', async () => {
  const slow = await createStack(app);
  const member = await person(app, slow.organization, 'member');
  for (let at = 0; at <= 50; at++)
    await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt'], { stacks: `p${at}/*` });
  const other = await createStack(app);
  await query(app, 'alter function effective_permissions rename to real_permissions');
  await query(
    app,
    `create function effective_permissions(facts jsonb, organization uuid, project text, stack text) returns integer
     language plpgsql stable as $$ begin perform pg_sleep(40); return 0; end $$`,
  );
  const list = () => app.call('GET', `/api/user/stacks?organization=${slow.organization}`, { auth: member.auth });
  const lists = Array.from({ length: 12 }, list);
  let isAnswered = false;
  const first = Promise.race(lists);
  void first.then(() => {
    isAnswered = true;
  });
  let atMost = 0;
  await until(async () => {
    await ok(app.call('GET', other.path, { auth: other.auth }));
    const [row] = await query<{ running: number }>(
      app,
      `select count(*)::integer as running from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
    );
    atMost = Math.max(atMost, row?.running ?? 0);
    return isAnswered;
  }, 'a list ends');
  const { json, status } = await first;
  expect([status, json.message]).toEqual([422, expect.stringContaining('name a project')]);
  expect(atMost).toBe(2);
  await query(app, 'drop function effective_permissions');
  await query(app, 'alter function real_permissions rename to effective_permissions');
  await Promise.all(lists);
  expect((await ok(list())).json.stacks).toHaveLength(1);
});
