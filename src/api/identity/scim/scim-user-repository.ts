import { Type } from 'typebox';
import { Role } from '../../../shared/access/roles.ts';
import { isManagedBy } from '../../../shared/identity/people-repository.ts';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../../shared/platform/schema/standard-schema.ts';
import type { ScimFilter } from './scim-filter.ts';
import { conditionOf, type FilterColumns, type Fragment } from './scim-filter-repository.ts';

const ScimUserRow = Type.Object({
  id: Type.String(),
  login: Type.String(),
  /** Null while there is no membership. */
  role: Nullable(Role),
  isDeactivated: Type.Boolean(),
  /** The provider of this organization deactivated the user, and nobody else has since. */
  isDeactivatedHere: Type.Boolean(),
  /** The provider of this organization created the account, no other organization has the user, and the user is not a site admin. */
  isOwned: Type.Boolean(),
  externalId: Nullable(Type.String()),
  displayName: Type.String(),
  givenName: Type.String(),
  familyName: Type.String(),
  email: Type.String(),
  suspendedRole: Nullable(Role),
  /** Groups of the provider had given the role. */
  suspendedIsMapped: Type.Boolean(),
  createdAt: Timestamp,
  changedAt: Timestamp,
  teams: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })),
});
export type ScimUserRow = Row<typeof ScimUserRow>;

const CountRow = Type.Object({ count: Type.Integer() });
const FoundRow = Type.Object({ id: Type.String(), login: Type.String(), isVisible: Type.Boolean() });
const IdRow = Type.Object({ id: Type.String() });

export interface ScimProfile {
  readonly externalId: string | null;
  readonly displayName: string;
  readonly givenName: string;
  readonly familyName: string;
  readonly email: string;
}

export interface ScimPage {
  readonly offset: number;
  readonly limit: number;
}

/** Members and suspended users. */
export function createScimUserRepository(db: Queryable, organizationId: string) {
  const isVisible = sql.fragment`u.id in (
    select user_id from memberships where organization_id = ${organizationId}
    union all select user_id from scim_users where organization_id = ${organizationId})`;
  const tables = sql.fragment`users u
    left join memberships m on m.user_id = u.id and m.organization_id = ${organizationId}
    left join scim_users s on s.user_id = u.id and s.organization_id = ${organizationId}`;
  const users = (condition: Fragment, { limit, offset }: ScimPage) => sql.rows(ScimUserRow)`
    /* scimUsers.list */
    select u.id, u.login, m.role, u.deactivated_at is not null as "isDeactivated",
      coalesce(u.deactivated_at = u.provider_deactivated_at and u.provisioned_by = ${organizationId}, false) as "isDeactivatedHere",
      ${isManagedBy(sql.fragment`${organizationId}::uuid`)} as "isOwned",
      s.external_id as "externalId", coalesce(s.display_name, u.display_name) as "displayName",
      coalesce(s.given_name, '') as "givenName", coalesce(s.family_name, '') as "familyName", coalesce(s.email, u.email) as email,
      s.suspended_role as "suspendedRole", coalesce(s.suspended_is_mapped, false) as "suspendedIsMapped", coalesce(s.created_at, m.created_at) as "createdAt",
      greatest(s.changed_at, m.created_at) as "changedAt",
      coalesce((
        select json_agg(json_build_object('id', g.team_id, 'name', g.display_name) order by g.display_name)
        from scim_groups g where g.organization_id = ${organizationId} and g.team_id in (
          select team_id from team_members where user_id = u.id
          union all select team_id from scim_waiting_members where user_id = u.id)), '[]') as teams
    from ${tables} where ${isVisible} and ${condition} order by u.created_at, u.id limit ${limit} offset ${offset}`;
  const columns: FilterColumns = {
    id: { kind: 'key', equals: (id) => sql.fragment`u.id = ${id}::uuid` },
    username: { kind: 'text', expression: sql.fragment`u.login` },
    externalid: { kind: 'exact', expression: sql.fragment`s.external_id` },
    displayname: { kind: 'text', expression: sql.fragment`coalesce(s.display_name, u.display_name)` },
    'name.givenname': { kind: 'text', expression: sql.fragment`s.given_name` },
    'name.familyname': { kind: 'text', expression: sql.fragment`s.family_name` },
    emails: { kind: 'text', expression: sql.fragment`coalesce(s.email, u.email)` },
    'emails.value': { kind: 'text', expression: sql.fragment`coalesce(s.email, u.email)` },
    'emails.type': { kind: 'text', expression: sql.fragment`'work'::text` },
    active: { kind: 'boolean', expression: sql.fragment`(m.user_id is not null and u.deactivated_at is null)` },
  };
  return {
    find: (id: string) => db.maybeOne(users(sql.fragment`u.id = ${id}`, { limit: 1, offset: 0 })),

    /** In the order of creation. Throws ScimError for an unsupported filter. */
    list: (filter: ScimFilter | null, page: ScimPage) => db.any(users(conditionOf(filter, columns), page)),

    count: async (filter: ScimFilter | null): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* scimUsers.count */ select count(*) as count from ${tables} where ${isVisible} and ${conditionOf(filter, columns)}`);
      return count;
    },

    /** Searches all organizations: an exact match, otherwise a match that differs only in case. */
    findByLogin: (login: string) =>
      db.maybeOne(sql.rows(FoundRow)`
        /* scimUsers.findByLogin */
        select u.id, u.login, ${isVisible} as "isVisible" from users u where lower(u.login) = lower(${login})
        order by u.login <> ${login}, u.created_at limit 1`),

    /** A bootstrap file has created or changed the membership or a token of the user. */
    isListed: (id: string): Promise<boolean> =>
      db.exists(sql.rows(IdRow)`
        /* scimUsers.isListed */
        select user_id as id from memberships where user_id = ${id} and is_listed
        union all select user_id from api_tokens where user_id = ${id} and listed_in is not null and revoked_at is null`),

    /** The account belongs to the organization. */
    create: async (login: string, { displayName, email }: ScimProfile): Promise<string> => {
      const { id } = await db.one(sql.rows(IdRow)`
        /* scimUsers.create */
        insert into users (login, display_name, email, provisioned_by)
        values (${login}, ${displayName}, ${email}, ${organizationId}) returning id`);
      return id;
    },

    /** Only for an account that belongs to the organization. */
    updateAccount: (id: string, login: string, { displayName, email }: ScimProfile) =>
      db.query(sql.nothing`
        /* scimUsers.updateAccount */
        update users set login = ${login}, display_name = ${displayName}, email = ${email}
        where id = ${id} and (login, display_name, email) is distinct from (${login}, ${displayName}, ${email})`),

    /** Violates scim_users_external_id_key if another user has the external id. */
    saveProfile: (id: string, profile: ScimProfile) =>
      db.query(sql.nothing`
        /* scimUsers.saveProfile */
        insert into scim_users (organization_id, user_id, external_id, display_name, given_name, family_name, email)
        values (${organizationId}, ${id}, ${profile.externalId}, ${profile.displayName}, ${profile.givenName}, ${profile.familyName}, ${profile.email})
        on conflict (organization_id, user_id) do update set external_id = excluded.external_id,
          display_name = excluded.display_name, given_name = excluded.given_name, family_name = excluded.family_name,
          email = excluded.email, changed_at = now()`),

    /** Only for an account that belongs to the organization: removes its invitations to other organizations. */
    removeInvitations: (id: string) =>
      db.query(sql.nothing`
        /* scimUsers.removeInvitations */ delete from invitations where user_id = ${id}`),

    /** Call before any change of the membership, because starts of updates lock the user first. */
    deactivate: (id: string) =>
      db.query(sql.nothing`
        /* scimUsers.deactivate */
        update users set deactivated_at = now(), provider_deactivated_at = now() where id = ${id} and deactivated_at is null`),

    reactivate: (id: string) =>
      db.query(sql.nothing`
        /* scimUsers.reactivate */
        update users set deactivated_at = null, provider_deactivated_at = null where id = ${id}`),

    /** Notes the teams of a member, and the role that the user gets when the membership is created again. */
    noteSuspended: async (id: string, role: Role): Promise<void> => {
      await db.query(sql.nothing`
        /* scimUsers.noteTeams */
        insert into scim_waiting_members (team_id, user_id, is_admin, is_mapped)
        select t.team_id, t.user_id, t.is_admin, g.team_id is not null from team_members t join teams e on e.id = t.team_id
        left join mapped_team_members g on g.team_id = t.team_id and g.user_id = t.user_id
        where t.user_id = ${id} and e.organization_id = ${organizationId}
        on conflict (team_id, user_id) do update set is_admin = excluded.is_admin, is_mapped = excluded.is_mapped`);
      await db.query(sql.nothing`
        /* scimUsers.noteRole */
        update scim_users s set suspended_role = ${role}, changed_at = now(), suspended_is_mapped = exists (
          select 1 from mapped_memberships g
          where g.organization_id = s.organization_id and g.user_id = s.user_id and g.role = ${role})
        where organization_id = ${organizationId} and user_id = ${id}`);
    },

    /** Keeps the bootstrap file from adding the user again. */
    forget: async (id: string): Promise<void> => {
      await db.query(sql.nothing`
        /* scimUsers.keepOut */
        insert into removed_members (organization_id, user_id) values (${organizationId}, ${id}) on conflict do nothing`);
      await db.query(sql.nothing`
        /* scimUsers.forgetTeams */
        delete from scim_waiting_members w using teams e
        where e.id = w.team_id and e.organization_id = ${organizationId} and w.user_id = ${id}`);
      await db.query(sql.nothing`
        /* scimUsers.forget */ delete from scim_users where organization_id = ${organizationId} and user_id = ${id}`);
    },
  };
}
export type ScimUserRepository = ReturnType<typeof createScimUserRepository>;
