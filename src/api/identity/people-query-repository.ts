import { Type } from 'typebox';
import { Role } from '../../shared/access/roles.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Timestamp } from '../../shared/platform/schema/standard-schema.ts';

const MemberRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  email: Type.String(),
  role: Role,
  isActive: Type.Boolean(),
  /** Names of the first few. */
  teams: Type.Array(Type.String()),
  teamCount: Type.Integer(),
  since: Timestamp,
});

const TeamRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  displayName: Type.String(),
  description: Type.String(),
  members: Type.Integer(),
  /** The requesting user is a member, or an admin of the team. */
  isIn: Type.Boolean(),
  isAdmin: Type.Boolean(),
  /** A configuration declares the team. */
  isManaged: Type.Boolean(),
});
export type TeamPageRow = Row<typeof TeamRow>;

const TeamMemberRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  isAdmin: Type.Boolean(),
  isActive: Type.Boolean(),
});

interface Selection {
  /** Part of the name, in any case. */
  readonly text: string | null;
  /** The last name on the previous page. */
  readonly after: string | null;
  readonly limit: number;
}

const teamViews = 3;

export function createPeopleQueryRepository(db: Queryable) {
  const everything = sql.fragment`true`;
  const later = (name: ReturnType<typeof sql.fragment>, after: string | null) =>
    after === null ? everything : sql.fragment`${name} > ${after}`;
  const holds = (names: ReturnType<typeof sql.fragment>, text: string | null) =>
    text === null ? everything : sql.fragment`strpos(lower(${names}), lower(${text})) > 0`;
  const team = (userId: string | null) => sql.fragment`
    e.id, e.name, e.display_name as "displayName", e.description,
    (select count(*)::int from team_members m where m.team_id = e.id) as members,
    own.user_id is not null as "isIn", coalesce(own.is_admin, false) as "isAdmin",
    exists (select from managed_objects o
      where o.organization_id = e.organization_id and o.kind = 'Team' and o.object = e.name) as "isManaged"
    from teams e left join team_members own on own.team_id = e.id and own.user_id = ${userId}::uuid`;
  return {
    listMembers: (organizationId: string, { after, limit, role, text }: Selection & { readonly role: Role | null }) =>
      db.any(sql.rows(MemberRow)`
        /* peopleQueries.listMembers */
        select u.login, u.display_name as "displayName", u.email, m.role, u.deactivated_at is null as "isActive",
          to_json(coalesce(t.names[1:${teamViews}], '{}')) as teams, coalesce(cardinality(t.names), 0) as "teamCount",
          m.created_at as since
        from memberships m join users u on u.id = m.user_id
        cross join lateral (
          select array_agg(e.name order by e.name) as names from team_members tm join teams e on e.id = tm.team_id
          where tm.user_id = u.id and e.organization_id = m.organization_id) t
        where m.organization_id = ${organizationId} and ${later(sql.fragment`u.login`, after)}
          and ${holds(sql.fragment`u.login || ' ' || u.display_name`, text)}
          and ${role === null ? everything : sql.fragment`m.role = ${role}`}
        order by u.login limit ${limit}`),

    listTeams: (organizationId: string, userId: string | null, { after, limit, text }: Selection) =>
      db.any(sql.rows(TeamRow)`
        /* peopleQueries.listTeams */
        select ${team(userId)}
        where e.organization_id = ${organizationId} and ${later(sql.fragment`e.name`, after)}
          and ${holds(sql.fragment`e.name || ' ' || e.display_name`, text)}
        order by e.name limit ${limit}`),

    findTeam: (organizationId: string, userId: string | null, name: string) =>
      db.maybeOne(sql.rows(TeamRow)`
        /* peopleQueries.findTeam */
        select ${team(userId)} where e.organization_id = ${organizationId} and e.name = ${name}`),

    listTeamMembers: (teamId: string, { after, limit, text }: Selection) =>
      db.any(sql.rows(TeamMemberRow)`
        /* peopleQueries.listTeamMembers */
        select u.login, u.display_name as "displayName", m.is_admin as "isAdmin", u.deactivated_at is null as "isActive"
        from team_members m join users u on u.id = m.user_id
        where m.team_id = ${teamId} and ${later(sql.fragment`u.login`, after)}
          and ${holds(sql.fragment`u.login || ' ' || u.display_name`, text)}
        order by u.login limit ${limit}`),
  };
}
