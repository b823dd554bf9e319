import type { Role } from '../../shared/access/roles.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import {
  createInvitationRepository,
  type InvitationRow,
  invitationDays,
  maxInvitations,
} from '../../shared/identity/invitation-repository.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import { createProviderRepository } from '../../shared/identity/provider-repository.ts';
import { createTokenRepository } from '../../shared/identity/token-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isLogin } from '../../shared/stacks/names.ts';
import { lockManagement } from '../access/locked-access.ts';
import { getOrganization } from '../access/organizations.ts';
import { changePeople } from '../access/people-lock.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import type { Person } from './person.ts';

export type { InvitationRow };

/**
 * Responses to an admin never depend on whether the login exists, so an invitation for an unknown login stays open like any other until it
 * expires.
 */
export class InvitationService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Open invitations, sorted by login. */
  async list(organization: string): Promise<readonly InvitationRow[]> {
    const { id } = await getOrganization(this.#db, organization);
    return createInvitationRepository(this.#db).listOfOrganization(id);
  }

  /**
   * Invites the user who has the login at this moment. Replaces an earlier invitation. Throws ConflictError for members and for too many
   * invitations.
   */
  async invite(
    caller: Caller,
    organization: string,
    { login, role }: { readonly login: string; readonly role: Role },
    audit: AuditTrail,
  ): Promise<void> {
    await changePeople(this.#db, organization, async (tx) => {
      const people = createPeopleRepository(tx);
      const invitations = createInvitationRepository(tx);
      await lockManagement(tx, organization, caller);
      if (!isLogin(login)) throw new InvalidRequestError(`${quoted(login)} is not a valid login`);
      const { id: organizationId } = await getOrganization(tx, organization);
      const user = await people.find(login);
      if (user && (await people.findMembership(organizationId, user.id)))
        throw new ConflictError(`${login} is already a member of ${organization}`);
      if ((await invitations.countOthers(organizationId, login)) >= maxInvitations)
        throw new ConflictError(`${maxInvitations} invitations of ${organization} are open: withdraw one first`);
      await invitations.put({
        ...{ organizationId, login, role },
        userId: user?.id ?? null,
        // A token's holder is responsible for its use.
        invitedBy: caller.userId ?? (await createTokenRepository(tx).findCreator(caller.tokenId)),
        invitedByName: caller.login,
      });
      await audit.record(tx, { organization, object: login, details: { role, days: invitationDays } });
    });
  }

  async withdraw(caller: Caller, organization: string, login: string, audit: AuditTrail): Promise<void> {
    await changePeople(this.#db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const { id } = await getOrganization(tx, organization);
      const taken = isLogin(login) ? await createInvitationRepository(tx).takeOfLogin(id, login) : null;
      if (!taken) throw new NotFoundError(`${organization} has no open invitation for ${quoted(login)}`);
      await audit.record(tx, { organization, object: login, details: { role: taken.role } });
    });
  }

  /** Open ones, newest first. */
  listOf({ userId }: Pick<Person, 'userId'>): Promise<readonly InvitationRow[]> {
    return createInvitationRepository(this.#db).listOfUser(userId);
  }

  /** Throws ConflictError while a provider has suspended the person in the organization. */
  async accept(person: Person, organization: string, audit: AuditTrail): Promise<void> {
    await this.#answer(person, organization, async (tx, { invitedBy, organizationId, role }) => {
      if ((await createProviderRepository(tx).listSuspensions(person.userId)).includes(organization))
        throw new ConflictError(`The identity provider of ${organization} has suspended you there`);
      await createIdentityRepository(tx).setMembership(organizationId, person.userId, role);
      await audit.record(tx, { organization, object: person.login, details: { role, invitedBy } });
    });
  }

  async decline(person: Person, organization: string, audit: AuditTrail): Promise<void> {
    await this.#answer(person, organization, (tx, { role }) =>
      // The organization learns only that the user has declined.
      audit.recordAs(
        tx,
        { address: null, userAgent: null, tokenId: null, tokenName: null },
        { organization, object: person.login, details: { role } },
      ),
    );
  }

  #answer(
    person: Person,
    organization: string,
    work: (tx: Queryable, invitation: InvitationRow) => Promise<void>,
  ): Promise<void> {
    return changePeople(this.#db, `user ${person.login}`, async (tx) => {
      await person.hold(tx);
      const taken = await createInvitationRepository(tx).takeOfUser(organization, person.userId);
      if (!taken) throw new NotFoundError(`You have no open invitation of ${quoted(organization)}`);
      await work(tx, taken);
    });
  }
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}
