import type { Queryable } from '../platform/db/sql.ts';
import { decide, type StackFacts } from './access-decision.ts';
import { createIdentityRepository, type HeldAccess } from './identity-repository.ts';
import { noPermissions, type PermissionSet, permits } from './permissions.ts';
import { rolePermissions } from './roles.ts';

/** What somebody with this access to an organization may do with one of its stacks. */
export function permissionsOn({ role, facts }: HeldAccess, stack: StackFacts): PermissionSet {
  if (facts) return decide(facts, stack);
  return role === null ? noPermissions : rolePermissions[role];
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
