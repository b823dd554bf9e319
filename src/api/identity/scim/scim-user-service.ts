import { createIdentityRepository } from '../../../shared/identity/identity-repository.ts';
import { createPasskeyRepository } from '../../../shared/identity/passkey-repository.ts';
import { createPasswordRepository } from '../../../shared/identity/password-repository.ts';
import { createPeopleRepository } from '../../../shared/identity/people-repository.ts';
import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import { createSignInLinkRepository } from '../../../shared/identity/sign-in-link-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ConflictError, NotFoundError } from '../../../shared/platform/errors/errors.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import { assertUserBounds } from '../../access/grant-bounds.ts';
import { assertOtherAdmin } from '../../access/last-admin.ts';
import { OrganizationNotVisibleError } from '../../access/organizations.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';
import type { JsonObject } from './scim-bodies.ts';
import { ScimError } from './scim-error.ts';
import { parseScimFilter } from './scim-filter.ts';
import { createScimUserRepository, type ScimUserRepository, type ScimUserRow } from './scim-user-repository.ts';
import { type ListRequest, provision, type ScimList, type ScimWork } from './scim-work.ts';
import { patchUser, readUser, type UserAttributes } from './user-attributes.ts';

export type { ScimUserRow };

/**
 * The provider controls memberships of its organization, and an account only if it created the account and no other organization has the
 * user.
 */
export class ScimUserService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async get(organization: string, id: string): Promise<ScimUserRow> {
    return getUser(await this.#users(organization), id);
  }

  async list(organization: string, request: ListRequest): Promise<ScimList<ScimUserRow>> {
    const filter = request.filter === null ? null : parseScimFilter(request.filter);
    const users = await this.#users(organization);
    const { limit, offset } = request;
    return {
      total: await users.count(filter),
      startIndex: offset + 1,
      rows: limit === 0 ? [] : await users.list(filter, { limit, offset }),
    };
  }

  /** Creates the user, or adds an existing user of other organizations who has this login. Throws ScimError, ConflictError. */
  create(caller: Caller, organization: string, body: JsonObject, audit: AuditTrail): Promise<ScimUserRow> {
    const wanted = readUser(body, true);
    return this.#provision(caller, organization, audit, async (work, users) => {
      const found = await users.findByLogin(wanted.userName);
      if (found?.isVisible) throw new ScimError('uniqueness', `There is already a user ${wanted.userName}`);
      const id = found?.id ?? (await users.create(wanted.userName, wanted));
      const login = found?.login ?? wanted.userName;
      if (!found) await work.record(login, { action: 'user.create' });
      await users.saveProfile(id, wanted);
      await work.record(login, { details: { externalId: wanted.externalId } });
      const user = await getUser(users, id);
      if (wanted.active) await this.#resume(work, users, user);
      else await this.#suspend(work, users, user);
      return getUser(users, id);
    });
  }

  replace(caller: Caller, { organization, id }: UserRef, body: JsonObject, audit: AuditTrail): Promise<ScimUserRow> {
    return this.#change(caller, { organization, id }, audit, (user) => readUser(body, user.active));
  }

  patch(caller: Caller, ref: UserRef, body: JsonObject, audit: AuditTrail): Promise<ScimUserRow> {
    return this.#change(caller, ref, audit, (user) => patchUser(user, body));
  }

  /** Ends the membership permanently, and disables an account that the provider owns. Throws ConflictError for the last admin. */
  async remove(caller: Caller, { organization, id }: UserRef, audit: AuditTrail): Promise<void> {
    await this.#provision(caller, organization, audit, async (work, users) => {
      const user = await getUser(users, id);
      if (user.role === 'admin') await assertOtherAdmin(work.tx, user, work.organization);
      let revokedTokens = 0;
      if (user.isOwned) {
        if (!user.isDeactivated) await this.#deactivate(work, users, user);
        revokedTokens = await createPeopleRepository(work.tx).revokeTokens(id);
        await removeSignIns(work.tx, id);
        await users.removeInvitations(id);
      }
      await createPeopleRepository(work.tx).removeMembership(work.organizationId, id);
      await users.forget(id);
      await work.record(user.login, {
        action: 'member.remove',
        details: { role: user.role, forGood: true, revokedTokens },
      });
    });
  }

  #change(
    caller: Caller,
    { organization, id }: UserRef,
    audit: AuditTrail,
    change: (user: UserAttributes) => UserAttributes,
  ): Promise<ScimUserRow> {
    return this.#provision(caller, organization, audit, async (work, users) => {
      const user = await getUser(users, id);
      const before = attributesOf(user);
      const wanted = change(before);
      const login = await this.#newLogin(users, user, wanted.userName);
      const changed = (Object.keys(before) as (keyof UserAttributes)[]).filter(
        (name) => before[name] !== wanted[name] && name !== 'active' && (name !== 'userName' || login !== user.login),
      );
      if (changed.length > 0) {
        if (user.isOwned) await users.updateAccount(id, login, wanted);
        await work.record(login, { details: { changed, ...(login === user.login ? {} : { before: user.login }) } });
      }
      await users.saveProfile(id, wanted);
      if (wanted.active && !before.active) await this.#resume(work, users, { ...user, login });
      // Others may have ended the membership: the provider suspends the person only if its call does so.
      if (!wanted.active && !change({ ...before, active: true }).active)
        await this.#suspend(work, users, { ...user, login });
      return getUser(users, id);
    });
  }

  /** Logins that differ only in case are the same. */
  async #newLogin(users: ScimUserRepository, user: ScimUserRow, userName: string): Promise<string> {
    if (userName.toLowerCase() === user.login.toLowerCase()) return user.login;
    if (!user.isOwned)
      throw new ScimError(
        'mutability',
        `The user name of ${user.login} cannot be changed here: the account does not belong to this organization alone`,
      );
    // The bootstrap file would create the user of the old login again.
    if (await users.isListed(user.id))
      throw new ScimError(
        'mutability',
        `The user name of ${user.login} cannot be changed here: the bootstrap file of the server lists this login`,
      );
    if (await users.findByLogin(userName)) throw new ScimError('uniqueness', `There is already a user ${userName}`);
    return userName;
  }

  async #resume(work: ScimWork, users: ScimUserRepository, user: ScimUserRow): Promise<void> {
    if (user.isDeactivated) {
      if (!user.isDeactivatedHere)
        throw new ConflictError(
          `${user.login} was deactivated outside of this provider, which cannot reactivate the account`,
        );
      await users.reactivate(user.id);
      await work.record(user.login, { action: 'user.reactivate' });
    }
    if (user.role !== null) return;
    const role = user.suspendedRole ?? this.#context.config.scimDefaultRole;
    await createIdentityRepository(work.tx).setMembership(work.organizationId, user.id, role);
    if (user.suspendedIsMapped && user.suspendedRole !== null)
      await createProviderRepository(work.tx).setMappedRole(work.organizationId, user.id, role);
    // Groups that the suspended user returns to are teams again, so the limits apply.
    await assertUserBounds(work.tx, work.organizationId, { userIds: [user.id] });
    await work.record(user.login, { action: 'member.add', details: { role } });
  }

  async #suspend(work: ScimWork, users: ScimUserRepository, user: ScimUserRow): Promise<void> {
    if (user.role === 'admin') await assertOtherAdmin(work.tx, user, work.organization);
    if (user.isOwned && !user.isDeactivated) await this.#deactivate(work, users, user);
    if (user.role === null) {
      if (user.suspendedRole === null) await users.noteSuspended(user.id, this.#context.config.scimDefaultRole);
      return;
    }
    await users.noteSuspended(user.id, user.role);
    await createPeopleRepository(work.tx).removeMembership(work.organizationId, user.id);
    await work.record(user.login, { action: 'member.remove', details: { role: user.role } });
  }

  async #deactivate(work: ScimWork, users: ScimUserRepository, { id, login }: ScimUserRow): Promise<void> {
    await users.deactivate(id);
    await work.record(login, { action: 'user.deactivate' });
  }

  #provision<T>(
    caller: Caller,
    organization: string,
    audit: AuditTrail,
    change: (work: ScimWork, users: ScimUserRepository) => Promise<T>,
  ): Promise<T> {
    return provision(this.#context.db, { caller, organization, audit }, (work) =>
      change(work, createScimUserRepository(work.tx, work.organizationId)),
    );
  }

  async #users(organization: string): Promise<ScimUserRepository> {
    const { db, identity } = this.#context;
    const found = await identity.findOrganization(organization);
    if (!found) throw new OrganizationNotVisibleError();
    return createScimUserRepository(db, found.id);
  }
}

interface UserRef {
  readonly organization: string;
  readonly id: string;
}

/** The login may be given to another person, who then gets the account. */
async function removeSignIns(tx: Queryable, userId: string): Promise<void> {
  await createPasskeyRepository(tx).removeAll(userId);
  await createPasswordRepository(tx).remove(userId);
  await createProviderRepository(tx).removeIdentities(userId);
  await createSignInLinkRepository(tx).removeAll(userId);
}

export function isActive({ isDeactivated, role }: ScimUserRow): boolean {
  return role !== null && !isDeactivated;
}

/** Deactivation by others is outside the provider's control. */
function attributesOf(user: ScimUserRow): UserAttributes {
  const { displayName, email, externalId, familyName, givenName } = user;
  const active = user.role !== null && !user.isDeactivatedHere;
  return { userName: user.login, externalId, displayName, givenName, familyName, email, active };
}

async function getUser(users: ScimUserRepository, id: string): Promise<ScimUserRow> {
  const user = isUuid(id) ? await users.find(id) : null;
  if (!user) throw new NotFoundError(`There is no user ${JSON.stringify(id.slice(0, 60))}`);
  return user;
}
