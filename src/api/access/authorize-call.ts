import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { RequestedTarget } from '../../shared/identity/identity-repository.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { assertMayRun } from '../platform/audit-trail/ci-runs.ts';
import type { Access, Caller } from '../platform/http/request.ts';
import { assertManages } from './locked-access.ts';
import { OrganizationNotVisibleError } from './organizations.ts';
import { assertPermission } from './stack-access.ts';

export type CallTarget = RequestedTarget;

export type CallerAccess = Extract<Access, { kind: 'user' | 'operator' | 'organization' | 'stack' }>;

/**
 * The caller was found at `target`. Throws NotFoundError for objects whose existence the caller must not learn, otherwise ForbiddenError.
 * `action`: the action of the call in the audit log, if any.
 */
export function assertAuthorized(
  caller: Caller,
  access: CallerAccess,
  target: CallTarget,
  action: AuditAction | null = null,
): void {
  assertHasAccess(caller, access, target);
  assertMayRun(caller, access, action);
}

function assertHasAccess(caller: Caller, access: CallerAccess, target: CallTarget): void {
  if (access.kind === 'user') {
    if (caller.isProvisioning) throw onlyProvisions();
    return;
  }
  if (access.kind === 'operator') {
    if (!caller.siteAdmin)
      throw new ForbiddenError(
        'Only site admins may do this. An operator can appoint one: holdfast admin set-site-admin',
      );
    return;
  }
  // Non-members must not learn what exists in the organization.
  if (!caller.belongs) throw new OrganizationNotVisibleError();
  if (access.kind === 'organization') {
    if (access.permission === 'manage') assertManages(caller, target.organization as string);
    if (access.permission === 'provision' && !caller.isProvisioning)
      throw new ForbiddenError('This needs a provisioning token: holdfast admin token create --provisioning');
    if (access.permission !== 'provision' && caller.isProvisioning) throw onlyProvisions();
  } else if (!(access.former && caller.facts)) {
    // A missing stack must look like one that the caller may not read.
    if (caller.facts && caller.stackTags === null) throw stackNotFound(target as StackRef);
    assertPermission(caller, target as StackRef, readTags(caller.stackTags ?? '{}'), access.permission);
  }
}

/** A provisioning token has no permissions on stacks anyway. */
function onlyProvisions(): ForbiddenError {
  return new ForbiddenError('A provisioning token may only be used for provisioning');
}
