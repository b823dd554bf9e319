import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createRestorableStackRepository } from '../../src/shared/stacks/restorable-stack-repository.ts';
import { createDeletedStackRepository } from '../../src/workers/stacks/deleted-stack-repository.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;

/** Ten organizations with 500 live stacks each, 2,000 that can be restored, and 3 whose time is over. */
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`insert into organizations (name) select 'org-' || n from generate_series(1, 10) n`);
  await client.query(`insert into projects (organization_id, name) select id, 'project' from organizations`);
  await client.query(`insert into stacks (project_id, name, tags, deleted_at, restorable_until, restorable_in)
    select p.id, 'stack-' || n, json_build_object('note', repeat(md5(n::text), 10))::text, case when n > 500 then now() - n * interval '1 second' end,
      case when n > 2500 then now() - interval '1 second' when n > 500 then now() + interval '3 days' end,
      case when n > 500 then p.organization_id end
    from projects p, generate_series(1, 2503) n`);
  await analyzeExactly(client, 'stacks');
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

test.each([
  ['the first page', async () => null],
  [
    'a later page',
    async () => {
      const { rows } = await client.query<{ deletedMicros: string; id: string }>(
        `select (extract(epoch from deleted_at) * 1000000)::bigint::text as "deletedMicros", id from stacks
         where restorable_in = (select id from organizations where name = 'org-3') order by deleted_at desc, id desc offset 300 limit 1`,
      );
      return rows[0] ?? null;
    },
  ],
])('%s of deleted stacks reads what it returns', async (_name, read) => {
  const before = await read();
  const plan = await planOf(client, (db) => createRestorableStackRepository(db).list('org-3', before, 51));
  expect(plan.returned).toBe(51);
  // The stack, its project, its organization, its state, and whether its name is taken.
  expect(plan.read).toBeLessThanOrEqual(5 * 51);
});

test('the sweep does not read the stacks that can be restored', async () => {
  const listed = await planOf(client, (db) => createDeletedStackRepository(db).list(100));
  expect(listed.returned).toBe(30);
  // With the ten projects and organizations.
  expect(listed.read).toBeLessThanOrEqual(30 + 2 * 30 + 20);
  const counted = await planOf(client, (db) => createDeletedStackRepository(db).count());
  expect(counted.read).toBeLessThanOrEqual(30);
});
