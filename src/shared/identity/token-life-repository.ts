import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { TokenKind } from './token-kinds.ts';

const AffectedRow = Type.Object({
  id: Type.String(),
  kind: TokenKind,
  name: Nullable(Type.String()),
  owner: Nullable(Type.String()),
  description: Type.String(),
  expiresAt: Nullable(Timestamp),
  newExpiresAt: Timestamp,
  ends: Type.Boolean(),
});

/** Excludes tokens of sessions, which are shown, and end, with their sessions. */
export const isValid = sql.fragment`not t.is_session and t.revoked_at is null and (t.expires_at is null or t.expires_at > now())`;

const lifeOf = (seconds: number | null) => sql.fragment`
  coalesce(t.rotated_at, t.created_at) + make_interval(secs => ${seconds}::bigint)`;

/** Tokens whose lifetime a policy of `seconds` shortens. */
const affected = (organizationId: string, seconds: number | null) => sql.fragment`
  select t.id from api_tokens t
  where t.id = any (array(
      select t.id from api_tokens t where t.organization_id = ${organizationId} and ${isValid}
      union all
      select t.id from memberships m join api_tokens t on t.user_id = m.user_id
      where m.organization_id = ${organizationId} and ${isValid}))
    and t.listed_in is null and coalesce(t.expires_at, 'infinity') > ${lifeOf(seconds)}`;

export function createTokenLifeRepository(db: Queryable) {
  return {
    /** The longest lifetime that the user's organizations allow; null for no limit. */
    findMaxSecondsOfUser: async (userId: string): Promise<number | null> => {
      const row = await db.one(sql.rows(Type.Object({ seconds: Nullable(Type.Integer()) }))`
        /* tokens.findMaxSecondsOfUser */
        select min(a.max_token_seconds) as seconds
        from organization_access a join memberships m on m.organization_id = a.organization_id where m.user_id = ${userId}`);
      return row.seconds;
    },

    findMaxSeconds: async (organizationId: string): Promise<number | null> => {
      const row = await db.one(sql.rows(Type.Object({ seconds: Nullable(Type.Integer()) }))`
        /* tokens.findMaxSeconds */
        select max_token_seconds as seconds from organization_access where organization_id = ${organizationId}`);
      return row.seconds;
    },

    /** The first to end first. */
    listAffected: (organizationId: string, seconds: number) =>
      db.any(sql.rows(AffectedRow)`
        /* tokens.listAffected */
        select t.id, t.kind, t.name, coalesce(u.login, e.name) as owner, t.description, t.expires_at as "expiresAt",
               n.at as "newExpiresAt", n.at <= now() as ends
        from (${affected(organizationId, seconds)}) a join api_tokens t using (id)
        left join users u on u.id = t.user_id left join teams e on e.id = t.team_id
        cross join lateral (select ${lifeOf(seconds)} as at) n
        order by n.at, t.id`),

    /**
     * Applies to existing and future tokens; null for no limit. Each shortened token takes the lock of its owner, in no defined order.
     * Therefore all these locks are taken first, in the usual order: members, then the organization. Transactions that create tokens have
     * locked the row for key share.
     */
    setMaxSeconds: (organizationId: string, seconds: number | null) =>
      db.query(sql.nothing`
        /* tokens.setMaxSeconds */
        with locked as materialized (
          select lock_exclusive(k.key) from (
            select distinct coalesce(place_of_user(t.user_id), t.organization_id) as key, t.user_id is null as is_last
            from (${affected(organizationId, seconds)}) a join api_tokens t using (id)
            order by 2, 1 offset 0) k)
        update organization_access set max_token_seconds = ${seconds}::bigint
        where organization_id in (
          select organization_id from organization_access
          where organization_id = ${organizationId} and (select count(*) from locked) >= 0 for update)`),
  };
}
