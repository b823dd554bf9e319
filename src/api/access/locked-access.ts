import { createIdentityRepository, type LockedAccess } from '../../shared/identity/identity-repository.ts';
import { createTeamRepository } from '../../shared/identity/team-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError, UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import type { Caller } from '../platform/http/request.ts';

/**
 * The access stays locked until the transaction ends: a concurrent revocation comes before or after it. Every change that a role or a
 * permission allows starts with this lock, before any other lock. Throws UnauthenticatedError.
 */
export async function lockAccess(tx: Queryable, organization: string, caller: Caller): Promise<LockedAccess> {
  const access = await createIdentityRepository(tx).lockAccess(caller.tokenId, organization);
  if (access === null) throw lostDuringCall();
  return access;
}

/** Like `lockAccess`, for changes of the organization itself. Also throws ForbiddenError. */
export async function lockManagement(tx: Queryable, organization: string, caller: Caller): Promise<void> {
  const { role } = await lockAccess(tx, organization, caller);
  assertManages({ role, isScoped: caller.isScoped }, organization);
}

/**
 * Like `lockAccess`, for changes of a team, which its own admins may also make. Returns whether the caller administers the organization.
 * Also throws ForbiddenError.
 */
export async function lockTeam(tx: Queryable, organization: string, caller: Caller, teamId: string): Promise<boolean> {
  const { role } = await lockAccess(tx, organization, caller);
  if (caller.isScoped) throw new ForbiddenError('This needs a token without scopes');
  if (role === 'admin') return true;
  // lockAccess has locked the membership in the team.
  if (caller.userId === null || !(await createTeamRepository(tx).isAdmin(teamId, caller.userId)))
    throw new ForbiddenError('This needs the role admin in the organization or in the team');
  return false;
}

/** Like `lockAccess`, for changes of the caller's own resources. */
export async function lockOwner(tx: Queryable, caller: Caller): Promise<void> {
  if (!(await createIdentityRepository(tx).lockOwner(caller.tokenId))) throw lostDuringCall();
}

export function assertManages({ role, isScoped }: Pick<Caller, 'role' | 'isScoped'>, organization: string): void {
  if (role !== 'admin') throw new ForbiddenError(`This needs the role admin in organization ${organization}`);
  if (isScoped) throw new ForbiddenError('This needs a token without scopes');
}

/** The caller lost their access after the call was admitted. */
export function lostDuringCall(): UnauthenticatedError {
  return new UnauthenticatedError('The API token, its user or the membership was removed during the call');
}
