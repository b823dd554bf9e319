import { hasPermission } from '../../shared/access/permissions.ts';
import type { IdentityRepository, LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { Tags } from '../../shared/stacks/tags.ts';
import { missingPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';

export interface NewStack {
  readonly ref: StackRef;
  readonly tags: Tags;
  /** Teams that may update the stack. */
  readonly teams: readonly string[];
  readonly state: Buffer | null;
}

/** Throws NotFoundError and ForbiddenError unless the caller may create the stack, and its organization if it does not exist. */
export async function admitCreation(
  { config, identity }: Pick<ApiContext, 'config' | 'identity'>,
  caller: Caller,
  stack: NewStack,
): Promise<void> {
  const { organization } = stack.ref;
  if (caller.belongs) return assertMayCreate(caller, stack);
  if (caller.userId === null || caller.isScoped) throw organizationNotFound(organization);
  // Does not check whether the organization exists: non-members must not learn that.
  if (config.organizationCreation === 'site-admin' && !caller.siteAdmin) {
    throw organizationNotFound(organization, '; only site admins create organizations here');
  }
  if (await identity.findOrganization(organization)) await lockCreation(identity, caller, stack);
}

function assertMayCreate(access: LockedAccess, { ref, tags }: NewStack): void {
  const held = permissionsOn(access, { ...ref, tags });
  if (!hasPermission(held, 'write')) throw missingPermission('write', held, ref);
}

/** Another call of the caller may have just created the organization. */
export async function lockCreation(
  identity: IdentityRepository,
  caller: Caller,
  stack: NewStack,
): Promise<LockedAccess> {
  const access = await identity.lockAccess(caller.tokenId, stack.ref.organization);
  if (!access) throw organizationNotFound(stack.ref.organization);
  assertMayCreate(access, stack);
  return access;
}

export function organizationNotFound(organization: string, hint = ''): NotFoundError {
  return new NotFoundError(`Organization '${organization}' not found, or you are not a member of it${hint}`);
}
