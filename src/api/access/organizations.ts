import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createStackListRepository, type ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';

/** The error does not reveal whether the organization does not exist or the caller is not a member. */
export class OrganizationNotVisibleError extends NotFoundError {
  override readonly name: string = 'OrganizationNotVisibleError';

  constructor() {
    super('Not found, or you are not a member of the organization');
  }
}

/** Throws OrganizationNotVisibleError. */
export async function getOrganization(db: Queryable, name: string) {
  const organization = await createIdentityRepository(db).findOrganization(name);
  if (!organization) throw new OrganizationNotVisibleError();
  return organization;
}

/** The facts decide which stacks of the organization are listed. Throws OrganizationNotVisibleError. */
export async function getListedOrganization(
  db: Queryable,
  tokenId: string,
  organization: string,
): Promise<ListedOrganization> {
  const [found] = await createStackListRepository(db).listOrganizations(tokenId, { name: organization, from: null });
  if (!found) throw new OrganizationNotVisibleError();
  return found;
}
