import { Type } from 'typebox';
import { AllGrants, allGrants, type GrantedStack, holdsOn } from '../access/grant-repository.ts';
import { Role } from '../access/roles.ts';
import { limitLockWait } from '../platform/db/limit-lock-wait.ts';
import { type Queryable, type Row, type SqlFragment, sql } from '../platform/db/sql.ts';
import { isLockTimeout } from '../platform/db/sqlstate.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { heldWaitMs } from './bootstrap-repository.ts';

const PersonRow = Type.Object({
  id: Type.String(),
  login: Type.String(),
  siteAdmin: Type.Boolean(),
  isActive: Type.Boolean(),
});
export type PersonRow = Row<typeof PersonRow>;

const MembershipRow = Type.Object({
  role: Role,
  /** The bootstrap file created or set the row. */
  isListed: Type.Boolean(),
});
const LoginRow = Type.Object({ login: Type.String() });
const NamedMemberRow = Type.Object({ login: Type.String(), userId: Type.String() });
const NameRow = Type.Object({ name: Type.String() });
const TokenRow = Type.Object({
  id: Type.String(),
  login: Type.String(),
  description: Type.String(),
  createdAt: Timestamp,
  expiresAt: Nullable(Timestamp),
  lastUsedAt: Nullable(Timestamp),
});
const OrganizationMemberRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  role: Role,
  createdAt: Timestamp,
});
export type OrganizationMemberRow = Row<typeof OrganizationMemberRow>;
const ListedPersonRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  siteAdmin: Type.Boolean(),
  isActive: Type.Boolean(),
  organizations: Type.Array(Type.String()),
});
export type ListedPersonRow = Row<typeof ListedPersonRow>;
const UserOnStackRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  ...AllGrants.properties,
});
const MemberRow = Type.Object({
  organization: Nullable(Type.String()),
  login: Nullable(Type.String()),
  role: Nullable(Role),
});

/** The organization's provider made user `u`, who is no site admin and in no other organization. */
export const isManagedBy = (organizationId: SqlFragment) => sql.fragment`
  coalesce(u.provisioned_by = ${organizationId}, false) and not u.site_admin
    and not exists (select 1 from memberships x where x.user_id = u.id and x.organization_id <> ${organizationId})
    and not exists (select 1 from scim_users x where x.user_id = u.id and x.organization_id <> ${organizationId})`;

/** For operators. Several operations run in one transaction, after `lock`. */
export function createPeopleRepository(db: Queryable) {
  const person = sql.fragment`id, login, site_admin as "siteAdmin", deactivated_at is null as "isActive"`;
  return {
    /**
     * Takes the lock of `lockPeople`, but throws UnavailableError after `waitMs`, because a waiting transaction occupies a connection.
     * Limits the wait for each further lock to `heldWaitMs`, because changes in all organizations wait meanwhile.
     */
    lock: async (waitMs: number): Promise<void> => {
      try {
        await db.query(sql.nothing`/* people.lockFor */ select lock_people(${waitMs})`);
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
        const message = 'Another change of users, teams or grants is taking long; please retry';
        throw new UnavailableError(message, { cause: error, retryAfterSeconds: 2 });
      }
      await limitLockWait(db, heldWaitMs);
    },

    find: (login: string) =>
      db.maybeOne(sql.rows(PersonRow)`/* people.find */ select ${person} from users where login = ${login}`),

    /** Ordered by login. `only` limits the list to one. */
    listAll: ({ after, limit, only = null }: { after: string; limit: number; only?: string | null }) =>
      db.any(sql.rows(ListedPersonRow)`
        /* people.listAll */
        select u.login, u.display_name as "displayName", u.email, u.site_admin as "siteAdmin", u.deactivated_at is null as "isActive",
          array(select o.name from memberships m join organizations o on o.id = m.organization_id where m.user_id = u.id order by 1)
            as organizations
        from users u where u.login > ${after} and (${only}::text is null or u.login = ${only}) order by u.login limit ${limit}`),

    findMembership: (organizationId: string, userId: string) =>
      db.maybeOne(sql.rows(MembershipRow)`
        /* people.findMembership */ select role, is_listed as "isListed" from memberships
        where organization_id = ${organizationId} and user_id = ${userId}`),

    listMembersAmong: (organizationId: string, logins: readonly string[]) =>
      db.any(sql.rows(NamedMemberRow)`
        /* people.listMembersAmong */
        select u.login, u.id as "userId" from users u join memberships m on m.user_id = u.id
        where m.organization_id = ${organizationId} and u.login = any (${sql.array([...logins], 'text')})`),

    hasSeveralOrganizations: async (): Promise<boolean> => {
      const some = await db.any(
        sql.rows(NameRow)`/* people.listSomeOrganizations */ select name from organizations limit 2`,
      );
      return some.length > 1;
    },

    listOrganizationsOf: async (login: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* people.listOrganizationsOf */
        select o.name from users u join memberships m on m.user_id = u.id join organizations o on o.id = m.organization_id
        where u.login = ${login} order by o.name`);
      return rows.map(({ name }) => name);
    },

    /** The organization that manages the account, if any. */
    listManagersOf: async (login: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* people.listManagersOf */
        select o.name from users u join organizations o on o.id = u.provisioned_by
        where u.login = ${login} and exists (select 1 from scim_users s where s.organization_id = o.id and s.user_id = u.id)
          and ${isManagedBy(sql.fragment`o.id`)}`);
      return rows.map(({ name }) => name);
    },

    /** Null unless the token is personal. It may be no longer valid. */
    findLoginOfToken: async (tokenId: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(LoginRow)`
        /* people.findLoginOfToken */ select u.login from api_tokens t join users u on u.id = t.user_id where t.id = ${tokenId}`);
      return row?.login ?? null;
    },

    removeMembership: (organizationId: string, userId: string) =>
      db.query(sql.nothing`
        /* people.removeMembership */ delete from memberships where organization_id = ${organizationId} and user_id = ${userId}`),

    /** Afterwards, only this method can reactivate a deactivated user. Returns whether an identity provider had deactivated the user. */
    setActive: async (userId: string, isActive: boolean): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(Type.Object({ wasProviders: Type.Boolean() }))`
        /* people.setActive */
        with found as (select id, provider_deactivated_at is not null as was_providers from users where id = ${userId} for update)
        update users u set deactivated_at = case when ${isActive} then null else coalesce(u.deactivated_at, now()) end,
          provider_deactivated_at = null
        from found f where u.id = f.id returning f.was_providers as "wasProviders"`);
      return row?.wasProviders ?? false;
    },

    setSiteAdmin: (userId: string, siteAdmin: boolean) =>
      db.query(sql.nothing`
        /* people.setSiteAdmin */
        update users set site_admin = ${siteAdmin}, site_admin_listed_in = null where id = ${userId}`),

    isLastSiteAdmin: async (userId: string): Promise<boolean> => {
      const others = await db.any(sql.rows(PersonRow)`
        /* people.findOtherSiteAdmin */
        select ${person} from users where site_admin and deactivated_at is null and id <> ${userId} limit 1`);
      return others.length === 0;
    },

    /** Organizations whose only active admin is the user. */
    listOnlyAdminOf: async (userId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* people.listOnlyAdminOf */
        select o.name from memberships m join organizations o on o.id = m.organization_id
        where m.user_id = ${userId} and m.role = 'admin' and not exists (
          select 1 from memberships n join users u on u.id = n.user_id
          where n.organization_id = m.organization_id and n.user_id <> m.user_id and n.role = 'admin' and u.deactivated_at is null)
        order by o.name`);
      return rows.map(({ name }) => name);
    },

    /** Keeps the sessions. Returns the number of revoked tokens. */
    revokeTokens: async (userId: string): Promise<number> => {
      const result = await db.query(sql.nothing`
        /* people.revokeTokens */
        update api_tokens set revoked_at = now() where user_id = ${userId} and revoked_at is null and not is_session`);
      return result.rowCount;
    },

    /** Ordered by organization, including those without members, then users without an organization. `login` null lists all users. */
    listMembers: (login: string | null) =>
      db.any(sql.rows(MemberRow)`
        /* people.listMembers */
        select o.name as organization, u.login, m.role
        from organizations o left join memberships m on m.organization_id = o.id
        full join users u on u.id = m.user_id
        where ${login}::text is null or u.login = ${login} order by o.name nulls last, u.login`),

    /** Ordered by login. */
    listOfOrganization: (organization: string, { after, limit }: { after: string; limit: number }) =>
      db.any(sql.rows(OrganizationMemberRow)`
        /* people.listOfOrganization */
        select u.login, u.display_name as "displayName", u.email, m.role, m.created_at as "createdAt"
        from organizations o join memberships m on m.organization_id = o.id join users u on u.id = m.user_id
        where o.name = ${organization} and u.login > ${after} order by u.login limit ${limit}`),

    getMember: (organization: string, login: string) =>
      db.one(sql.rows(OrganizationMemberRow)`
        /* people.getMember */
        select u.login, u.display_name as "displayName", u.email, m.role, m.created_at as "createdAt"
        from organizations o join memberships m on m.organization_id = o.id join users u on u.id = m.user_id
        where o.name = ${organization} and u.login = ${login}`),

    /** Users with their own grants that apply to the stack. */
    listOn: (organizationId: string, stack: GrantedStack) =>
      db.any(sql.rows(UserOnStackRow)`
        /* people.listOn */
        select u.login, u.display_name as "displayName", u.email, allowed, denied from users u join (
          select g.user_id, ${allGrants} from grants g
          where g.organization_id = ${organizationId} and g.user_id is not null and ${holdsOn(stack)} group by g.user_id
        ) given on given.user_id = u.id
        order by u.login`),

    /** Site admins and deactivated users. `login` null lists all. */
    listMarked: (login: string | null) =>
      db.any(sql.rows(PersonRow)`
        /* people.listMarked */
        select ${person} from users where (site_admin or deactivated_at is not null) and (${login}::text is null or login = ${login})
        order by login`),

    /** Tokens that are not revoked. `login` null lists those of all users. */
    listTokens: (login: string | null) =>
      db.any(sql.rows(TokenRow)`
        /* people.listTokens */
        select t.id, u.login, t.description, t.created_at as "createdAt", t.expires_at as "expiresAt", t.last_used_at as "lastUsedAt"
        from api_tokens t join users u on u.id = t.user_id
        where t.revoked_at is null and not t.is_session and (${login}::text is null or u.login = ${login}) order by t.created_at, t.id`),
  };
}
export type PeopleRepository = ReturnType<typeof createPeopleRepository>;
