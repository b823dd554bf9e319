import { expect, test } from '@jest/globals';
import { decryptsByRole, withDecryptByRole } from './decrypt-by-role.ts';
import { type PermissionSet, permissionSet } from './permissions.ts';

const none = permissionSet([]);
const read = permissionSet(['read']);
const noDecrypt = permissionSet(['read', 'preview', 'write']);

test.each<[string, PermissionSet | null, boolean, PermissionSet | null]>([
  ['off takes decrypt from all', null, false, noDecrypt],
  ['on gives it back', noDecrypt, true, null],
  ['off changes nothing else', permissionSet(['read', 'decrypt']), false, read],
  ['on changes nothing else', read, true, permissionSet(['read', 'decrypt'])],
  ['on gives what it needs', none, true, permissionSet(['read', 'decrypt'])],
  ['off twice', none, false, none],
  ['on twice', null, true, null],
])('%s', (_name, before, isOn, after) => {
  expect(withDecryptByRole(before, isOn)).toBe(after);
  expect(decryptsByRole(after)).toBe(isOn);
});
