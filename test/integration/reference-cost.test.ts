import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createReferenceRepository } from '../../src/api/search/reference-repository.ts';
import { createConsumerRepository } from '../../src/shared/updates/rules/consumer-repository.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

const stacks = 300;
let database: TestDatabase;
let client: pg.Client;
let organization: { id: string; name: string; facts: null };

/** Ten organizations with 300 stacks each: each stack has 50 resources, and reads two others three times each. */
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(`insert into organizations (name) select 'org-' || n from generate_series(1, 10) n`);
  await client.query(`insert into projects (organization_id, name) select id, 'project' from organizations`);
  await client.query(
    `insert into stacks (project_id, name) select id, 'stack-' || n from projects, generate_series(1, $1::integer) n`,
    [stacks],
  );
  await client.query('insert into state_indexes (stack_id) select id from stacks');
  await client.query(`insert into stack_resources (stack_id, key, digest, urn, type, name, place, dependencies, is_custom, is_external,
      is_protected, deletes_first, is_deleted, reads)
    select s.id, 'key-' || n, '', 'urn-' || n, 'a:b:C', 'name', 'place-' || n, '{}', true, false, false, false, false,
      case when n <= 6 then 'org/project/stack-' || n % 2 end
    from stacks s, generate_series(1, 50) n`);
  await analyzeExactly(client);
  const { rows } = await client.query<typeof organization>(
    `select id, name, null as facts from organizations where name = 'org-3'`,
  );
  organization = rows[0] as typeof organization;
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

test('the references of an organization are read without those of others', async () => {
  const all = { limit: 5_000, stacks: 500 };
  const plan = await planOf(client, (db) => createReferenceRepository(db).listOfOrganization(organization, all));
  expect(plan.returned).toBe(2 * stacks);
  // Each stack in two tables, and its six resources that are references.
  expect(plan.read).toBeLessThanOrEqual(8 * stacks);
});

test('the graph is cut after as many stacks as it shows', async () => {
  const few = { limit: 5_000, stacks: 21 };
  const plan = await planOf(client, (db) => createReferenceRepository(db).listOfOrganization(organization, few));
  expect(plan.returned).toBe(2 * 21);
  expect(plan.read).toBeLessThanOrEqual(8 * 21);
});

test('what a stack reads is found without its other resources', async () => {
  const ref = { organization: 'org-3', project: 'project', stack: 'stack-7' };
  const plan = await planOf(client, (db) => createReferenceRepository(db).listOfStack(ref, 500));
  expect(plan.returned).toBe(2);
  // All ten organizations, the stack, and its references.
  expect(plan.read).toBeLessThanOrEqual(17);
});

test('references are noted once for each statement, however many it writes or deletes', async () => {
  const { rows } = await client.query<{ id: string }>(`select id from stacks order by id limit 2`);
  const ids = rows.map(({ id }) => id);
  const marked = async () => {
    const found = await client.query('select referring_in from state_indexes where stack_id = any ($1)', [ids]);
    return found.rows.map((row: { referring_in: string | null }) => row.referring_in !== null);
  };
  const calls = async (text: string) => {
    const explained = await client.query(`explain (analyze, format json) ${text}`, [ids]);
    type Triggers = { 'Trigger Name': string; Calls: number }[];
    const [plan] = (explained.rows[0] as { 'QUERY PLAN': { Triggers: Triggers }[] })['QUERY PLAN'];
    return plan?.Triggers.flatMap((of) => (of['Trigger Name'].includes('refer') ? [of.Calls] : []));
  };
  const set = (reads: string) => calls(`update stack_resources set reads = ${reads} where stack_id = any ($1)`);
  await client.query('begin');
  expect(await marked()).toEqual([true, true]);
  expect(await set('null')).toEqual([1]);
  expect(await marked()).toEqual([false, false]);
  expect(await set(`'org/project/stack-1'`)).toEqual([1]);
  expect(await marked()).toEqual([true, true]);
  expect(await calls('delete from stack_resources where stack_id = any ($1)')).toEqual([1]);
  expect(await marked()).toEqual([false, false]);
  await client.query('rollback');
  // With the index itself: a cascade deletes the resources of each stack.
  await client.query('begin');
  await client.query('delete from state_indexes where stack_id = any ($1)', [ids]);
  expect(await marked()).toEqual([]);
  await client.query('rollback');
});

test('consumers of a stack are found without their other references, in whatever organizations they are', async () => {
  const ref = { organization: 'org-3', project: 'project', stack: 'stack-9' };
  const name = 'org-3/project/stack-9';
  const inOrganization = (of: string) =>
    `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = '${of}' order by s.id`;
  const consumers = createConsumerRepository;
  const measure = async () => ({
    own: await planOf(client, (db) => consumers(db).listOwn(ref, 200)),
    others: await planOf(client, (db) => consumers(db).countOthers(ref, 200)),
    graph: await planOf(client, (db) => createReferenceRepository(db).listConsumers(organization, name, 100)),
  });
  await client.query(
    `insert into stack_resources (stack_id, key, digest, urn, type, name, place, dependencies, is_custom, is_external,
         is_protected, deletes_first, is_deleted, reads)
       select s.id, 'many-' || n, '', 'urn-' || n, 'a:b:C', 'name', 'place-' || n, '{}', true, false, false, false, false, $1
       from (${inOrganization('org-1')} limit 2) s, generate_series(1, 10000) n`,
    [name],
  );
  await client.query(
    `update stack_resources set reads = $1 where key = 'key-1' and stack_id in (${inOrganization('org-3')} limit 3)`,
    [name],
  );
  await analyzeExactly(client);
  const few = await measure();
  expect(few.own.returned).toBe(3);
  expect(few.graph.returned).toBe(3);
  for (const { pages, read } of Object.values(few)) {
    expect(read).toBeLessThanOrEqual(60);
    expect(pages).toBeLessThanOrEqual(150);
  }
  // More stacks of others than are looked at to find those of an organization.
  await client.query(
    `update stack_resources set reads = $1 where key = 'key-2' and stack_id not in (${inOrganization('org-3')})`,
    [name],
  );
  await analyzeExactly(client);
  const many = await measure();
  expect(many.own.returned).toBe(3);
  expect(many.graph.returned).toBe(3);
  // As many consumers as are looked at, and the stacks of the organization.
  for (const { read } of [many.own, many.graph]) expect(read).toBeLessThanOrEqual(2_100 + 4 * stacks);
  expect(many.others.read).toBeLessThanOrEqual(10 * 210);
});
