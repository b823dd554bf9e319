import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';

const TeamRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  displayName: Type.String(),
  description: Type.String(),
});
export type TeamRow = Row<typeof TeamRow>;

const TeamMemberRow = Type.Object({ team: Type.String(), login: Type.String(), isAdmin: Type.Boolean() });
export type TeamMemberRow = Row<typeof TeamMemberRow>;

const IdRow = Type.Object({ id: Type.String() });

/** Teams and their members. */
export function createTeamRepository(db: Queryable) {
  const columns = sql.fragment`id, name, display_name as "displayName", description`;
  return {
    /** Returns null if there is one with this name. */
    insert: async (organizationId: string, team: Omit<TeamRow, 'id'>): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* teams.insert */
        insert into teams (organization_id, name, display_name, description)
        values (${organizationId}, ${team.name}, ${team.displayName}, ${team.description})
        on conflict (organization_id, name) do nothing returning id`);
      return row?.id ?? null;
    },

    find: (organizationId: string, name: string) =>
      db.maybeOne(sql.rows(TeamRow)`
        /* teams.find */ select ${columns} from teams where organization_id = ${organizationId} and name = ${name}`),

    list: (organizationId: string) =>
      db.any(sql.rows(TeamRow)`
        /* teams.list */ select ${columns} from teams where organization_id = ${organizationId} order by name`),

    /** Deletes the team with its grants and tokens. */
    remove: (id: string) => db.query(sql.nothing`/* teams.remove */ delete from teams where id = ${id}`),

    setMember: (teamId: string, userId: string, isAdmin: boolean) =>
      db.query(sql.nothing`
        /* teams.setMember */
        insert into team_members (team_id, user_id, is_admin) values (${teamId}, ${userId}, ${isAdmin})
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

    isAdmin: (teamId: string, userId: string) =>
      db.exists(sql.rows(IdRow)`
        /* teams.isAdmin */ select team_id as id from team_members where team_id = ${teamId} and user_id = ${userId} and is_admin`),

    /** Whether the user administers the team. Locks that until the end of the transaction. */
    holdAdmin: async (teamId: string, userId: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* teams.holdAdmin */
        select team_id as id from team_members where team_id = ${teamId} and user_id = ${userId} and is_admin for share`);
      return row !== null;
    },

    /** Members of all teams of the organization. */
    listMembers: (organizationId: string) =>
      db.any(sql.rows(TeamMemberRow)`
        /* teams.listMembers */
        select e.name as team, u.login, m.is_admin as "isAdmin"
        from teams e join team_members m on m.team_id = e.id join users u on u.id = m.user_id
        where e.organization_id = ${organizationId} order by e.name, u.login`),
  };
}
export type TeamRepository = ReturnType<typeof createTeamRepository>;
