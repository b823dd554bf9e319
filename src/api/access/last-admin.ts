import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';

/**
 * Throws ConflictError if the organization would have no admin without the user; null: any organization. Call under the lock on people,
 * which prevents two admins from removing each other.
 */
export async function assertOtherAdmin(
  tx: Queryable,
  { id, login }: { readonly id: string; readonly login: string },
  organization: string | null,
): Promise<void> {
  const only = (await createPeopleRepository(tx).listOnlyAdminOf(id)).filter(
    (name) => organization === null || name === organization,
  );
  if (only.length > 0)
    throw new ConflictError(`${login} is the last admin of ${only.join(', ')}. Appoint another admin first`);
}
