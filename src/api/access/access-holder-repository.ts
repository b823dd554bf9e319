import { Type } from 'typebox';
import { type GrantedStack, grantFacts, holdsOn } from '../../shared/access/grant-repository.ts';
import { Role } from '../../shared/access/roles.ts';
import { TokenKind } from '../../shared/identity/token-kinds.ts';
import { isValid } from '../../shared/identity/token-life-repository.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { HolderFacts } from './access-explanation.ts';

const UserHolderRow = Type.Object({
  login: Type.String(),
  displayName: Type.String(),
  role: Role,
  facts: HolderFacts,
});
export type UserHolderRow = Row<typeof UserHolderRow>;

const TokenHolderRow = Type.Object({
  id: Type.String(),
  kind: TokenKind,
  name: Nullable(Type.String()),
  login: Nullable(Type.String()),
  team: Nullable(Type.String()),
  role: Nullable(Role),
  facts: HolderFacts,
});
export type TokenHolderRow = Row<typeof TokenHolderRow>;

interface HolderPage {
  /** Login or id of the only holder to list; null: all. */
  readonly only: string | null;
  /** Login or id of the last holder on the previous page. */
  readonly after: string | null;
  readonly limit: number;
}

/** The facts are those that token_facts collects. `stack` null: all stacks of the organization. */
export function createAccessHolderRepository(db: Queryable, stack: GrantedStack | null) {
  const everything = sql.fragment`true`;
  const grantsIn = sql.fragment`join grants g on g.id = own.id and g.organization_id = o.id and ${stack === null ? everything : holdsOn(stack)}`;
  const identified = sql.fragment`coalesce(jsonb_agg(${grantFacts} || jsonb_build_object('id', g.id) order by g.created_at, g.id), '[]')`;
  return {
    /** Active members in the order of their logins. */
    listUsers: (organizationId: string, { after, limit, only }: HolderPage) =>
      db.any(sql.rows(UserHolderRow)`
        /* holders.listUsers */
        select u.login, u.display_name as "displayName", m.role, jsonb_build_object(
          'base', case when m.role = 'admin' then role_permissions(m.role)
            else role_permissions(m.role) & coalesce(a.default_permissions, 127) end,
          'scopes', null,
          'grants', (select ${identified} from (
              select id from grants where user_id = u.id
              union all select id from grants where team_id = any (array(
                select tm.team_id from team_members tm where tm.user_id = u.id))
            ) own ${grantsIn})) as facts
        from organizations o join organization_access a on a.organization_id = o.id
        join memberships m on m.organization_id = o.id join users u on u.id = m.user_id
        where o.id = ${organizationId} and u.deactivated_at is null
          and ${only === null ? everything : sql.fragment`u.login = ${only}`}
          and ${after === null ? everything : sql.fragment`u.login > ${after}`}
        order by u.login limit ${limit}`),

    /**
     * Valid tokens of the organization, its teams and its services in the order of their ids. A member's token is listed only by its id.
     */
    listTokens: (organizationId: string, { after, limit, only }: HolderPage) =>
      db.any(sql.rows(TokenHolderRow)`
        /* holders.listTokens */
        select t.id, t.kind, t.name, u.login, e.name as team, coalesce(t.role, m.role) as role,
          f.facts || jsonb_build_object('grants', (select ${identified} from (
              select id from grants where user_id = t.user_id
              union all select id from grants where token_id = t.id
              union all select id from grants where team_id = any (t.team_id || array(
                select tm.team_id from team_members tm where tm.user_id = t.user_id))
            ) own ${grantsIn})) as facts
        from organizations o join api_tokens t on ${
          // Facts are collected only for the page, not for ended tokens of CI runs.
          only === null
            ? sql.fragment`t.id = any (array(select t.id from api_tokens t where t.organization_id = ${organizationId} and ${isValid}))`
            : sql.fragment`t.id = ${only}`
        }
        left join users u on u.id = t.user_id left join teams e on e.id = t.team_id
        left join memberships m on m.organization_id = o.id and m.user_id = t.user_id
        cross join lateral (select token_facts(t.id, o.id) as facts offset 0) f
        where o.id = ${organizationId} and f.facts is not null
          and ${after === null ? everything : sql.fragment`t.id > ${after}::uuid`}
        order by t.id limit ${limit}`),
  };
}
