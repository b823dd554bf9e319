import { createIdentityRepository } from '../../../shared/identity/identity-repository.ts';
import { createPeopleRepository } from '../../../shared/identity/people-repository.ts';
import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import { createTeamRepository } from '../../../shared/identity/team-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { exceedsUserBounds } from '../../access/grant-bounds.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { MappedAccess } from './group-mapping.ts';

export interface KnownUser {
  readonly userId: string;
  readonly login: string;
}

type Change = (tx: Queryable, audit: AuditTrail) => Promise<void>;

/** Afterwards, a user has everything that the groups give, and nothing that only earlier groups gave. Manual assignments stay. */
export type Plan = (
  db: Queryable,
  user: KnownUser,
  access: ReadonlyMap<string, MappedAccess>,
) => Promise<readonly Change[]>;

export function groupPlans(logger: Logger): readonly Plan[] {
  return [
    (db, user, access) => planRoles(db, user, access, logger),
    (db, user, access) => planTeams(db, user, access, logger),
  ];
}

async function planRoles(
  db: Queryable,
  { login, userId }: KnownUser,
  access: ReadonlyMap<string, MappedAccess>,
  logger: Logger,
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  const memberships = new Map(
    (await createProviderRepository(db).listMemberships(userId)).map((each) => [each.organization, each]),
  );
  const byGroups = (organization: string, details: object) => ({
    ...{ organization, object: login, details: { ...details, by: 'groups' } },
  });
  for (const [name, { role }] of access) {
    const present = memberships.get(name);
    // Assigned manually, changed manually since, or already right.
    if (present && (present.role !== present.mappedRole || present.role === role)) continue;
    const organization = await createIdentityRepository(db).findOrganization(name);
    if (!organization) {
      logger.warn({ organization: name }, 'group mapping names an organization that does not exist');
      continue;
    }
    changes.push(async (tx, audit) => {
      await createIdentityRepository(tx).setMembership(organization.id, userId, role);
      await createProviderRepository(tx).setMappedRole(organization.id, userId, role);
      await audit.record(tx, { action: present ? 'member.role' : 'member.add', ...byGroups(name, { role }) });
    });
  }
  for (const { mappedRole, organization, organizationId, role } of memberships.values()) {
    if (mappedRole === null) continue;
    if (role !== mappedRole)
      changes.push(async (tx) => {
        await createProviderRepository(tx).forgetMappedRole(organizationId, userId);
      });
    else if (!access.has(organization))
      changes.push(async (tx, audit) => {
        await createPeopleRepository(tx).removeMembership(organizationId, userId);
        await audit.record(tx, { action: 'member.remove', ...byGroups(organization, { role }) });
      });
  }
  return changes;
}

async function planTeams(
  db: Queryable,
  { login, userId }: KnownUser,
  access: ReadonlyMap<string, MappedAccess>,
  logger: Logger,
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  const byGroups = { login, by: 'groups' };
  for (const { organization, team, teamId } of await createProviderRepository(db).listMappedTeams(userId)) {
    if (access.get(organization)?.teams.includes(team)) continue;
    changes.push(async (tx, audit) => {
      await createTeamRepository(tx).removeMember(teamId, userId);
      await audit.record(tx, { action: 'team.remove', organization, object: team, details: byGroups });
    });
  }
  for (const [name, { teams: wanted }] of access) {
    const organization = wanted.length > 0 ? await createIdentityRepository(db).findOrganization(name) : null;
    if (!organization) continue;
    for (const team of wanted) {
      const found = await createTeamRepository(db).find(organization.id, team);
      if (!found) logger.warn({ organization: name, team }, 'group mapping names a team that does not exist');
      if (!found || (await createProviderRepository(db).isInTeam(found.id, userId))) continue;
      const isTooMuch = async (at: Queryable): Promise<boolean> => {
        const exceeds = await exceedsUserBounds(at, organization.id, { userIds: [userId], joining: found.id });
        // Too many memberships must not make the sign-in fail.
        if (exceeds)
          logger.warn({ organization: name, team, login }, 'a user is in no further team: too many grants would apply');
        return exceeds;
      };
      // With too many memberships, a user would wait for other changes at each sign-in.
      if (changes.length === 0 && (await isTooMuch(db))) continue;
      changes.push(async (tx, audit) => {
        if (await isTooMuch(tx)) return;
        if (await createProviderRepository(tx).addMappedTeam(found.id, userId))
          await audit.record(tx, { action: 'team.add', organization: name, object: team, details: byGroups });
      });
    }
  }
  return changes;
}
