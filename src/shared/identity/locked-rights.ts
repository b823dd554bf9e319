import { decide, type StackFacts } from '../access/access-decision.ts';
import { createGrantRepository } from '../access/grant-repository.ts';
import { noPermissions, type Permission, type PermissionSet, permissionSet, permits } from '../access/permissions.ts';
import { rolePermissions } from '../access/roles.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { createIdentityRepository, type LockedAccess } from './identity-repository.ts';

/** What a caller with this access to an organization may do with one of its stacks. */
export function permissionsOn({ role, facts, policyId }: LockedAccess, stack: StackFacts): PermissionSet {
  const held = facts ? decide(facts, stack) : role === null ? noPermissions : rolePermissions[role];
  // A CI run changes neither the grants nor the rules of a stack, regardless of the role and scopes of its token.
  return policyId === null ? held : held & ~permissionSet(['manage']);
}

/** What the holder of a token may do with stacks of an organization. */
export interface LockedRights {
  /** Whether a stack with these names and tags may be written to. */
  mayWrite(stack: StackFacts): boolean;
  /** Whether the change of names and tags is allowed to change which grants apply to the stack, or changes none. */
  mayBecome(organizationId: string, stack: StackFacts, next: StackFacts): Promise<boolean>;
  /** Whether a stack with these names and tags may be managed. */
  mayManage(stack: StackFacts): boolean;
}

/**
 * Returns what the holder of a token may do in an organization: nothing if the token is no longer valid there. The result and the grants stay
 * unchanged until the end of the transaction. Call before any other lock is taken.
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
