import { Type } from 'typebox';
import type { GrantSubject } from '../../shared/access/grant-repository.ts';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const CountRow = Type.Object({ count: Type.Integer() });
const LoginRow = Type.Object({ login: Type.String() });

/** The listed users, and the members of the listed teams. */
export interface GrantedUsers {
  readonly userIds?: readonly string[];
  readonly teamIds?: readonly string[];
  /** A team that the users are about to join. */
  readonly joining?: string | null;
}

export function createGrantBoundsRepository(db: Queryable) {
  return {
    /** Counts at most `limit` grants. */
    countOf: async (organizationId: string, subject: GrantSubject, limit: number): Promise<number> => {
      const isOf =
        'userId' in subject
          ? sql.fragment`user_id = ${subject.userId}`
          : 'teamId' in subject
            ? sql.fragment`team_id = ${subject.teamId}`
            : sql.fragment`token_id = ${subject.tokenId}`;
      const { count } = await db.one(sql.rows(CountRow)`
        /* grantBounds.countOf */
        select count(*) as count from (
          select 1 from grants where organization_id = ${organizationId} and ${isOf} limit ${limit}) counted`);
      return count;
    },

    /** The login of a user to whom more than `limit` grants apply, including the grants of their teams. */
    findOver: async (
      organizationId: string,
      { joining = null, teamIds = [], userIds = [] }: GrantedUsers,
      limit: number,
    ): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(LoginRow)`
        /* grantBounds.findOver */
        with meant as (
          select unnest(${sql.array([...userIds], 'uuid')}) as user_id
          union select user_id from team_members where team_id = any (${sql.array([...teamIds], 'uuid')})
        ), joined as (
          select user_id, m.team_id from meant join team_members m using (user_id)
          join teams e on e.id = m.team_id and e.organization_id = ${organizationId}
          union select user_id, ${joining}::uuid from meant where ${joining}::uuid is not null
        ), of_teams as (
          select team_id, count(*) as count from grants where team_id in (select team_id from joined) group by team_id
        ), counts as (
          select user_id, count(*) as count from grants
          where organization_id = ${organizationId} and user_id in (select user_id from meant) group by user_id
          union all select user_id, count from joined join of_teams using (team_id)
        )
        select u.login from counts c join users u on u.id = c.user_id
        group by u.login having sum(c.count) > ${limit} order by u.login limit 1`);
      return row?.login ?? null;
    },
  };
}
