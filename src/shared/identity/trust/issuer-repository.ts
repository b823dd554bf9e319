import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import { Replay } from './issuer.ts';
import { TrustPolicy } from './trust-policy.ts';

const IssuerRow = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  name: Type.String(),
  url: Type.String(),
  audience: Type.String(),
  replay: Replay,
  maxSeconds: Nullable(Type.Integer()),
  /** JSON text; null if the keys are fetched. */
  jwks: Nullable(Type.String()),
  policyVersion: Type.Integer(),
  createdAt: Timestamp,
  modifiedAt: Timestamp,
});
export type IssuerRow = Row<typeof IssuerRow>;

const CountedIssuerRow = Type.Object({ ...IssuerRow.properties, policies: Type.Integer() });
export type CountedIssuerRow = Row<typeof CountedIssuerRow>;
const TrustedIssuerRow = Type.Object({ ...IssuerRow.properties, now: Timestamp });
const PolicyRow = Type.Object({
  id: Type.String(),
  ...TrustPolicy.properties,
  teamId: Nullable(Type.String()),
  userId: Nullable(Type.String()),
});
export type PolicyRow = Row<typeof PolicyRow>;

const IdRow = Type.Object({ id: Type.String() });
const CountRow = Type.Object({ count: Type.Integer() });
const TokenRow = Type.Object({
  id: Type.String(),
  policyId: Type.String(),
  claims: Type.Record(Type.String(), Type.Unknown()),
});

export interface NewIssuer {
  readonly organizationId: string;
  readonly name: string;
  readonly url: string;
  readonly audience: string;
  readonly replay: Replay;
  readonly maxSeconds: number | null;
  readonly jwks: string | null;
  readonly createdBy: IssuerAuthor | null;
}

/** An operator is null. */
export interface IssuerAuthor {
  /** Null for a token without a user. */
  readonly userId: string | null;
  readonly tokenId: string;
}

/** Missing values stay. */
export interface IssuerChange {
  readonly name?: string;
  readonly maxSeconds?: number | null;
  readonly jwks?: string | null;
  readonly audience?: string;
  readonly replay?: Replay;
}

export type IssuerRepository = ReturnType<typeof createIssuerRepository>;

/** A trigger revokes the tokens of a deleted policy. */
export function createIssuerRepository(db: Queryable) {
  const columns = sql.fragment`i.id, i.organization_id as "organizationId", i.name, i.url, i.audience, i.replay,
    i.max_seconds as "maxSeconds", i.jwks, i.policy_version as "policyVersion", i.created_at as "createdAt",
    i.modified_at as "modifiedAt"`;
  const behind = (author: IssuerAuthor | null) =>
    sql.fragment`people_behind(${author?.tokenId ?? null}::uuid, ${author?.userId ?? null}::uuid)`;
  const ofIssuer = (issuerId: string) =>
    sql.fragment`t.policy_id in (select p.id from trust_policies p where p.issuer_id = ${issuerId})`;
  /**
   * Each token takes the lock of its owner, in no defined order. Therefore all these locks are taken first, in the usual order: members,
   * then the organization.
   */
  const revoke = async (are: ReturnType<typeof sql.fragment>): Promise<void> => {
    const found = sql.fragment`${are} and t.revoked_at is null and t.expires_at > now()`;
    await db.query(sql.nothing`
      /* issuers.lockOwners */
      select lock_exclusive(k.key) from (
        select distinct coalesce(place_of_user(t.user_id), t.organization_id) as key, t.user_id is null as is_last
        from api_tokens t where ${found} order by 2, 1 offset 0) k`);
    await db.query(sql.nothing`/* issuers.revokeTokens */ update api_tokens t set revoked_at = now() where ${found}`);
  };
  return {
    /** Violates a constraint that ends in `_name_key` or `_url_key` if an issuer with this name or URL exists. */
    insert: (issuer: NewIssuer) =>
      db.one(sql.rows(IssuerRow)`
        /* issuers.insert */
        insert into trusted_issuers as i (organization_id, name, url, audience, replay, max_seconds, jwks, created_by, keys_by)
        values (${issuer.organizationId}, ${issuer.name}, ${issuer.url}, ${issuer.audience}, ${issuer.replay},
                ${issuer.maxSeconds}, ${issuer.jwks}, ${issuer.createdBy?.userId ?? null},
                case when ${issuer.jwks !== null} then ${behind(issuer.createdBy)} end)
        returning ${columns}`),

    count: async (organizationId: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* issuers.count */ select count(*)::int as count from trusted_issuers where organization_id = ${organizationId}`);
      return count;
    },

    list: (organizationId: string) =>
      db.any(sql.rows(IssuerRow)`
        /* issuers.list */ select ${columns} from trusted_issuers i where i.organization_id = ${organizationId} order by i.name`),

    /** Ordered by name, with the number of policies. */
    listPage: (organizationId: string, { after, limit }: { readonly after: string; readonly limit: number }) =>
      db.any(sql.rows(CountedIssuerRow)`
        /* issuers.listPage */
        select ${columns}, (select count(*)::int from trust_policies p where p.issuer_id = i.id) as policies
        from trusted_issuers i where i.organization_id = ${organizationId} and i.name > ${after} order by i.name limit ${limit}`),

    find: (organizationId: string, id: string) =>
      db.maybeOne(sql.rows(IssuerRow)`
        /* issuers.find */ select ${columns} from trusted_issuers i where i.organization_id = ${organizationId} and i.id = ${id}`),

    findByName: (organizationId: string, name: string) =>
      db.maybeOne(sql.rows(IssuerRow)`
        /* issuers.findByName */
        select ${columns} from trusted_issuers i where i.organization_id = ${organizationId} and i.name = ${name}`),

    /** Also returns the database's time. */
    findTrusted: (organization: string, url: string) =>
      db.maybeOne(sql.rows(TrustedIssuerRow)`
        /* issuers.findTrusted */
        select ${columns}, clock_timestamp() as now
        from organizations o join trusted_issuers i on i.organization_id = o.id
        where o.name = ${organization} and i.url = ${url}`),

    /** Keeps the issuer and its policies unchanged until the end of the transaction. */
    hold: (id: string) =>
      db.maybeOne(sql.rows(TrustedIssuerRow)`
        /* issuers.hold */
        with locked as materialized (select lock_shared(${id}))
        select ${columns}, clock_timestamp() as now from locked, trusted_issuers i where i.id = ${id} for share of i`),

    /** Waits for exchanges that are being committed, so that a change sees their tokens. */
    lock: async (id: string): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* issuers.lock */
        with locked as materialized (select lock_exclusive(${id}))
        select i.id from locked, trusted_issuers i where i.id = ${id} for update of i`);
      return row !== null;
    },

    update: (id: string, change: IssuerChange, changedBy: IssuerAuthor | null) =>
      db.one(sql.rows(IssuerRow)`
        /* issuers.update */
        update trusted_issuers i set modified_at = now(),
          name = coalesce(${change.name ?? null}, i.name),
          audience = coalesce(${change.audience ?? null}, i.audience),
          replay = coalesce(${change.replay ?? null}, i.replay),
          max_seconds = case when ${change.maxSeconds !== undefined} then ${change.maxSeconds ?? null} else i.max_seconds end,
          jwks = case when ${change.jwks !== undefined} then ${change.jwks ?? null} else i.jwks end,
          keys_by = case when ${change.jwks === undefined} or i.jwks = ${change.jwks ?? null} then i.keys_by
            when ${change.jwks ?? null}::text is not null then ${behind(changedBy)} end
        where i.id = ${id} returning ${columns}`),

    /** Also deletes the policies, and revokes the tokens issued under them. */
    remove: async (id: string): Promise<void> => {
      await revoke(ofIssuer(id));
      await db.query(sql.nothing`/* issuers.remove */ delete from trusted_issuers where id = ${id}`);
    },

    listPolicies: (issuerId: string) =>
      db.any(sql.rows(PolicyRow)`
        /* issuers.listPolicies */
        select p.id, p.decision, p.token_kind as "tokenKind", coalesce(e.name, u.login) as owner, p.is_admin as "isAdmin",
               p.rules, p.scopes, p.max_seconds as "maxSeconds", p.team_id as "teamId", p.user_id as "userId"
        from trust_policies p left join teams e on e.id = p.team_id left join users u on u.id = p.user_id
        where p.issuer_id = ${issuerId} order by p.position`),

    insertPolicy: (
      issuerId: string,
      position: number,
      policy: TrustPolicy & { readonly teamId: string | null; readonly userId: string | null },
      createdBy: string | null,
    ) =>
      db.one(sql.rows(IdRow)`
        /* issuers.insertPolicy */
        insert into trust_policies (issuer_id, position, decision, token_kind, team_id, user_id, is_admin, rules, scopes, max_seconds, created_by)
        values (${issuerId}, ${position}, ${policy.decision}, ${policy.tokenKind}, ${policy.teamId}, ${policy.userId}, ${policy.isAdmin},
                ${JSON.stringify(policy.rules)}::jsonb, ${policy.scopes === null ? null : JSON.stringify(policy.scopes)}::jsonb,
                ${policy.maxSeconds}, ${createdBy})
        returning id`),

    movePolicy: (id: string, position: number) =>
      db.query(sql.nothing`
        /* issuers.movePolicy */ update trust_policies set position = ${position} where id = ${id} and position <> ${position}`),

    /** First revoke their tokens, together with others, by `revokeTokens`. */
    removePolicies: (ids: readonly string[]) =>
      db.query(sql.nothing`
        /* issuers.removePolicies */ delete from trust_policies where id = any (${sql.array(ids, 'uuid')})`),

    countPolicyChange: (issuerId: string) =>
      db.query(sql.nothing`
        /* issuers.countPolicyChange */
        update trusted_issuers set policy_version = policy_version + 1, modified_at = now() where id = ${issuerId}`),

    /** Counts tokens issued in the organization that are valid, or ended within `endedSeconds`, up to `limit`. */
    countTokens: async (organizationId: string, endedSeconds: number, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* issuers.countTokens */
        select count(*)::int as count from (
          select 1 from api_tokens t
          where t.issued_in = ${organizationId} and t.expires_at > now() - make_interval(secs => ${endedSeconds})
            and (t.revoked_at is null or t.revoked_at > now() - make_interval(secs => ${endedSeconds})) limit ${limit}) counted`);
      return count;
    },

    /** Opens a cursor over the valid tokens, so that each page of `listTokens` does not read all tokens again. */
    openTokens: (policyIds: readonly string[]) =>
      db.query(sql.nothing`
        /* issuers.openTokens */
        declare tokens_of_policies no scroll cursor for
        select t.id, t.policy_id as "policyId", coalesce(t.claims, '{}') as claims
        from api_tokens t
        where t.policy_id = any (${sql.array(policyIds, 'uuid')}) and t.revoked_at is null and t.expires_at > now()`),

    /** Empty after the last page. */
    listTokens: () => db.any(sql.rows(TokenRow)`/* issuers.listTokens */ fetch 500 from tokens_of_policies`),

    closeTokens: () => db.query(sql.nothing`/* issuers.closeTokens */ close tokens_of_policies`),

    revokeAllTokens: (issuerId: string) => revoke(ofIssuer(issuerId)),

    /** Revokes tokens issued under these policies, and tokens by id. One step keeps the order of the locks. */
    revokeTokens: ({ policyIds, ids }: { readonly policyIds: readonly string[]; readonly ids: readonly string[] }) =>
      revoke(
        sql.fragment`(t.policy_id = any (${sql.array([...policyIds], 'uuid')}) or t.id = any (${sql.array([...ids], 'uuid')}))`,
      ),
  };
}
