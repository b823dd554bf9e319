import { Type } from 'typebox';
import type { SubjectFacts } from '../access/access-decision.ts';
import { AllGrants, allGrants, type GrantedStack, holdsOn } from '../access/grant-repository.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';

const TeamRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  displayName: Type.String(),
  description: Type.String(),
});
export type TeamRow = Row<typeof TeamRow>;

const TeamMemberRow = Type.Object({
  team: Type.String(),
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  isAdmin: Type.Boolean(),
});
export type TeamMemberRow = Row<typeof TeamMemberRow>;

const TeamMembership = Type.Object({ userId: Type.String(), isAdmin: Type.Boolean() });
type TeamMembership = Row<typeof TeamMembership>;

const TeamStackRow = Type.Object({ project: Type.String(), stack: Type.String(), permissions: Type.Integer() });
export type TeamStackRow = Row<typeof TeamStackRow>;

const TeamOnStackRow = Type.Object({ ...TeamRow.properties, ...AllGrants.properties });
const CountRow = Type.Object({ count: Type.Integer() });
const RemovedRow = Type.Object({ permissions: Type.Integer() });
const IdRow = Type.Object({ id: Type.String() });

export function createTeamRepository(db: Queryable) {
  const columns = sql.fragment`id, name, display_name as "displayName", description`;
  /** Grants `g` that allow something on one stack, regardless of its tags. */
  const byName = (teamId: string) => sql.fragment`
    g.team_id = ${teamId} and g.effect = 'allow' and g.tag_name is null and g.project_pattern is not null and g.stack_pattern is not null
    and position('*' in g.project_pattern || g.stack_pattern) = 0`;
  return {
    /** Returns null if a team with this name exists. */
    insert: async (organizationId: string, team: Omit<TeamRow, 'id'>): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* teams.insert */
        insert into teams (organization_id, name, display_name, description)
        values (${organizationId}, ${team.name}, ${team.displayName}, ${team.description})
        on conflict (organization_id, name) do nothing returning id`);
      return row?.id ?? null;
    },

    count: async (organizationId: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* teams.count */ select count(*) as count from teams where organization_id = ${organizationId}`);
      return count;
    },

    find: (organizationId: string, name: string) =>
      db.maybeOne(sql.rows(TeamRow)`
        /* teams.find */ select ${columns} from teams where organization_id = ${organizationId} and name = ${name}`),

    list: (organizationId: string) =>
      db.any(sql.rows(TeamRow)`
        /* teams.list */ select ${columns} from teams where organization_id = ${organizationId} order by name`),

    /** Also deletes the team's grants and tokens. */
    remove: (id: string) =>
      // Locked first, because a transaction that starts an update with one of the tokens may still refer to it.
      db.query(sql.nothing`
        /* teams.remove */
        with locked as materialized (select lock_exclusive(organization_id) from teams where id = ${id})
        delete from teams using locked where id = ${id}`),

    setMember: (teamId: string, userId: string, isAdmin: boolean) =>
      db.query(sql.nothing`
        /* teams.setMember */
        insert into team_members (team_id, user_id, is_admin) values (${teamId}, ${userId}, ${isAdmin})
        on conflict (team_id, user_id) do update set is_admin = excluded.is_admin where team_members.is_admin <> excluded.is_admin`),

    setMembers: (teamId: string, members: readonly TeamMembership[]) =>
      db.query(sql.nothing`
        /* teams.setMembers */
        insert into team_members (team_id, user_id, is_admin)
        select ${teamId}, m.user_id, m.is_admin
        from unnest(${sql.array(
          members.map(({ userId }) => userId),
          'uuid',
        )}, ${sql.array(
          members.map(({ isAdmin }) => isAdmin),
          'bool',
        )}) as m (user_id, is_admin)
        on conflict (team_id, user_id) do update set is_admin = excluded.is_admin where team_members.is_admin <> excluded.is_admin`),

    /** Returns whether the user was a member. */
    removeMember: async (teamId: string, userId: string): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* teams.removeMember */ delete from team_members where team_id = ${teamId} and user_id = ${userId}`);
      return result.rowCount > 0;
    },

    isMember: (teamId: string, userId: string) =>
      db.exists(sql.rows(IdRow)`
        /* teams.isMember */ select team_id as id from team_members where team_id = ${teamId} and user_id = ${userId}`),

    removeMembers: (teamId: string, userIds: readonly string[]) =>
      db.query(sql.nothing`
        /* teams.removeMembers */
        delete from team_members where team_id = ${teamId} and user_id = any (${sql.array([...userIds], 'uuid')})`),

    listMembersAmong: (teamId: string, userIds: readonly string[]) =>
      db.any(sql.rows(TeamMembership)`
        /* teams.listMembersAmong */
        select user_id as "userId", is_admin as "isAdmin" from team_members
        where team_id = ${teamId} and user_id = any (${sql.array([...userIds], 'uuid')})`),

    isAdmin: (teamId: string, userId: string) =>
      db.exists(sql.rows(IdRow)`
        /* teams.isAdmin */ select team_id as id from team_members where team_id = ${teamId} and user_id = ${userId} and is_admin`),

    /** `teamId` null lists the members of all teams. */
    listMembers: (organizationId: string, teamId: string | null = null) =>
      db.any(sql.rows(TeamMemberRow)`
        /* teams.listMembers */
        select e.name as team, u.login, u.display_name as "displayName", u.email, m.is_admin as "isAdmin"
        from teams e join team_members m on m.team_id = e.id join users u on u.id = m.user_id
        where e.organization_id = ${organizationId} and (${teamId}::uuid is null or e.id = ${teamId}::uuid)
        order by e.name, u.login`),

    listIdsOf: async (userId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* teams.listIdsOf */ select team_id as id from team_members where user_id = ${userId}`);
      return rows.map(({ id }) => id);
    },

    describe: (id: string, { description, displayName }: Pick<TeamRow, 'description' | 'displayName'>) =>
      db.query(sql.nothing`
        /* teams.describe */ update teams set display_name = ${displayName}, description = ${description} where id = ${id}`),

    /** Stacks granted by name. `facts` limit them to readable ones. */
    listStacks: (teamId: string, facts: SubjectFacts | null) =>
      db.any(sql.rows(TeamStackRow)`
        /* teams.listStacks */
        select project_pattern as project, stack_pattern as stack, bit_or(permissions) as permissions from grants g
        where ${byName(teamId)} and (${facts === null ? null : JSON.stringify(facts)}::jsonb is null
          or effective_permissions(${facts === null ? null : JSON.stringify(facts)}::jsonb, organization_id, project_pattern, stack_pattern) & 1 = 1)
        group by 1, 2 order by 1, 2`),

    /** Only grants by name, except `kept`. Returns the permissions that they allowed. */
    removeStack: (teamId: string, { project, stack }: { project: string; stack: string }, kept: string | null = null) =>
      db.any(sql.rows(RemovedRow)`
        /* teams.removeStack */
        delete from grants g where ${byName(teamId)} and project_pattern = ${project} and stack_pattern = ${stack}
          and (${kept}::uuid is null or g.id <> ${kept}::uuid)
        returning g.permissions`),

    /** Teams with grants that apply to the stack. */
    listOn: (organizationId: string, stack: GrantedStack) =>
      db.any(sql.rows(TeamOnStackRow)`
        /* teams.listOn */
        select ${columns}, allowed, denied from teams e join (
          select g.team_id, ${allGrants} from grants g
          where g.organization_id = ${organizationId} and g.team_id is not null and ${holdsOn(stack)} group by g.team_id
        ) given on given.team_id = e.id
        order by name`),
  };
}
export type TeamRepository = ReturnType<typeof createTeamRepository>;
