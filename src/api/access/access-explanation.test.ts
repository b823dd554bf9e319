import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decide } from '../../shared/access/access-decision.ts';
import { allowedBy, deniedBy, hasPermission, type Permission } from '../../shared/access/permissions.ts';
import { rolePermissions } from '../../shared/access/roles.ts';
import { explain, type HolderFacts } from './access-explanation.ts';

const stack = { project: 'web', stack: 'dev', tags: { team: 'blue' } };
const everywhere = { project: null, stack: null, tagName: null, tagValue: null };
const grant = (id: string, permissions: number, more: object = {}) => ({
  id,
  deny: false,
  token: false,
  permissions,
  ...everywhere,
  ...more,
});
const holder = (more: Partial<HolderFacts>): HolderFacts => ({ base: 0, grants: [], scopes: null, ...more });
const reasonOf = (of: HolderFacts, name: Permission, hasRole = true) => {
  const found = explain(of, stack, hasRole).permissions.find(({ permission }) => permission === name);
  return [found?.isAllowed, found?.reason, found?.grantIds];
};

describe('permissions are explained by', () => {
  test('the role, and grants that give the same', () => {
    const of = holder({ base: rolePermissions.viewer, grants: [grant('a', allowedBy(['write']))] });
    expect(reasonOf(of, 'read')).toEqual([true, 'role', ['a']]);
    expect(reasonOf(of, 'write')).toEqual([true, 'grants', ['a']]);
    expect(reasonOf(of, 'outputs')).toEqual([true, 'included', []]);
    expect(reasonOf(of, 'admin')).toEqual([false, 'nothing', []]);
  });

  test('denials, and missing permissions', () => {
    const of = holder({
      base: rolePermissions.member,
      grants: [
        grant('other', deniedBy(['read']), { deny: true, stack: 'prod' }),
        grant('tag', 2, { deny: true, tagName: 'team', tagValue: 'blue' }),
      ],
    });
    expect(reasonOf(of, 'preview')).toEqual([false, 'denied', ['tag']]);
    expect(reasonOf(of, 'write')).toEqual([false, 'needs', []]);
    expect(reasonOf(of, 'read')).toEqual([true, 'role', []]);
  });

  test('the scopes of a token, with or without a role', () => {
    const scopes = [{ permissions: allowedBy(['preview']), project: 'web', stack: null }];
    expect(reasonOf(holder({ base: rolePermissions.admin, scopes }), 'write')).toEqual([false, 'scopes', []]);
    expect(reasonOf(holder({ base: rolePermissions.admin, scopes }), 'preview')).toEqual([true, 'role', []]);
    expect(reasonOf(holder({ base: rolePermissions.admin, scopes }), 'preview', false)).toEqual([true, 'scopes', []]);
    const own = [grant('own', allowedBy(['write']), { token: true })];
    expect(reasonOf(holder({ base: rolePermissions.admin, scopes: [], grants: own }), 'write', false)).toEqual([
      true,
      'grants',
      ['own'],
    ]);
  });
});

test('an explanation always matches the decision, and names the deciding grants', () => {
  const mask = fc.integer({ min: 0, max: 127 });
  const name = fc.constantFrom(null, 'web', 'dev', 'w*', 'prod');
  const grants = fc.array(
    fc.record({
      deny: fc.boolean(),
      token: fc.boolean(),
      permissions: mask,
      project: name,
      stack: name,
      tagName: fc.constantFrom(null, 'team'),
      tagValue: fc.constantFrom(null, 'red', 'blue'),
    }),
    { maxLength: 5 },
  );
  const scopes = fc.option(fc.array(fc.record({ permissions: mask, project: name, stack: name }), { maxLength: 3 }));
  fc.assert(
    fc.property(mask, grants, scopes, fc.boolean(), (base, given, limits, hasRole) => {
      const of = { base, grants: given.map((each, at) => ({ ...each, id: String(at) })), scopes: limits };
      const { held, permissions } = explain(of, stack, hasRole);
      expect(held).toBe(decide(of, stack));
      for (const { grantIds, isAllowed, permission, reason } of permissions) {
        expect(isAllowed).toBe(hasPermission(held, permission));
        expect(['denied', 'nothing', 'needs'].includes(reason) && isAllowed).toBe(false);
        for (const id of grantIds) {
          const named = of.grants[Number(id)];
          expect(named).toMatchObject({ deny: reason === 'denied' });
          expect(hasPermission(named?.permissions ?? 0, permission)).toBe(true);
        }
        expect(reason === 'denied' && grantIds.length === 0).toBe(false);
      }
    }),
  );
});
