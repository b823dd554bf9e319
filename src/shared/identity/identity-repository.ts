import { Type } from 'typebox';
import { SubjectFacts } from '../access/access-decision.ts';
import { Role } from '../access/roles.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { InvalidRequestError } from '../platform/errors/errors.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { isReservedName } from '../stacks/names.ts';
import { isInScope } from '../stacks/stack-list-repository.ts';
import { TokenKind } from './token-kinds.ts';

const CallerRow = Type.Object({
  /** Null for tokens of teams and organizations. */
  userId: Nullable(Type.String()),
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  siteAdmin: Type.Boolean(),
  tokenId: Type.String(),
  tokenKind: TokenKind,
  tokenName: Nullable(Type.String()),
  /** Null unless the token was issued for an id token. */
  policyId: Nullable(Type.String()),
  teamName: Nullable(Type.String()),
  /** The token is more limited than its owner. */
  isScoped: Type.Boolean(),
  /** The token belongs to an identity provider. */
  isProvisioning: Type.Boolean(),
  /** The token represents a browser session. */
  isSession: Type.Boolean(),
  tokenDescription: Type.String(),
  tokenStale: Type.Boolean(),
  /** The role in the requested organization; null without an organization. */
  role: Nullable(Role),
  /** The token belongs to the requested organization, or its owner is a member of it. */
  belongs: Type.Boolean(),
  /** Null if the role alone decides in the requested organization. */
  facts: Nullable(SubjectFacts),
  /** JSON text; null unless the requested stack exists and `facts` decide about it. */
  stackTags: Nullable(Type.String()),
});
export type CallerRow = Row<typeof CallerRow>;

/** The names in the path of a call. */
export interface RequestedTarget {
  readonly organization: string | null;
  readonly project: string | null;
  readonly stack: string | null;
}

/** The permissions do not change until the end of the transaction. */
export interface LockedAccess {
  readonly role: Role | null;
  readonly facts: SubjectFacts | null;
  /** Null unless the token was issued for an id token. */
  readonly policyId: string | null;
}

const LockedRow = Type.Object({
  role: Nullable(Role),
  isPlain: Type.Boolean(),
  facts: Nullable(SubjectFacts),
  policyId: Nullable(Type.String()),
});
const LockedOwnerRow = Type.Object({ isValid: Type.Boolean() });
const FactsRow = Type.Object({ facts: Nullable(SubjectFacts) });

const OrganizationRow = Type.Object({ id: Type.String(), name: Type.String() });
const ListedOrganizationRow = Type.Object({ name: Type.String(), createdAt: Timestamp });
const KeptRow = Type.Object({ stacks: Type.Integer(), packs: Type.Integer() });
const MembershipRow = Type.Object({ name: Type.String(), role: Nullable(Role) });
const UserRow = Type.Object({ id: Type.String(), login: Type.String() });
const IdRow = Type.Object({ id: Type.String() });

export type IdentityRepository = ReturnType<typeof createIdentityRepository>;

export function createIdentityRepository(db: Queryable) {
  const callerAt = ({ organization, project, stack }: RequestedTarget) => sql.fragment`
        select u.id as "userId", coalesce(u.login, c.name) as login, coalesce(u.display_name, c.name) as "displayName",
               coalesce(u.email, '') as email, coalesce(u.site_admin and t.scopes is null, false) as "siteAdmin",
               t.id as "tokenId", t.kind as "tokenKind", t.name as "tokenName", t.policy_id as "policyId", e.name as "teamName", t.scopes is not null as "isScoped",
               t.is_provisioning as "isProvisioning", t.is_session as "isSession",
               t.description as "tokenDescription", coalesce(t.last_used_at < now() - interval '1 minute', true) as "tokenStale",
               coalesce(m.role, case when o.id is not null then t.role end) as role, b.belongs, f.facts, case when f.facts is not null then (
                 select s.tags from projects p join stacks s on s.project_id = p.id
                 where p.organization_id = o.id and p.name = ${project} and s.name = ${stack} and s.deleted_at is null) end as "stackTags"
        from api_tokens t
        left join users u on u.id = t.user_id
        left join teams e on e.id = t.team_id
        left join organizations o on o.name = ${organization} and (t.organization_id is null or t.organization_id = o.id) and ${isInScope}
        left join organization_access a on a.organization_id = o.id
        left join memberships m on m.organization_id = o.id and m.user_id = u.id
        cross join lateral (
          select case t.kind when 'personal' then '' when 'team' then 'team:' || e.name || '/' || t.name else t.kind || ':' || t.name end as name) c
        cross join lateral (select o.id is not null and (m.role is not null or t.kind <> 'personal') as belongs) b
        cross join lateral (
          select case when b.belongs and (a.version > 0 or t.is_limited) then token_facts(t.id, o.id) end as facts offset 0) f`;
  const isValid = sql.fragment`t.revoked_at is null
          and (t.expires_at is null or t.expires_at > now()) and u.deactivated_at is null`;
  return {
    /** Runs on every request, hence one round trip. Reads no grants if roles alone decide. */
    findCaller: (tokenHash: Buffer, target: RequestedTarget) =>
      db.maybeOne(sql.prepared('identity_find_caller', CallerRow)`
        /* identity.findCaller */ ${callerAt(target)} where (t.token_hash = ${sql.binary(tokenHash)} or t.previous_hash = ${sql.binary(tokenHash)} and t.previous_until > now()) and not t.is_session and ${isValid}`),

    /** Null if the live session has no token row. */
    findSessionCaller: (sessionId: string, target: RequestedTarget) =>
      db.maybeOne(sql.prepared('identity_find_session_caller', CallerRow)`
        /* identity.findSessionCaller */ ${callerAt(target)} where t.id = ${sessionId} and t.is_session and ${isValid}`),

    /**
     * Null if the token is not valid in the organization. The result holds until the end of the transaction: a transaction that would
     * change it waits, and then sees the rows that this one has created. Call this before taking any other lock.
     */
    lockAccess: async (tokenId: string, organization: string): Promise<LockedAccess | null> => {
      const held = await db.maybeOne(sql.prepared('identity_hold_access', LockedRow)`
        /* identity.lockAccess */
        select role, "isPlain", facts, (select t.policy_id from api_tokens t where t.id = ${tokenId}) as "policyId"
        from hold_access(${tokenId}, ${organization})`);
      if (!held || !(held.isPlain || held.facts !== null)) return null;
      return { role: held.role, facts: held.facts, policyId: held.policyId };
    },

    /** Whether the token and its user, if any, are valid. The result holds until the end of the transaction. */
    lockOwner: async (tokenId: string): Promise<boolean> => {
      const row = await db.one(sql.rows(LockedOwnerRow)`
        /* identity.lockOwner */ select hold_owner(${tokenId}) as "isValid"`);
      return row.isValid;
    },

    isTokenOf: async (tokenId: string, organizationId: string): Promise<boolean> => {
      const { facts } = await db.one(sql.rows(FactsRow)`
        /* identity.isTokenOf */ select token_facts(${tokenId}, ${organizationId}) as facts`);
      return facts !== null;
    },

    touchToken: (tokenId: string) =>
      // Skipped while the start of an update locks the token; the next call records the use. Does not wait for the disk.
      db.query(sql.nothing`
        /* identity.touchToken */
        with quick as materialized (select set_config('synchronous_commit', 'off', true))
        update api_tokens set last_used_at = now() from quick
        where id = (select id from api_tokens where id = ${tokenId} for no key update skip locked)`),

    /** Organizations in which the token is valid. */
    listMemberships: (tokenId: string) =>
      db.any(sql.rows(MembershipRow)`
        /* identity.listMemberships */
        select o.name, m.role from api_tokens t
        cross join lateral (
          select organization_id, role, created_at from memberships where user_id = t.user_id
          union all select t.organization_id, t.role, t.created_at where t.organization_id is not null) m
        join organizations o on o.id = m.organization_id
        where t.id = ${tokenId} and ${isInScope} order by m.created_at, o.name`),

    findOrganization: (name: string) =>
      db.maybeOne(sql.rows(OrganizationRow)`
        /* identity.findOrganization */ select id, name from organizations where name = ${name}`),

    /** Ordered by name. `only` limits the list to one. */
    listOrganizations: ({ after, limit, only = null }: { after: string; limit: number; only?: string | null }) =>
      db.any(sql.rows(ListedOrganizationRow)`
        /* identity.listOrganizations */
        select name, created_at as "createdAt" from organizations
        where name > ${after} and (${only}::text is null or name = ${only}) order by name limit ${limit}`),

    /** Nothing can be added to the organization until the end of the transaction. Returns its id. */
    lockOrganization: async (name: string): Promise<string | null> => {
      const found = await db.maybeOne(sql.rows(IdRow)`
        /* identity.findOrganizationId */ select id from organizations where name = ${name}`);
      if (!found) return null;
      // Locks in the order of all changes (members, then the organization), so that each of these has ended or waits.
      await db.query(sql.nothing`
        /* identity.lockMembers */
        select lock_exclusive(k.key) from (
          select distinct place_of_user(user_id) as key from memberships where organization_id = ${found.id} order by 1 offset 0) k`);
      await db.query(sql.nothing`/* identity.lockOrganizationKey */ select lock_exclusive(${found.id})`);
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* identity.lockOrganization */ select id from organizations where id = ${found.id} for update`);
      return row?.id ?? null;
    },

    /** Includes deleted stacks whose data is kept, but not removed packs. */
    countKept: (organizationId: string) =>
      db.one(sql.rows(KeptRow)`
        /* identity.countKept */
        select (select count(*) from stacks s join projects p on p.id = s.project_id where p.organization_id = ${organizationId}) as stacks,
          (select count(*) from policy_packs k where k.organization_id = ${organizationId} and exists (
            select 1 from policy_pack_versions v where v.pack_id = k.id and v.removed_at is null)) as packs`),

    /** Removes all dependent rows, too, except events. */
    removeOrganization: (organizationId: string) =>
      db.query(sql.nothing`
        /* identity.removeOrganization */ delete from organizations where id = ${organizationId}`),

    /** Throws InvalidRequestError. */
    ensureOrganization: async (name: string): Promise<{ id: string; created: boolean }> => {
      const created = await db.maybeOne(sql.rows(IdRow)`
        /* identity.insertOrganization */
        insert into organizations (name) values (${name}) on conflict (name) do nothing returning id`);
      if (created) {
        // Checked only for a new organization: an existing one keeps its name if a later release reserves it.
        if (isReservedName(name))
          throw new InvalidRequestError(`Organization name ${JSON.stringify(name)} is reserved`);
        return { id: created.id, created: true };
      }
      const found = await db.one(sql.rows(IdRow)`
        /* identity.getOrganization */ select id from organizations where name = ${name}`);
      return { id: found.id, created: false };
    },

    /** Logins that differ only in case count as the same. Does not lock an existing user. */
    ensureUser: async (login: string): Promise<Row<typeof UserRow>> => {
      const created = await db.maybeOne(sql.rows(UserRow)`
        /* identity.insertUser */ insert into users (login)
        select ${login} where not exists (select 1 from users where lower(login) = lower(${login}))
        on conflict (login) do nothing returning id, login`);
      return (
        created ??
        db.one(sql.rows(UserRow)`
          /* identity.getUser */ select id, login from users where lower(login) = lower(${login})
          order by login <> ${login}, created_at limit 1`)
      );
    },

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

    /** Returns the token's id. Adding the same user's token again changes nothing. Returns null if the token belongs to another user. */
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
        /* identity.revokeToken */
        update api_tokens set revoked_at = now() where id = ${tokenId} and revoked_at is null and not is_session`);
      return result.rowCount > 0;
    },
  };
}
