import { expect, test } from '@jest/globals';
import { mapGroups } from './group-mapping.ts';

test('several groups give the strongest of their roles, and all their teams', () => {
  const mapping = [
    { group: 'dev', organization: 'acme', teams: ['web'] },
    { group: 'lead', organization: 'acme', role: 'admin' as const, teams: ['web', 'ops'] },
    { group: 'all', organization: 'acme', role: 'viewer' as const },
    { group: 'other', organization: 'globex' },
  ];
  expect([...mapGroups(mapping, ['dev', 'lead', 'all'])]).toEqual([['acme', { role: 'admin', teams: ['web', 'ops'] }]]);
  expect([...mapGroups(mapping, ['dev'])]).toEqual([['acme', { role: 'member', teams: ['web'] }]]);
  expect(mapGroups(mapping, ['DEV']).size).toBe(0);
});
