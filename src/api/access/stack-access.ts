import { decide, type StackFacts } from '../../shared/identity/access-decision.ts';
import type { HeldAccess } from '../../shared/identity/identity-repository.ts';
import {
  hasPermission,
  namesOf,
  noPermissions,
  type Permission,
  type PermissionSet,
} from '../../shared/identity/permissions.ts';
import { rolePermissions } from '../../shared/identity/roles.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { Tags } from '../../shared/stacks/tags.ts';

/** What somebody with this access to an organization may do with one of its stacks. */
export function permissionsOn({ role, facts }: HeldAccess, stack: StackFacts): PermissionSet {
  if (facts) return decide(facts, stack);
  return role === null ? noPermissions : rolePermissions[role];
}

/**
 * Throws unless the access to the organization includes the permission on the stack: NotFoundError if the stack may not even be
 * read, otherwise ForbiddenError.
 */
export function assertPermission(access: HeldAccess, ref: StackRef, tags: Tags, permission: Permission): void {
  const held = permissionsOn(access, { ...ref, tags });
  if (hasPermission(held, permission)) return;
  if (!hasPermission(held, 'read')) throw stackNotFound(ref);
  throw missingPermission(permission, held, ref);
}

export function missingPermission(permission: Permission, held: PermissionSet, ref: StackRef): ForbiddenError {
  const has = namesOf(held).join(', ') || 'none';
  return new ForbiddenError(
    `This needs the permission ${permission} on ${formatStackRef({ ...ref })}; you have ${has}`,
  );
}
