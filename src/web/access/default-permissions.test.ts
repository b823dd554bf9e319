import { expect, test } from '@jest/globals';
import { lostPermissions, withNeeds } from './default-permissions.ts';

test('a permission includes the permissions it needs', () => {
  expect(withNeeds(['write'])).toEqual(['read', 'preview', 'write']);
  expect(withNeeds(['decrypt'])).toEqual(['read', 'decrypt']);
  expect(withNeeds([])).toEqual([]);
  expect(withNeeds(null)).toEqual(['read', 'preview', 'write', 'decrypt']);
  expect(withNeeds(['outputs', 'admin'])).toEqual([]);
});

test('lost permissions are listed in advance', () => {
  expect(lostPermissions(null, ['write'])).toEqual(['decrypt']);
  expect(lostPermissions(null, [])).toEqual(['read', 'preview', 'write', 'decrypt']);
  expect(lostPermissions(['read'], ['write', 'decrypt'])).toEqual([]);
  expect(lostPermissions([], null)).toEqual([]);
});
