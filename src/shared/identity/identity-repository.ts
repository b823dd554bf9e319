import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { Role } from './roles.ts';

const CallerRow = Type.Object({
  userId: Type.String(),
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  siteAdmin: Type.Boolean(),
  tokenId: Type.String(),
  tokenDescription: Type.String(),
  tokenStale: Type.Boolean(),
  /** In the requested organization; null if the user is not a member or the organization does not exist. */
  role: Nullable(Role),
});
export type CallerRow = Row<typeof CallerRow>;

const OrganizationRow = Type.Object({ id: Type.String(), name: Type.String() });
const MembershipRow = Type.Object({ name: Type.String(), role: Role });
const UserRow = Type.Object({ id: Type.String(), login: Type.String() });
const RoleRow = Type.Object({ role: Role });
const IdRow = Type.Object({ id: Type.String() });

export type IdentityRepository = ReturnType<typeof createIdentityRepository>;

/** Organizations, users, memberships and API tokens. */
export function createIdentityRepository(db: Queryable) {
  return {
    /**
     * Returns the owner of a valid token and their role in `organization`. Runs on every request, hence one round trip.
     */
    findCaller: (tokenHash: Buffer, organization: string | null) =>
      db.maybeOne(sql.prepared('identity_find_caller', CallerRow)`
        /* identity.findCaller */
        select u.id as "userId", u.login, u.display_name as "displayName", u.email, u.site_admin as "siteAdmin",
               t.id as "tokenId", t.description as "tokenDescription",
               coalesce(t.last_used_at < now() - interval '1 minute', true) as "tokenStale", m.role
        from api_tokens t
        join users u on u.id = t.user_id
        left join organizations o on o.name = ${organization}
        left join memberships m on m.organization_id = o.id and m.user_id = u.id
        where t.token_hash = ${sql.binary(tokenHash)} and t.revoked_at is null
          and (t.expires_at is null or t.expires_at > now()) and u.deactivated_at is null`),

    /**
     * Returns the role of the token's owner in the organization, or null if the token is not valid, and locks both
     * until the end of the transaction: a transaction that removes either waits, and then sees what this one has
     * created. Call before any other lock is taken.
     */
    holdRole: async (tokenId: string, organization: string): Promise<Role | null> => {
      const row = await db.maybeOne(sql.rows(RoleRow)`
        /* identity.holdRole */
        select m.role from users u join api_tokens t on t.user_id = u.id
        join memberships m on m.user_id = u.id join organizations o on o.id = m.organization_id
        where t.id = ${tokenId} and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
          and u.deactivated_at is null and o.name = ${organization}
        for share of u, m, t`);
      return row?.role ?? null;
    },

    touchToken: (tokenId: string) =>
      // Skipped while the start of an update locks the token; the next call updates it.
      db.query(sql.nothing`
        /* identity.touchToken */ update api_tokens set last_used_at = now()
        where id = (select id from api_tokens where id = ${tokenId} for no key update skip locked)`),

    listMemberships: (userId: string) =>
      db.any(sql.rows(MembershipRow)`
        /* identity.listMemberships */
        select o.name, m.role from memberships m join organizations o on o.id = m.organization_id
        where m.user_id = ${userId} order by m.created_at, o.name`),

    findOrganization: (name: string) =>
      db.maybeOne(sql.rows(OrganizationRow)`
        /* identity.findOrganization */ select id, name from organizations where name = ${name}`),

    /** Creates the organization if it does not exist. Returns its id, and whether this call created it. */
    ensureOrganization: async (name: string): Promise<{ id: string; created: boolean }> => {
      const created = await db.maybeOne(sql.rows(IdRow)`
        /* identity.insertOrganization */
        insert into organizations (name) values (${name}) on conflict (name) do nothing returning id`);
      if (created) return { id: created.id, created: true };
      const found = await db.one(sql.rows(IdRow)`
        /* identity.getOrganization */ select id from organizations where name = ${name}`);
      return { id: found.id, created: false };
    },

    ensureUser: (login: string) =>
      db.one(sql.rows(UserRow)`
        /* identity.ensureUser */
        insert into users (login) values (${login}) on conflict (login) do update set login = excluded.login
        returning id, login`),

    findUser: (login: string) =>
      db.maybeOne(sql.rows(UserRow)`/* identity.findUser */ select id, login from users where login = ${login}`),

    setSiteAdmin: (userId: string, siteAdmin: boolean) =>
      db.query(
        sql.nothing`/* identity.setSiteAdmin */ update users set site_admin = ${siteAdmin} where id = ${userId}`,
      ),

    setMembership: (organizationId: string, userId: string, role: Role) =>
      db.query(sql.nothing`
        /* identity.setMembership */
        insert into memberships (organization_id, user_id, role) values (${organizationId}, ${userId}, ${role})
        on conflict (organization_id, user_id) do update set role = excluded.role where memberships.role <> excluded.role`),

    /**
     * Stores the hash of a token and returns its id. Adding a token again for the same user changes nothing. Returns
     * null if it belongs to another user.
     */
    insertToken: async (token: { userId: string; hash: Buffer; description: string; expiresAt: Date | null }) => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* identity.insertToken */
        insert into api_tokens (user_id, token_hash, description, expires_at)
        values (${token.userId}, ${sql.binary(token.hash)}, ${token.description}, ${token.expiresAt?.toISOString() ?? null}::timestamptz)
        on conflict (token_hash) do update set token_hash = excluded.token_hash where api_tokens.user_id = excluded.user_id
        returning id`);
      return row?.id ?? null;
    },

    countUsers: async () => {
      const row = await db.one(sql.rows(Type.Object({ users: Type.Integer() }))`
        /* identity.countUsers */ select count(*) as users from users`);
      return row.users;
    },

    revokeToken: async (tokenId: string) => {
      const result = await db.query(sql.nothing`
        /* identity.revokeToken */ update api_tokens set revoked_at = now() where id = ${tokenId} and revoked_at is null`);
      return result.rowCount > 0;
    },
  };
}
