import type { Queryable } from '../platform/db/sql.ts';
import { decide, type StackFacts } from './access-decision.ts';
import { createIdentityRepository, type HeldAccess } from './identity-repository.ts';
import { noPermissions, type PermissionSet, permissionSet, permits } from './permissions.ts';
import { rolePermissions } from './roles.ts';

/** What somebody with this access to an organization may do with one of its stacks. */
export function permissionsOn({ role, facts, policyId }: HeldAccess, stack: StackFacts): PermissionSet {
  const held = facts ? decide(facts, stack) : role === null ? noPermissions : rolePermissions[role];
  // A CI run decides neither who may do what with a stack nor which rules it has, whatever role and scopes its token has.
  return policyId === null ? held : held & ~permissionSet(['manage']);
}

/** Whether the holder of a token may write to a stack with these names and tags. */
export type MayWrite = (stack: StackFacts) => boolean;

/**
 * Returns what the holder of a token may write to in an organization: nothing if the token is no longer valid there. This stays so until
 * the end of the transaction. Call before any other lock is taken.
 */
export async function holdWriting(tx: Queryable, tokenId: string, organization: string): Promise<MayWrite> {
  const access = await createIdentityRepository(tx).holdAccess(tokenId, organization);
  return (stack) => access !== null && permits(permissionsOn(access, stack), 'write');
}
