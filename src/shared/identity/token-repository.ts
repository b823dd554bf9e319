import { Type } from 'typebox';
import { Role } from '../access/roles.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { storableJson } from '../platform/json/storable-json.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import { TokenKind } from './token-kinds.ts';
import { createTokenLifeRepository, isValid } from './token-life-repository.ts';
import { TokenScope } from './token-scopes.ts';
import type { Claims } from './trust/trust-policy.ts';

const TokenRow = Type.Object({
  id: Type.String(),
  kind: TokenKind,
  name: Nullable(Type.String()),
  description: Type.String(),
  /** The login of the user, or the name of the team; null for tokens of the organization. */
  owner: Nullable(Type.String()),
  role: Nullable(Role),
  scopes: Nullable(Type.Array(TokenScope)),
  /** The token is for the organization's identity provider. */
  isProvisioning: Type.Boolean(),
  createdAt: Timestamp,
  createdBy: Nullable(Type.String()),
  expiresAt: Nullable(Timestamp),
  lastUsedAt: Nullable(Timestamp),
  /** The secret that the last rotation replaced is valid until then. */
  previousUntil: Nullable(Timestamp),
});
export type TokenRow = Row<typeof TokenRow>;

const ListedTokenRow = Type.Object({
  ...TokenRow.properties,
  /** The token was issued for the id token of a CI run. */
  isCiToken: Type.Boolean(),
  /** The bootstrap file lists the token, which is then replaced there. */
  isListed: Type.Boolean(),
  /** The creation, in microseconds since the epoch. A `Date` is too coarse for the continuation of a list. */
  micros: Type.Integer(),
});
export type ListedTokenRow = Row<typeof ListedTokenRow>;

/** Newest first. */
export interface TokenListCursor {
  readonly micros: number;
  readonly id: string;
}

export type TokenOwner =
  | { readonly kind: 'personal'; readonly userId: string }
  | { readonly kind: 'team'; readonly organizationId: string; readonly teamId: string }
  | { readonly kind: 'organization'; readonly organizationId: string; readonly role: Role }
  | {
      readonly kind: 'service';
      readonly organizationId: string;
      /** The token is for the organization's identity provider. */
      readonly isProvisioning?: boolean;
    };

export type TokenOwnerFilter =
  | { readonly userId: string }
  | { readonly teamId: string }
  | { readonly organizationId: string };

export interface NewToken {
  readonly owner: TokenOwner;
  readonly hash: Buffer;
  readonly name: string | null;
  readonly description: string;
  readonly scopes: readonly TokenScope[] | null;
  readonly expiresAt: Date | null;
  /** Null for an operator. */
  readonly createdBy: string | null;
  /** The token was issued under this policy for an id token with these claims. */
  readonly exchange?: { readonly policyId: string; readonly organizationId: string; readonly claims: Claims };
}

const InsertedRow = Type.Object({ id: Type.String(), expiresAt: Nullable(Timestamp) });
const CountRow = Type.Object({ count: Type.Integer() });
const listedRuns = 100;
/** A rotation this soon after the previous one is a repetition. */
const repetitionSeconds = 60;
/** An advisory lock of the owner, under which its tokens are counted and created. */
const makingLock = 99;
const HolderRow = Type.Object({ isProvisioning: Type.Boolean() });
const MakerRow = Type.Object({ maker: Nullable(Type.String()) });
const RotatedRow = Type.Object({
  id: Type.String(),
  expiresAt: Nullable(Timestamp),
  previousUntil: Nullable(Timestamp),
});

export function createTokenRepository(db: Queryable) {
  // No condition on the kind, which the owner implies: with it, Postgres may prefer the indexes of names, which include ended tokens.
  const within = (ownerFilter: TokenOwnerFilter) =>
    'userId' in ownerFilter
      ? sql.fragment`t.user_id = ${ownerFilter.userId}`
      : 'teamId' in ownerFilter
        ? sql.fragment`t.team_id = ${ownerFilter.teamId}`
        : sql.fragment`t.organization_id = ${ownerFilter.organizationId} and t.team_id is null`;
  const columns = sql.fragment`
    t.id, t.kind, t.name, t.description, coalesce(u.login, e.name) as owner, t.role, t.scopes, t.is_provisioning as "isProvisioning",
    t.created_at as "createdAt", c.login as "createdBy", t.expires_at as "expiresAt", t.last_used_at as "lastUsedAt",
    case when t.previous_until > now() then t.previous_until end as "previousUntil"`;
  const withNames = sql.fragment`
    left join users u on u.id = t.user_id left join teams e on e.id = t.team_id left join users c on c.id = t.created_by`;
  return {
    ...createTokenLifeRepository(db),

    /**
     * The policies of organizations may have shortened the returned expiry. Violates a constraint whose name ends in `_name` if the owner
     * has had a token with this name.
     */
    insert: ({ owner, ...token }: NewToken) =>
      db.one(sql.rows(InsertedRow)`
        /* tokens.insert */
        insert into api_tokens (kind, user_id, organization_id, team_id, role, token_hash, name, description, scopes, expires_at, created_by,
          is_provisioning, policy_id, issued_in, claims)
        values (${owner.kind}, ${owner.kind === 'personal' ? owner.userId : null},
                ${owner.kind === 'personal' ? null : owner.organizationId}, ${owner.kind === 'team' ? owner.teamId : null},
                ${owner.kind === 'organization' ? owner.role : null}, ${sql.binary(token.hash)}, ${token.name}, ${token.description},
                ${token.scopes === null ? null : JSON.stringify(token.scopes)}::jsonb,
                ${token.expiresAt?.toISOString() ?? null}::timestamptz, ${token.createdBy},
                ${owner.kind === 'service' && owner.isProvisioning === true},
                ${token.exchange?.policyId ?? null}, ${token.exchange?.organizationId ?? null},
                ${token.exchange ? storableJson(token.exchange.claims) : null}::jsonb)
        returning id, expires_at as "expiresAt"`),

    /** Oldest first. Of the tokens issued to CI runs, only the newest 100. */
    list: (ownerFilter: TokenOwnerFilter) =>
      db.any(sql.rows(TokenRow)`
        /* tokens.list */
        select ${columns} from api_tokens t ${withNames} where t.id = any (array(
          select t.id from api_tokens t where ${within(ownerFilter)} and ${isValid} and t.policy_id is null
          union all (
            select t.id from api_tokens t where ${within(ownerFilter)} and ${isValid} and t.policy_id is not null
            order by t.created_at desc, t.id desc limit ${listedRuns})))
        order by t.created_at, t.id`),

    /** Newest first. `withCiTokens` includes tokens issued to CI runs. */
    listPage: (
      ownerFilter: TokenOwnerFilter,
      {
        after,
        limit,
        withCiTokens,
      }: { readonly after: TokenListCursor | null; readonly limit: number; readonly withCiTokens: boolean },
    ) =>
      db.any(sql.rows(ListedTokenRow)`
        /* tokens.listPage */
        select ${columns}, t.policy_id is not null as "isCiToken",
          t.listed_in is not null as "isListed", (extract(epoch from t.created_at) * 1000000)::bigint as micros
        from api_tokens t ${withNames} where ${within(ownerFilter)} and ${isValid} and (${withCiTokens} or t.policy_id is null)
          and ${
            after === null
              ? sql.fragment`true`
              : sql.fragment`(t.created_at, t.id) <
                  (timestamptz 'epoch' + ${after.micros}::bigint * interval '1 microsecond', ${after.id}::uuid)`
          }
        order by t.created_at desc, t.id desc limit ${limit}`),

    /** Returns false if the token is not valid. */
    revoke: async (id: string, ownerFilter: TokenOwnerFilter): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* tokens.revoke */ update api_tokens t set revoked_at = now() where t.id = ${id} and ${within(ownerFilter)} and ${isValid}`);
      return result.rowCount > 0;
    },

    /** Waits for concurrent transactions that create a token for this owner. Counts up to `limit`. */
    countForNew: async (ownerFilter: TokenOwnerFilter, limit: number): Promise<number> => {
      const id =
        'userId' in ownerFilter
          ? ownerFilter.userId
          : 'teamId' in ownerFilter
            ? ownerFilter.teamId
            : ownerFilter.organizationId;
      await db.query(sql.nothing`
        /* tokens.lockForNew */ select pg_advisory_xact_lock(hashtextextended(${id}, ${makingLock}::bigint))`);
      const { count } = await db.one(sql.rows(CountRow)`
        /* tokens.countForNew */
        select count(*)::int as count from (
          select 1 from api_tokens t where ${within(ownerFilter)} and ${isValid} and t.policy_id is null limit ${limit}) counted`);
      return count;
    },

    /**
     * Deletes tokens that ended this many days ago. `named` ones belong to teams and organizations. Tokens of a bootstrap file stay,
     * because the file would make them valid again.
     */
    deleteEnded: async (
      { named, ofOthers }: { readonly named: number; readonly ofOthers: number },
      limit: number,
    ): Promise<number> => {
      const ended = (days: number) => sql.fragment`
        select t.id from api_tokens t
        where least(t.revoked_at, t.expires_at) < now() - make_interval(days => ${days}) and not t.is_session
          and t.listed_in is null and not t.is_withdrawn`;
      const oldestFirst = sql.fragment`order by least(t.revoked_at, t.expires_at)`;
      const { rowCount } = await db.query(sql.nothing`
        /* tokens.deleteEnded */
        delete from api_tokens where id = any (array(
          (${ended(ofOthers)} and (t.kind = 'personal' or t.policy_id is not null) ${oldestFirst} limit ${limit})
          union all (${ended(named)} ${oldestFirst} limit ${limit})
          limit ${limit}))`);
      return rowCount;
    },

    /** Returns the number of deleted tokens. */
    deleteEndedOfRuns: async (organizationId: string, limit: number): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* tokens.deleteEndedOfRuns */
        delete from api_tokens where id = any (array(
          select t.id from api_tokens t
          where t.organization_id = ${organizationId} and t.policy_id is not null and least(t.revoked_at, t.expires_at) < now() limit ${limit}))`);
      return rowCount;
    },

    /** The user who last rotated or created a token without a user, and so knows its secret; null for an operator. */
    findCreator: async (id: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(MakerRow)`
        /* tokens.findCreator */ select coalesce(rotated_by, created_by) as maker from api_tokens where id = ${id}`);
      return row?.maker ?? null;
    },

    /**
     * Also restarts the lifetime. The previous secret stays valid for `overlapSeconds`; with 0, leases that were started with the token end
     * as well. A repetition by the same user within a minute, e.g. after a lost response, replaces the new secret and keeps the previous
     * one. Returns null if the token does not exist, or may not be rotated (`findHolder`).
     */
    rotate: async (
      id: string,
      hash: Buffer,
      {
        by,
        overlapSeconds,
        ownerFilter,
      }: { readonly ownerFilter: TokenOwnerFilter | null; readonly overlapSeconds: number; readonly by: string | null },
    ) => {
      // The previous secret does not become valid for longer than it was.
      const until = sql.fragment`least(now() + make_interval(secs => ${overlapSeconds}), t.expires_at)`;
      const isRepeated = sql.fragment`
        ${overlapSeconds > 0} and t.previous_until > now() and t.rotated_by is not distinct from ${by}::uuid and t.rotated_at > now() - make_interval(secs => ${repetitionSeconds})`;
      const row = await db.maybeOne(sql.rows(RotatedRow)`
        /* tokens.rotate */
        update api_tokens t set previous_hash = case when ${isRepeated} then t.previous_hash else t.token_hash end,
          previous_until = case when ${isRepeated} then least(t.previous_until, ${until}) else ${until} end,
          previous_rotated_by = case when ${isRepeated} then t.previous_rotated_by else t.rotated_by end,
          token_hash = ${sql.binary(hash)}, rotated_at = now(), rotated_by = ${by},
          expires_at = now() + (t.expires_at - coalesce(t.rotated_at, t.created_at))
        where t.id = ${id} and ${ownerFilter === null ? sql.fragment`true` : within(ownerFilter)} and ${isValid} and t.listed_in is null
          and t.policy_id is null and (${ownerFilter === null} or not t.is_provisioning)
        returning t.id, t.expires_at as "expiresAt", t.previous_until as "previousUntil"`);
      if (row && overlapSeconds === 0)
        await db.query(
          sql.nothing`/* tokens.endLeases */ select end_leases(array[${id}::uuid], null, 'token-revoked')`,
        );
      return row;
    },

    /** A token with a holder may not be rotated: a CI run's or, unless the caller is an operator, an identity provider's. */
    findHolder: async (id: string, ownerFilter: TokenOwnerFilter | null): Promise<'run' | 'provider' | null> => {
      const row = await db.maybeOne(sql.rows(HolderRow)`
        /* tokens.findHolder */
        select t.is_provisioning as "isProvisioning" from api_tokens t
        where t.id = ${id} and ${ownerFilter === null ? sql.fragment`true` : within(ownerFilter)} and ${isValid}
          and (t.policy_id is not null or t.is_provisioning)`);
      return row && (row.isProvisioning ? 'provider' : 'run');
    },
  };
}
export type TokenRepository = ReturnType<typeof createTokenRepository>;
