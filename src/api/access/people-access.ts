import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { Caller } from '../platform/http/request.ts';

/** What of a caller decides about it. */
type Viewer = Pick<Caller, 'userId' | 'login' | 'role' | 'isScoped' | 'policyId'>;

/** Whether the caller administers the organization in which it was found. */
function manages({ isScoped, policyId, role }: Viewer): boolean {
  return role === 'admin' && !isScoped && policyId === null;
}

/**
 * Whether the caller may list the people of the organization in which it was found: its members may, and what administers it. A machine
 * needs no list of people: it sees logins with what they have done, where it may see that.
 */
export function seesPeople(caller: Viewer): boolean {
  return (
    manages(caller) || (caller.userId !== null && caller.role !== null && !caller.isScoped && caller.policyId === null)
  );
}

/** Throws ForbiddenError unless the caller may list people. */
export function assertSeesPeople(caller: Viewer): void {
  if (!seesPeople(caller))
    throw new ForbiddenError(
      'Lists of people are for members of the organization, and for tokens that administer it: not for tokens with scopes, of teams, of services or of CI runs',
    );
}

/** People with the addresses that the caller may know: admins of the organization all, everybody else their own. The others are empty. */
export function withAddresses<T extends { readonly login: string; readonly email: string }>(
  caller: Viewer,
  people: readonly T[],
): readonly T[] {
  if (manages(caller)) return people;
  return people.map((each) => (caller.userId !== null && each.login === caller.login ? each : { ...each, email: '' }));
}
