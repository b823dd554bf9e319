import { expect, test } from '@jest/globals';
import { parseActivitySearch, toActivityQuery } from './activity-search.ts';

test.each([
  [{}, {}],
  [
    { kind: 'freezes', who: 'ada' },
    { kind: 'freezes', by: 'ada' },
  ],
  [{ kind: 'other', who: 1 }, {}],
  [{ stack: 'web' }, { project: 'web' }],
  [{ stack: ' web / prod ' }, { project: 'web', stack: 'prod' }],
  [{ stack: 'web/' }, { project: 'web' }],
  [{ stack: '/prod' }, {}],
])('the filters %j of a URL are %j for the server', (search, query) => {
  expect(toActivityQuery(parseActivitySearch(search))).toEqual(query);
});
