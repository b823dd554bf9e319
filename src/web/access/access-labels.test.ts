import { expect, test } from '@jest/globals';
import { choosePermission, permissions } from './access-labels.ts';

test('a choice keeps permissions that only a newer server knows, and no others that cannot be chosen', () => {
  expect(choosePermission(['read', 'teleport'], permissions, 'write', true).sort()).toEqual([
    'read',
    'teleport',
    'write',
  ]);
  expect(choosePermission(['read', 'teleport'], permissions, 'read', false)).toEqual(['teleport']);
  expect(choosePermission(['read', 'write'], ['read'], 'read', true)).toEqual(['read']);
});
