import { beforeAll, expect, test } from '@jest/globals';
import { createStackQueryRepository, type OverviewFilter } from '../../src/api/stacks/stack-query-repository.ts';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const organizations: { id: string; name: string; facts: null }[] = [];

/** A hundred stacks, of which all have one tag, half the value of another, and three a third. */
beforeAll(async () => {
  for (const name of ['one', 'two']) {
    const { id } = await app.context.identity.ensureOrganization(name);
    await query(app, `insert into projects (organization_id, name) values ($1, 'p')`, [id]);
    organizations.push({ id, name, facts: null });
  }
  await query(
    app,
    `insert into stacks (project_id, name, tags)
     select p.id, 's' || n, json_build_object('all', 'x', 'half', n % 2, case when n < 3 then 'few' else 'other' end, 'y')::text
     from projects p join organizations o on o.id = p.organization_id and o.name = 'one', generate_series(0, 99) n`,
  );
});

const stacks = () => createStackQueryRepository(app.context.db);

test.each([
  ['all', null, true],
  ['half', '1', true],
  ['few', null, false],
  ['half', '7', false],
  ['none', null, false],
])('the tag %s with the value %s is common: %s', async (name, value, isCommon) => {
  const tag = { name, value };
  expect(await stacks().isTagCommon(organizations, tag, 2)).toBe(isCommon);
  expect(await stacks().isTagCommon(organizations, tag, 100)).toBe(false);
  const filter = { organizations, words: [], owner: null, updated: null, project: null, frozenBy: null, before: null };
  const list = async (how: Partial<OverviewFilter>) => {
    const rows = await stacks().list({ ...filter, tag, status: null, isTagCommon: false, limit: 1_000, ...how });
    return rows.map(({ stack }) => stack);
  };
  const found = await list({});
  expect(found).toHaveLength(name === 'all' ? 100 : name === 'few' ? 3 : value === '1' ? 50 : 0);
  expect(await list({ isTagCommon: true })).toEqual(found);
  expect(await list({ isTagCommon: true, limit: 2 })).toEqual(found.slice(0, 2));
  expect(await list({ isTagCommon: true, words: ['s1'] })).toEqual(await list({ words: ['s1'] }));
});
