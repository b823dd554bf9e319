import { beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { createQuotaRepository } from '../../src/shared/access/quotas/quota-repository.ts';
import { createProjectDayRepository } from '../../src/workers/statistics/project-day-repository.ts';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
let organizationId: string;
let number = 0;

const counted = () => createQuotaRepository(app.context.db).countStacks(organizationId);
const rows = async () =>
  (
    await query<{ n: number }>(app, 'select count(*)::int as n from stack_counts where organization_id = $1', [
      organizationId,
    ])
  )[0]?.n;
const sum = () => createProjectDayRepository(app.context.db).addStackCounts(1_000);
const add = (names: string) =>
  `insert into stacks (project_id, name) select id, n from projects, unnest('{${names}}'::text[]) n
   where organization_id = '${organizationId}'`;
const remove = (name: string) =>
  `delete from stacks where name = '${name}' and project_id in (
     select id from projects where organization_id = '${organizationId}')`;
const hide = (name: string) => remove(name).replace('delete from stacks', 'update stacks set deleted_at = now()');

async function inTransaction(statement: string): Promise<{ end(): Promise<void> }> {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  await client.query('begin');
  await client.query(statement);
  return {
    end: async () => {
      await client.query('commit');
      await client.end();
    },
  };
}

beforeEach(async () => {
  organizationId = (await app.context.identity.ensureOrganization(`counted-${number++}`)).id;
  await query(app, `insert into projects (organization_id, name) values ($1, 'p')`, [organizationId]);
});

test('the rows of an organization become their sum', async () => {
  expect(await counted()).toBe(0);
  await query(app, add('a,b,c'));
  expect([await counted(), await rows()]).toEqual([3, 3]);
  await sum();
  expect([await counted(), await rows()]).toEqual([3, 1]);
  await query(app, hide('a'));
  await query(app, remove('b'));
  expect(await counted()).toBe(1);
  await query(app, `update stacks set deleted_at = null where name = 'a' and deleted_at is not null`);
  expect(await counted()).toBe(2);
  for (const name of ['a', 'c']) await query(app, remove(name));
  await sum();
  expect([await counted(), await rows()]).toEqual([0, 0]);
});

test('stacks that come and leave while others are added up count once', async () => {
  await query(app, add('a,b,c'));
  const [coming, leaving] = [await inTransaction(add('d,e')), await inTransaction(remove('a'))];
  await Promise.all([sum(), sum(), sum()]);
  expect(await counted()).toBe(3);
  await coming.end();
  expect(await counted()).toBe(5);
  await Promise.all([sum(), sum(), sum()]);
  await leaving.end();
  expect(await counted()).toBe(4);
  await sum();
  expect([await counted(), await rows()]).toEqual([4, 1]);
});
