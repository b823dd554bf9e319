import { type Role, roles } from '../../shared/access/roles.ts';
import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { PeopleRepository, PersonRow } from '../../shared/identity/people-repository.ts';
import { InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { CommandRefusedError } from './admin-session.ts';
import type { Work } from './audited-action.ts';

/** All functions throw CommandRefusedError. */

export async function findUser(people: PeopleRepository, login: string): Promise<PersonRow> {
  const user = await people.find(login);
  if (!user) throw refused(`there is no user ${JSON.stringify(login)}`);
  return user;
}

export async function findTeam(
  { identity, teams }: Pick<Work, 'identity' | 'teams'>,
  organizationName: string,
  name: string,
) {
  const organization = await findOrganization(identity, organizationName);
  const team = await teams.find(organization.id, name);
  if (!team) throw refused(`there is no team ${JSON.stringify(name)} in ${organization.name}`);
  return { organization, team };
}

export async function findOrganization(identity: IdentityRepository, name: string) {
  const organization = await identity.findOrganization(name);
  if (!organization) throw refused(`there is no organization ${JSON.stringify(name)}`);
  return organization;
}

/**
 * Throws if the user is the only active admin of the organization, or of any organization if `organization` is null.
 */
export async function refuseLastAdmin(
  people: PeopleRepository,
  user: PersonRow,
  organization: string | null,
): Promise<void> {
  const names = (await people.listOnlyAdminOf(user.id)).filter(
    (name) => organization === null || name === organization,
  );
  if (names.length > 0)
    throw refused(
      `${user.login} is the last admin of ${names.join(', ')}: nobody could delete stacks there. Appoint another admin first, or use --force`,
    );
}

export async function refuseLastSiteAdmin(people: PeopleRepository, user: PersonRow): Promise<void> {
  if (user.siteAdmin && (await people.isLastSiteAdmin(user.id)))
    throw refused(`${user.login} is the last site admin. Appoint another site admin first, or use --force`);
}

/** If `read` rejects an argument, the command is rejected with the same reason. */
export function orRefused<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidRequestError) throw refused(error.message);
    throw error;
  }
}

export function toRole(text: string): Role {
  const role = roles.find((each) => each === text);
  if (role === undefined) throw refused(`there is no role ${JSON.stringify(text)}: ${roles.join(', ')}`);
  return role;
}

export const refused = (message: string): CommandRefusedError => new CommandRefusedError(message);
export const notIn = (login: string, organization: string): CommandRefusedError =>
  refused(`${login} is not in ${organization}: holdfast admin add-member ${login} --organization ${organization}`);
