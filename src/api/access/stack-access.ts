import {
  hasPermission,
  namesOf,
  type Permission,
  type PermissionSet,
  permits,
} from '../../shared/access/permissions.ts';
import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags, type Tags } from '../../shared/stacks/tags.ts';
import type { Caller } from '../platform/http/request.ts';

export function permissionsInPath(caller: Caller, ref: StackRef): PermissionSet {
  return permissionsOn(caller, { ...ref, tags: readTags(caller.stackTags ?? '{}') });
}

/** Throws NotFoundError if the caller may not even read the stack, otherwise ForbiddenError. */
export function assertPermission(access: LockedAccess, ref: StackRef, tags: Tags, permission: Permission): void {
  const held = permissionsOn(access, { ...ref, tags });
  if (!permits(held, permission)) throw deniedBy(held, ref, permission);
}

export function deniedBy(held: PermissionSet, ref: StackRef, permission: Permission): Error {
  return hasPermission(held, 'read') ? missingPermission(permission, held, ref) : stackNotFound(ref);
}

export function missingPermission(permission: Permission, held: PermissionSet, ref: StackRef): ForbiddenError {
  const has = namesOf(held)
    .filter((name) => name !== 'outputs')
    .join(', ');
  return new ForbiddenError(
    `This needs the permission ${permission} on ${formatStackRef({ ...ref })}; you have ${has || 'none'}`,
  );
}
