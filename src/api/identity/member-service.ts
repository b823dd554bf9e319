import type { Role } from '../../shared/access/roles.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository, type OrganizationMemberRow } from '../../shared/identity/people-repository.ts';
import { createProviderRepository } from '../../shared/identity/provider-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
} from '../../shared/platform/errors/errors.ts';
import { isLogin } from '../../shared/stacks/names.ts';
import { assertOtherAdmin } from '../access/last-admin.ts';
import { lockManagement } from '../access/locked-access.ts';
import { assertSeesPeople, withAddresses } from '../access/people-access.ts';
import { changePeople } from '../access/people-lock.ts';
import { builtInRole } from '../access/role-references.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { assertSeen, type SeenRevisions } from '../platform/edits/revisions.ts';
import { decodeContinuation, encodeContinuation } from '../platform/http/continuation.ts';
import type { Caller } from '../platform/http/request.ts';
import type { ChangeMemberRequest } from './members.schemas.ts';
import type { Person } from './person.ts';

export type { OrganizationMemberRow };

const pageSize = 500;

interface MemberPage {
  readonly members: readonly OrganizationMemberRow[];
  /** Null on the last page. */
  readonly continuationToken: string | null;
}

export class MemberService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** In the order of logins, after the login in the token. */
  async list(caller: Caller, organization: string, continuationToken: string | null): Promise<MemberPage> {
    assertSeesPeople(caller);
    const after = decodeContinuation(continuationToken ?? '', (login) =>
      login === '' || isLogin(login) ? login : null,
    );
    const people = createPeopleRepository(this.#context.db);
    const rows = await people.listOfOrganization(organization, { after, limit: pageSize + 1 });
    const members = withAddresses(caller, rows.slice(0, pageSize));
    const last = members.at(-1);
    const isCut = rows.length > members.length && last !== undefined;
    return { members, continuationToken: isCut ? encodeContinuation(last.login) : null };
  }

  /**
   * Whether the caller may add members without the users' consent. On a server with several organizations, nobody becomes a member, or is
   * revealed to an organization, without consent.
   */
  async mayAdd({ siteAdmin }: Pick<Caller, 'siteAdmin'>): Promise<boolean> {
    return siteAdmin || !(await createPeopleRepository(this.#context.db).hasSeveralOrganizations());
  }

  /**
   * Adding a member again with the same role changes nothing, unless `isNew` requires that the user is not a member. Throws
   * InvalidRequestError for a deactivated user, and ConflictError for a member.
   */
  async add(
    caller: Caller,
    organization: string,
    { isNew = false, login, role }: { readonly login: string; readonly role: Role; readonly isNew?: boolean },
    audit: AuditTrail,
  ): Promise<OrganizationMemberRow> {
    // Checked before any lookup: callers who may not add members must not learn which users exist.
    if (!(await this.mayAdd(caller)))
      throw new ForbiddenError(
        'This server has several organizations: invite the user, or let an operator run: holdfast admin add-member LOGIN --organization ORGANIZATION',
      );
    return changePeople(this.#context.db, organization, async (tx) => {
      const people = createPeopleRepository(tx);
      await lockManagement(tx, organization, caller);
      const found = await createIdentityRepository(tx).findOrganization(organization);
      const user = isLogin(login) ? await people.find(login) : null;
      if (!found || !user)
        throw new NotFoundError(
          `There is no user ${JSON.stringify(login.slice(0, 100))} on this server. An operator can create one: holdfast admin create-user`,
        );
      // Not a conflict: the pulumiservice provider takes 409 for "already a member", and would adopt a membership that does not exist.
      if (!user.isActive)
        throw new InvalidRequestError(
          `${login} is deactivated. An operator can change that: holdfast admin reactivate-user`,
        );
      const present = await people.findMembership(found.id, user.id);
      if (present && (isNew || present.role !== role))
        throw new ConflictError(`${login} is already a member of ${organization}, with the role ${present.role}`);
      if (present) audit.settle();
      else {
        await createIdentityRepository(tx).setMembership(found.id, user.id, role);
        await audit.record(tx, { organization, object: login, details: { role } });
      }
      return people.getMember(organization, login);
    });
  }

  /** `seen`: the role that the caller has read. Throws ConflictError for the last admin. */
  async setRole(
    caller: Caller,
    organization: string,
    { change, login }: { readonly login: string; readonly change: ChangeMemberRequest },
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    const role = readRole(change);
    await this.#change(caller, organization, login, async (tx, member) => {
      if (member.role === role) return audit.settle();
      await assertSeen(seen, member.role, `the role of ${login}`, () => null);
      if (member.role === 'admin') await assertOtherAdmin(tx, { id: member.userId, login }, organization);
      await createIdentityRepository(tx).setMembership(member.organizationId, member.userId, role);
      return audit.record(tx, { organization, object: login, details: { from: member.role, to: role } });
    });
  }

  /** Throws ConflictError for the last admin. */
  async remove(caller: Caller, organization: string, login: string, audit: AuditTrail): Promise<void> {
    await this.#change(caller, organization, login, async (tx, member) => {
      if (member.role === 'admin') await assertOtherAdmin(tx, { id: member.userId, login }, organization);
      await createPeopleRepository(tx).removeMembership(member.organizationId, member.userId);
      await audit.record(tx, { organization, object: login, details: { role: member.role } });
    });
  }

  /** The organizations of a person, with the role in each. */
  listOf({ userId }: Pick<Person, 'userId'>) {
    return createProviderRepository(this.#context.db).listMemberships(userId);
  }

  /** Throws ConflictError for the last admin. */
  async leave(person: Person, organizationName: string, audit: AuditTrail): Promise<void> {
    await changePeople(this.#context.db, `user ${person.login}`, async (tx) => {
      const people = createPeopleRepository(tx);
      await person.hold(tx);
      const organization = await createIdentityRepository(tx).findOrganization(organizationName);
      const membership = organization && (await people.findMembership(organization.id, person.userId));
      if (!membership)
        throw new NotFoundError(`You are not a member of ${JSON.stringify(organizationName.slice(0, 100))}`);
      const { login, userId } = person;
      const { role } = membership;
      if (role === 'admin') await assertOtherAdmin(tx, { id: userId, login }, organizationName);
      await people.removeMembership(organization.id, userId);
      await audit.record(tx, { organization: organizationName, object: login, details: { role } });
    });
  }

  #change(
    caller: Caller,
    organizationName: string,
    login: string,
    change: (tx: Queryable, member: Member) => Promise<void>,
  ): Promise<void> {
    return changePeople(this.#context.db, organizationName, async (tx) => {
      const people = createPeopleRepository(tx);
      await lockManagement(tx, organizationName, caller);
      const organization = await createIdentityRepository(tx).findOrganization(organizationName);
      const user = organization && (await people.find(login));
      const membership = organization && user && (await people.findMembership(organization.id, user.id));
      if (!membership)
        throw new NotFoundError(`${JSON.stringify(login.slice(0, 100))} is not a member of ${organizationName}`);
      await change(tx, { organizationId: organization.id, userId: user.id, role: membership.role });
    });
  }
}

function readRole({ fgaRoleId, role }: ChangeMemberRequest): Role {
  if ((role === undefined) === (fgaRoleId === undefined))
    throw new InvalidRequestError('Specify the new role of the member: viewer, member or admin');
  return role ?? memberRole(fgaRoleId ?? '');
}

/** Refuses roles of the organization, and roles of Pulumi Cloud. */
export function memberRole(id: string): Role {
  const role = builtInRole(id);
  if (role === null)
    throw new InvalidRequestError(
      'The role of a member is viewer, member or admin. Grants give other roles to members (POST /api/orgs/ORG/grants) or to their teams (pulumi org role assign)',
    );
  return role;
}

interface Member {
  readonly organizationId: string;
  readonly userId: string;
  readonly role: Role;
}
