import { createPeopleRepository, type PersonRow } from '../../shared/identity/people-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, ForbiddenError } from '../../shared/platform/errors/errors.ts';
import { assertOtherAdmin } from '../access/last-admin.ts';
import { lockOwner } from '../access/locked-access.ts';
import { patientLockMs } from '../access/people-lock.ts';
import type { Caller } from '../platform/http/request.ts';

/**
 * The caller stays a site admin until the transaction ends. Call before any other lock is taken. Throws UnauthenticatedError,
 * ForbiddenError.
 */
export async function lockOperator(tx: Queryable, caller: Caller): Promise<void> {
  const people = createPeopleRepository(tx);
  await people.lock(patientLockMs);
  await lockOwner(tx, caller);
  if (!(await people.find(caller.login))?.siteAdmin) throw new ForbiddenError('Only site admins may do this');
}

/** The server and each organization need another admin. Throws ConflictError. */
export async function assertNotLast(
  tx: Queryable,
  user: PersonRow,
  lost: { readonly siteAdmin: boolean; readonly active: boolean },
): Promise<void> {
  const losesSite = (lost.siteAdmin || lost.active) && user.siteAdmin;
  if (losesSite && (await createPeopleRepository(tx).isLastSiteAdmin(user.id)))
    throw new ConflictError(`${user.login} is the last site admin. Appoint another one first`);
  if (lost.active) await assertOtherAdmin(tx, user, null);
}
