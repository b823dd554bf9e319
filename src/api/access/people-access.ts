import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { Caller } from '../platform/http/request.ts';

type Viewer = Pick<Caller, 'userId' | 'login' | 'role' | 'isScoped' | 'policyId'>;

/** Whether the caller administers the organization in which the caller was found. */
export function manages({ isScoped, policyId, role }: Viewer): boolean {
  return role === 'admin' && !isScoped && policyId === null;
}

/**
 * Members and administering tokens may list the people of the organization in which the caller was found. A machine needs no list of
 * people: it sees the logins of authors wherever it may read their changes.
 */
export function seesPeople(caller: Viewer): boolean {
  return (
    manages(caller) || (caller.userId !== null && caller.role !== null && !caller.isScoped && caller.policyId === null)
  );
}

export function assertSeesPeople(caller: Viewer): void {
  if (!seesPeople(caller))
    throw new ForbiddenError(
      'Only members of the organization and tokens that administer it can list people, not scoped tokens or tokens of teams, services or CI runs',
    );
}

/** Admins see all e-mail addresses, other users only their own. Hidden addresses are empty. */
export function withAddresses<T extends { readonly login: string; readonly email: string }>(
  caller: Viewer,
  people: readonly T[],
): readonly T[] {
  if (manages(caller)) return people;
  return people.map((each) => (caller.userId !== null && each.login === caller.login ? each : { ...each, email: '' }));
}
