import { decide, type StackFacts } from '../access/access-decision.ts';
import { createGrantRepository } from '../access/grant-repository.ts';
import { noPermissions, type Permission, type PermissionSet, permissionSet, permits } from '../access/permissions.ts';
import { rolePermissions } from '../access/roles.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { createIdentityRepository, type LockedAccess } from './identity-repository.ts';

export function permissionsOn({ role, facts, policyId }: LockedAccess, stack: StackFacts): PermissionSet {
  const held = facts ? decide(facts, stack) : role === null ? noPermissions : rolePermissions[role];
  // A CI run changes neither the grants nor the rules of a stack, whatever the role and scopes of its token.
  return policyId === null ? held : held & ~permissionSet(['manage']);
}

export interface LockedRights {
  mayWrite(stack: StackFacts): boolean;
  /** The new names and tags change no grants that apply, or the holder may change them. */
  mayBecome(organizationId: string, stack: StackFacts, next: StackFacts): Promise<boolean>;
  mayManage(stack: StackFacts): boolean;
}

/**
 * No rights if the token is not valid in the organization. The result and the grants do not change until the end of the transaction. Call
 * this before taking any other lock.
 */
export async function lockRights(tx: Queryable, tokenId: string, organization: string): Promise<LockedRights> {
  const access = await createIdentityRepository(tx).lockAccess(tokenId, organization);
  const may = (permission: Permission, stack: StackFacts) =>
    access !== null && permits(permissionsOn(access, stack), permission);
  return {
    mayWrite: (stack) => may('write', stack),
    mayManage: (stack) => may('manage', stack),
    mayBecome: async (organizationId, stack, next) =>
      may('manage', stack) || !(await createGrantRepository(tx).distinguishes(organizationId, stack, next)),
  };
}
