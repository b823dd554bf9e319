import { expect, test } from '@jest/globals';
import { createSearchRepository } from '../../src/api/search/search-repository.ts';
import { query } from '../support/database.ts';
import { createStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();

test('statistics tell words of many resources from those of few', async () => {
  await createStack(app);
  await query(app, 'insert into state_indexes (stack_id, version) select id, 1 from stacks on conflict do nothing');
  await query(
    app,
    `insert into stack_resources (stack_id, key, digest, urn, type, name, place, dependencies, is_custom, is_external, is_protected,
       deletes_first, is_deleted)
     select id, n::text, '', 'urn', 'a:b:C', case when n = 7 then 'needle' else 'common-' || n end, n::text, '{}', true, false, false, false, false
     from stacks, generate_series(1, 3000) n`,
  );
  await query(app, 'analyze stack_resources');
  const estimate = (...words: string[]) => createSearchRepository(app.context.db).estimate(words);
  expect(await estimate('common')).toBeGreaterThan(2_000);
  expect(await estimate('needle')).toBeLessThan(100);
  expect(await estimate('nothing')).toBeLessThan(100);
});
