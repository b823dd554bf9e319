import { createIdentityRepository } from '../../../shared/identity/identity-repository.ts';
import { createPeopleRepository } from '../../../shared/identity/people-repository.ts';
import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import { createTeamRepository } from '../../../shared/identity/team-repository.ts';
import type { OidcConfig } from '../../../shared/platform/config/oidc.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { isLogin } from '../../../shared/stacks/names.ts';
import { exceedsUserBounds } from '../../access/grant-bounds.ts';
import { patientLockMs } from '../../access/people-changes.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { type MappedAccess, mapGroups, readGroupMapping } from './group-mapping.ts';
import type { Claims } from './oidc-client.ts';
import type { SignedIn } from './session-service.ts';

const maxGroups = 10_000;

/** A person as the provider describes them, checked against the settings. */
interface Person {
  readonly issuer: string;
  readonly subject: string;
  readonly access: ReadonlyMap<string, MappedAccess>;
}

/** Finds or creates the user for an account of the provider, and applies its group mapping. */
export class OidcPeople {
  readonly #config: OidcConfig;
  readonly #logger: Logger;
  readonly #mapping: ReturnType<typeof readGroupMapping>;

  /** Throws ConfigError. */
  constructor(config: OidcConfig, logger: Logger) {
    this.#config = config;
    this.#logger = logger;
    this.#mapping = config.groupsFile === null ? [] : readGroupMapping(config.groupsFile);
  }

  /** Call in the transaction that begins the session. Throws ForbiddenError with a message for the user. */
  async admit(tx: Queryable, claims: Claims, audit: AuditTrail): Promise<SignedIn> {
    this.#assertDomain(claims);
    const person = {
      issuer: claims.iss,
      subject: claims.sub,
      access: mapGroups(this.#mapping, this.#groupsOf(claims)),
    };
    const people = createPeopleRepository(tx);
    await people.lock(patientLockMs);
    const providers = createProviderRepository(tx);
    const found = await providers.findIdentity(person.issuer, person.subject);
    if (found && !found.isActive) throw new ForbiddenError('This user was deactivated');
    const user = found ?? (await this.#create(tx, claims, person));
    audit.identify({ userId: user.userId, login: user.login, signIn: 'provider' });
    const suspensions = await providers.listSuspensions(user.userId);
    const access = new Map([...person.access].filter(([organization]) => !suspensions.includes(organization)));
    await this.#applyGroups(tx, user, access, audit);
    if (!found)
      await recordOfPerson(tx, audit, {
        action: 'user.create',
        login: user.login,
        object: user.login,
        details: { issuer: person.issuer, subject: person.subject },
      });
    await providers.noteSignIn(person.issuer, person.subject);
    return { ...user, method: 'provider' };
  }

  async #create(
    tx: Queryable,
    claims: Claims,
    { access, issuer, subject }: Person,
  ): Promise<{ readonly userId: string; readonly login: string }> {
    const { createUsers, loginClaim } = this.#config;
    if (createUsers === 'none' || (createUsers === 'mapped' && access.size === 0))
      throw new ForbiddenError(
        'You have no account here, and none of your groups gives you access; ask your administrator',
      );
    const login = claims[loginClaim];
    if (typeof login !== 'string' || !isLogin(login) || (loginClaim === 'email' && claims['email_verified'] !== true))
      throw new ForbiddenError(`The provider sends no usable login: claim ${loginClaim}`);
    const providers = createProviderRepository(tx);
    const email = claims['email_verified'] === true ? textOf(claims['email']) : '';
    const userId = await providers.insertUser(login, textOf(claims['name']), email);
    // Never adopted: an attacker who can choose names at the provider could choose an admin's.
    if (userId === null)
      throw new ForbiddenError(
        `The login ${login} belongs to another user; an operator can link you: holdfast admin user link`,
      );
    await providers.insertIdentity(userId, issuer, subject);
    return { userId, login };
  }

  /** Applies the group mapping, and removes roles and teams from earlier groups. Manual assignments stay. */
  async #applyGroups(
    tx: Queryable,
    { login, userId }: { readonly userId: string; readonly login: string },
    access: ReadonlyMap<string, MappedAccess>,
    audit: AuditTrail,
  ): Promise<void> {
    const providers = createProviderRepository(tx);
    const identity = createIdentityRepository(tx);
    const memberships = new Map((await providers.listMemberships(userId)).map((each) => [each.organization, each]));
    const record = (action: 'member.add' | 'member.role' | 'member.remove', organization: string, details: object) =>
      audit.record(tx, { action, organization, object: login, details: { ...details, by: 'groups' } });
    for (const [name, { role }] of access) {
      const present = memberships.get(name);
      // Assigned manually, or changed manually since.
      if (present && present.role !== present.mappedRole) continue;
      const organization = await identity.findOrganization(name);
      if (!organization) {
        this.#logger.warn({ organization: name }, 'group mapping names an organization that does not exist');
        continue;
      }
      if (present?.role === role) continue;
      await identity.setMembership(organization.id, userId, role);
      await providers.setMappedRole(organization.id, userId, role);
      await record(present ? 'member.role' : 'member.add', name, { role });
    }
    for (const { mappedRole, organization, organizationId, role } of memberships.values()) {
      if (mappedRole === null) continue;
      if (role !== mappedRole) await providers.forgetMappedRole(organizationId, userId);
      else if (!access.has(organization)) {
        await createPeopleRepository(tx).removeMembership(organizationId, userId);
        await record('member.remove', organization, { role });
      }
    }
    await this.#applyTeams(tx, { login, userId }, access, audit);
  }

  async #applyTeams(
    tx: Queryable,
    { login, userId }: { readonly userId: string; readonly login: string },
    access: ReadonlyMap<string, MappedAccess>,
    audit: AuditTrail,
  ): Promise<void> {
    const providers = createProviderRepository(tx);
    const teams = createTeamRepository(tx);
    for (const { organization, team, teamId } of await providers.listMappedTeams(userId)) {
      if (access.get(organization)?.teams.includes(team)) continue;
      await teams.removeMember(teamId, userId);
      await audit.record(tx, { action: 'team.remove', organization, object: team, details: { login, by: 'groups' } });
    }
    for (const [name, { teams: wanted }] of access) {
      const organization = wanted.length > 0 ? await createIdentityRepository(tx).findOrganization(name) : null;
      if (!organization) continue;
      for (const team of wanted) {
        const found = await teams.find(organization.id, team);
        if (!found) this.#logger.warn({ organization: name, team }, 'group mapping names a team that does not exist');
        else if (await exceedsUserBounds(tx, organization.id, { userIds: [userId], joining: found.id }))
          // A sign-in must not fail because of it.
          this.#logger.warn(
            { organization: name, team, login },
            'a user is in no further team: too many grants would apply',
          );
        else if (await providers.addMappedTeam(found.id, userId))
          await audit.record(tx, {
            action: 'team.add',
            organization: name,
            object: team,
            details: { login, by: 'groups' },
          });
      }
    }
  }

  #assertDomain(claims: Claims): void {
    const { allowedDomains } = this.#config;
    if (allowedDomains.length === 0) return;
    const email = textOf(claims['email']).toLowerCase();
    const domain = email.slice(email.lastIndexOf('@') + 1);
    if (claims['email_verified'] !== true || !email.includes('@') || !allowedDomains.includes(domain))
      throw new ForbiddenError('Only users with a verified e-mail address in certain domains may sign in');
  }

  #groupsOf(claims: Claims): readonly string[] {
    const { groupsClaim } = this.#config;
    const elsewhere = claims['_claim_names'];
    // Entra omits groups when there are too many. Treated as no groups, this would remove all roles.
    if (typeof elsewhere === 'object' && elsewhere !== null && groupsClaim in elsewhere)
      throw new ForbiddenError(
        'The provider did not send your groups because there are too many; ask your administrator',
      );
    const groups = [claims[groupsClaim] ?? []].flat().slice(0, maxGroups);
    return groups.filter((group): group is string => typeof group === 'string');
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 300).toWellFormed().replaceAll('\0', '') : '';
}
