import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { allowedBy, grantable } from '../../shared/access/permissions.ts';
import { isRoleName, parseRoleDetails, writeRoleDetails } from './role-details.ts';

const allow = (...permissions: unknown[]) => ({ __type: 'PermissionDescriptorAllow', permissions });

describe('details of a role', () => {
  test('are a set of permissions, with or without a prefix, and what they need', () => {
    expect(parseRoleDetails(allow('stack:write'))).toBe(allowedBy(['write']));
    expect(parseRoleDetails(allow('decrypt', 'stack:outputs'))).toBe(allowedBy(['decrypt', 'outputs']));
  });

  test('round-trip with the same meaning', () => {
    fc.assert(
      fc.property(fc.subarray([...grantable], { minLength: 1 }), (names) => {
        const set = allowedBy(names);
        expect(parseRoleDetails(JSON.parse(JSON.stringify(writeRoleDetails(set))))).toBe(set);
      }),
    );
  });

  test.each([
    [null, /the form/],
    ['stack:read', /the form/],
    [[], /the form/],
    [
      { __type: 'PermissionDescriptorCondition', subNode: allow('stack:read') },
      /no "PermissionDescriptorCondition".*grants/,
    ],
    [{ __type: 'PermissionDescriptorGroup', entries: [allow('stack:read')] }, /PermissionDescriptorGroup/],
    [{ permissions: ['stack:read'] }, /of this kind/],
    [{ ...allow('stack:read'), constraints: {} }, /"constraints"/],
    [allow(), /list its permissions/],
    [allow(1), /list its permissions/],
    [{ __type: 'PermissionDescriptorAllow', permissions: 'stack:read' }, /list its permissions/],
    // Each is part of one of our permissions.
    [allow('stack:read', 'stack:export'), /"stack:export".*stack:outputs/],
    [allow('stack:encrypt'), /"stack:encrypt"/],
    [allow('environment:open'), /"environment:open"/],
    [allow('stack:__proto__'), /__proto__/],
  ])('%j are refused', (details, message) => {
    expect(() => parseRoleDetails(details)).toThrow(message);
  });
});

test('names of roles have only one line', () => {
  expect(['Stack Reader', 'a', 'ci:web.prod@x-1'].every(isRoleName)).toBe(true);
  expect(['', ' a', 'a\n', 'a/b', 'x'.repeat(101)].some(isRoleName)).toBe(false);
});
