import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createStackListRepository, type ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';

/** An organization does not exist, or the caller is not a member: the error does not reveal which. */
export class OrganizationNotVisibleError extends NotFoundError {
  override readonly name: string = 'OrganizationNotVisibleError';

  constructor() {
    super('Not found, or you are not a member of the organization');
  }
}

/** The organization of this name. Throws OrganizationNotVisibleError. */
export async function getOrganization(db: Queryable, name: string) {
  const organization = await createIdentityRepository(db).findOrganization(name);
  if (!organization) throw new OrganizationNotVisibleError();
  return organization;
}

/**
 * An organization of a token's holder, with the facts that decide which of its stacks are listed. Throws
 * OrganizationNotVisibleError.
 */
export async function getListedOrganization(
  db: Queryable,
  tokenId: string,
  organization: string,
): Promise<ListedOrganization> {
  const [found] = await createStackListRepository(db).listOrganizations(tokenId, { name: organization, from: null });
  if (!found) throw new OrganizationNotVisibleError();
  return found;
}
