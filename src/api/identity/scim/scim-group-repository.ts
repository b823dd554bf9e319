import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../../shared/platform/schema/standard-schema.ts';
import type { ScimFilter } from './scim-filter.ts';
import { conditionOf, type FilterColumns, type Fragment } from './scim-filter-repository.ts';
import type { ScimPage } from './scim-user-repository.ts';

const ScimGroupRow = Type.Object({
  id: Type.String(),
  /** Name of the team. */
  name: Type.String(),
  displayName: Type.String(),
  externalId: Nullable(Type.String()),
  isAdopted: Type.Boolean(),
  createdAt: Timestamp,
  changedAt: Timestamp,
  memberCount: Type.Integer(),
});
export type ScimGroupRow = Row<typeof ScimGroupRow>;

const ScimMemberRow = Type.Object({ teamId: Type.String(), id: Type.String(), login: Type.String() });
export type ScimMemberRow = Row<typeof ScimMemberRow>;

const CountRow = Type.Object({ count: Type.Integer() });
const TeamRow = Type.Object({ id: Type.String(), isLinked: Type.Boolean() });
const LoginRow = Type.Object({ login: Type.String() });
const KnownRow = Type.Object({ id: Type.String() });

/** Teams that the organization's provider created or adopted. */
export function createScimGroupRepository(db: Queryable, organizationId: string) {
  /** Members, including suspended ones. */
  const everyone = sql.fragment`(
    select team_id, user_id from team_members union select team_id, user_id from scim_waiting_members)`;
  const groups = (condition: Fragment, { limit, offset }: ScimPage) => sql.rows(ScimGroupRow)`
    /* scimGroups.list */
    select g.team_id as id, e.name, g.display_name as "displayName", g.external_id as "externalId", g.is_adopted as "isAdopted",
      g.created_at as "createdAt", g.changed_at as "changedAt",
      (select count(*) from ${everyone} t where t.team_id = g.team_id) as "memberCount"
    from scim_groups g join teams e on e.id = g.team_id
    where g.organization_id = ${organizationId} and ${condition} order by g.created_at, g.team_id limit ${limit} offset ${offset}`;
  const isMember = (id: string) =>
    sql.fragment`exists (select 1 from ${everyone} t where t.team_id = g.team_id and t.user_id = ${id}::uuid)`;
  const columns: FilterColumns = {
    id: { kind: 'key', equals: (id) => sql.fragment`g.team_id = ${id}::uuid` },
    displayname: { kind: 'text', expression: sql.fragment`g.display_name` },
    externalid: { kind: 'exact', expression: sql.fragment`g.external_id` },
    members: { kind: 'key', equals: isMember },
    'members.value': { kind: 'key', equals: isMember },
  };
  const logins = async (rows: Promise<readonly { login: string }[]>): Promise<string[]> =>
    (await rows).map(({ login }) => login);
  return {
    find: (id: string) => db.maybeOne(groups(sql.fragment`g.team_id = ${id}`, { limit: 1, offset: 0 })),

    /** In the order of their creation. Throws ScimError for an unsupported filter. */
    list: (filter: ScimFilter | null, page: ScimPage) => db.any(groups(conditionOf(filter, columns), page)),

    count: async (filter: ScimFilter | null): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* scimGroups.count */
        select count(*) as count from scim_groups g where g.organization_id = ${organizationId} and ${conditionOf(filter, columns)}`);
      return count;
    },

    listMembers: (teamIds: readonly string[]) =>
      db.any(sql.rows(ScimMemberRow)`
        /* scimGroups.listMembers */
        select t.team_id as "teamId", u.id, u.login from ${everyone} t join users u on u.id = t.user_id
        where t.team_id = any (${sql.array(teamIds, 'uuid')}) order by t.team_id, u.login`),

    /** The team with this name, in any case of letters. */
    findTeam: (name: string) =>
      db.maybeOne(sql.rows(TeamRow)`
        /* scimGroups.findTeam */
        select e.id, g.team_id is not null as "isLinked" from teams e left join scim_groups g on g.team_id = e.id
        where e.organization_id = ${organizationId} and lower(e.name) = lower(${name}) order by e.name <> ${name} limit 1`),

    /** Violates scim_groups_external_id_key or scim_groups_display_name if another group has the external id or the name. */
    link: (teamId: string, group: { displayName: string; externalId: string | null; isAdopted: boolean }) =>
      db.query(sql.nothing`
        /* scimGroups.link */
        insert into scim_groups (team_id, organization_id, display_name, external_id, is_adopted)
        values (${teamId}, ${organizationId}, ${group.displayName}, ${group.externalId}, ${group.isAdopted})`),

    /**
     * Violates scim_groups_external_id_key, scim_groups_display_name or teams_name_key if another group or team has the external id or the
     * name.
     */
    update: async (teamId: string, group: { name: string; displayName: string; externalId: string | null }) => {
      await db.query(sql.nothing`
        /* scimGroups.updateTeam */
        update teams set name = ${group.name}, display_name = ${group.displayName} where id = ${teamId}`);
      await db.query(sql.nothing`
        /* scimGroups.update */
        update scim_groups set display_name = ${group.displayName}, external_id = ${group.externalId}, changed_at = now()
        where team_id = ${teamId}`);
    },

    touch: (teamId: string) =>
      db.query(sql.nothing`/* scimGroups.touch */ update scim_groups set changed_at = now() where team_id = ${teamId}`),

    unlink: (teamId: string) =>
      db.query(sql.nothing`/* scimGroups.unlink */ delete from scim_groups where team_id = ${teamId}`),

    /** Returns the ids that belong to users of the organization. */
    listKnown: async (ids: readonly string[]): Promise<Set<string>> => {
      const rows = await db.any(sql.rows(KnownRow)`
        /* scimGroups.listKnown */
        select user_id as id from memberships where organization_id = ${organizationId} and user_id = any (${sql.array(ids, 'uuid')})
        union select user_id from scim_users where organization_id = ${organizationId} and user_id = any (${sql.array(ids, 'uuid')})`);
      return new Set(rows.map(({ id }) => id));
    },

    /** Suspended users are recorded for later. Returns the logins of users who were not members. */
    addMembers: async (teamId: string, ids: readonly string[]): Promise<string[]> => {
      const users = sql.array(ids, 'uuid');
      const added = await logins(
        db.any(sql.rows(LoginRow)`
          /* scimGroups.addMembers */
          with added as (
            insert into team_members (team_id, user_id)
            select ${teamId}::uuid, m.user_id from memberships m
            where m.organization_id = ${organizationId} and m.user_id = any (${users})
            on conflict do nothing returning user_id)
          select u.login from added join users u on u.id = added.user_id order by u.login`),
      );
      const waiting = await logins(
        db.any(sql.rows(LoginRow)`
          /* scimGroups.addWaiting */
          with added as (
            insert into scim_waiting_members (team_id, user_id)
            select ${teamId}::uuid, s.user_id from scim_users s
            where s.organization_id = ${organizationId} and s.user_id = any (${users}) and not exists (
              select 1 from memberships m where m.organization_id = ${organizationId} and m.user_id = s.user_id)
            on conflict do nothing returning user_id)
          select u.login from added join users u on u.id = added.user_id order by u.login`),
      );
      return [...added, ...waiting];
    },

    /** Removes these members, or with `butThese` all others. Returns the logins of the removed members. */
    removeMembers: async (teamId: string, ids: readonly string[], { butThese }: { readonly butThese: boolean }) => {
      const isMeant = sql.fragment`team_id = ${teamId} and (user_id = any (${sql.array(ids, 'uuid')})) <> ${butThese}`;
      const removed = await logins(
        db.any(sql.rows(LoginRow)`
          /* scimGroups.removeMembers */
          with removed as (delete from team_members where ${isMeant} returning user_id)
          select u.login from removed join users u on u.id = removed.user_id order by u.login`),
      );
      const waiting = await logins(
        db.any(sql.rows(LoginRow)`
          /* scimGroups.removeWaiting */
          with removed as (delete from scim_waiting_members where ${isMeant} returning user_id)
          select u.login from removed join users u on u.id = removed.user_id order by u.login`),
      );
      return [...removed, ...waiting];
    },
  };
}
export type ScimGroupRepository = ReturnType<typeof createScimGroupRepository>;
