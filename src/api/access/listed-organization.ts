import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createStackListRepository, type ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';

/** An organization of a token's holder, with what decides which of its stacks are listed. Throws NotFoundError. */
export async function getListedOrganization(
  db: Queryable,
  tokenId: string,
  organization: string,
): Promise<ListedOrganization> {
  const [found] = await createStackListRepository(db).listOrganizations(tokenId, { name: organization, from: null });
  if (!found) throw new NotFoundError('Not found, or you are not a member of the organization');
  return found;
}
