import type { GrantSubject } from '../../shared/access/grant-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { createGrantBoundsRepository, type GrantedUsers } from './grant-bounds-repository.ts';

/** The number is limited, because each call reads all grants that apply to its caller. */
const maxGrantsOfOne = 1000;
const maxGrantsOfUser = 2000;

/** Call with the lock on people, after grants were added. Throws ConflictError. */
export async function assertGrantBounds(
  tx: Queryable,
  organizationId: string,
  subjects: readonly GrantSubject[],
): Promise<void> {
  const bounds = createGrantBoundsRepository(tx);
  for (const subject of subjects)
    if ((await bounds.countOf(organizationId, subject, maxGrantsOfOne + 1)) > maxGrantsOfOne)
      throw new ConflictError(`A user, team or token can have at most ${maxGrantsOfOne} grants in an organization`);
  const userIds = subjects.flatMap((each) => ('userId' in each ? each.userId : []));
  const teamIds = subjects.flatMap((each) => ('teamId' in each ? each.teamId : []));
  if (userIds.length + teamIds.length > 0) await assertUserBounds(tx, organizationId, { userIds, teamIds });
}

/** For a change, call it with the lock on people. */
export async function exceedsUserBounds(tx: Queryable, organizationId: string, users: GrantedUsers): Promise<boolean> {
  return (await createGrantBoundsRepository(tx).findOver(organizationId, users, maxGrantsOfUser)) !== null;
}

/** Call after users have joined teams. Throws ConflictError. */
export async function assertUserBounds(tx: Queryable, organizationId: string, users: GrantedUsers): Promise<void> {
  const login = await createGrantBoundsRepository(tx).findOver(organizationId, users, maxGrantsOfUser);
  if (login !== null)
    throw new ConflictError(
      `At most ${maxGrantsOfUser} grants of an organization can apply to a user, the grants of teams included: ${login} would have more`,
    );
}
