import { expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { grant, person } from '../support/grants.ts';
import { createStack, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();

test('while a change of people takes long, others get 503 soon, and no call without changes waits for them', async () => {
  const { auth, organization } = await createStack(app);
  const holder = new pg.Client({ connectionString: app.database.ownerUrl });
  await holder.connect();
  await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('holdfast people', 0))`);
  const people = await Promise.all([1, 2, 3, 4].map(() => person(app, organization, 'member')));
  const calls = people.flatMap((each) =>
    Array.from({ length: 6 }, () => app.call('DELETE', '/api/user/organizations/none', { auth: each.auth })),
  );
  let atMost = 0;
  const first = Promise.race(calls);
  let isAnswered = false;
  void first.then(() => {
    isAnswered = true;
  });
  await until(async () => {
    await ok(app.call('GET', '/api/user', { auth }));
    const [row] = await query<{ waiting: number }>(
      app,
      `select count(*)::integer as waiting from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
    );
    atMost = Math.max(atMost, row?.waiting ?? 0);
    // On a busy machine the first may give up before the others wait.
    return isAnswered && atMost >= 3;
  }, 'three wait, and one of them gives up');
  const { headers, json, status } = await first;
  expect([status, headers['retry-after'], json.message]).toEqual([503, '2', expect.stringContaining('taking long')]);
  expect(atMost).toBe(3);
  await holder.query('commit');
  await holder.end();
  expect((await app.call('DELETE', '/api/user/organizations/none', { auth })).status).toBe(404);
  for (const each of await Promise.all(calls)) expect([404, 503]).toContain(each.status);
});

test('a change of grants finds the facts of each token once, regardless of its updates', async () => {
  const stack = await createStack(app);
  const member = await person(app, stack.organization, 'member');
  for (const auth of [stack.auth, member.auth, member.auth, member.auth])
    await startUpdate(app, { ...stack, auth }, { kind: 'preview' });
  await query(app, 'alter function token_facts rename to real_token_facts');
  await query(app, 'create sequence facts_calls');
  await query(
    app,
    `create function token_facts(token uuid, organization uuid) returns jsonb language plpgsql security definer as
     $$ begin perform nextval('facts_calls'); return real_token_facts(token, organization); end $$`,
  );
  await grant(app, member.organizationId, { userId: member.userId }, 'deny', ['decrypt']);
  const [row] = await query<{ calls: number }>(app, 'select last_value::integer as calls from facts_calls');
  expect(row?.calls).toBe(2);
  await query(app, 'drop function token_facts');
  await query(app, 'alter function real_token_facts rename to token_facts');
});
