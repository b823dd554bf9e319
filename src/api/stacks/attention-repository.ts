import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { type ListedOrganization, unnested } from '../../shared/stacks/stack-list-repository.ts';
import { isEffective } from '../../shared/updates/history-repository.ts';

const Text = Nullable(Type.String());

const TroubledRow = Type.Object({
  trouble: Type.Union([Type.Literal('failed'), Type.Literal('interrupted'), Type.Literal('drifted')]),
  /** Stacks with this trouble. */
  count: Type.Integer(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** The update that failed or was interrupted, or the run that found the drift. */
  updateId: Type.String(),
  version: Nullable(Type.Integer()),
  kind: Type.String(),
  message: Type.String(),
  commit: Text,
  ciUrl: Text,
  by: Text,
  since: Timestamp,
});
export type TroubledRow = Row<typeof TroubledRow>;

const FrozenRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  project: Text,
  stack: Text,
  tagName: Text,
  tagValue: Text,
  /** JSON text. */
  settings: Type.String(),
  note: Type.String(),
  by: Text,
  since: Timestamp,
  /** By the database's clock. */
  now: Timestamp,
  /** Frozen stacks that the reader may read, at most `maxCounted`. */
  stacks: Type.Integer(),
  /** No readable stack was found among the first stacks of the freeze, and it has more. */
  hasMore: Type.Boolean(),
});
export type FrozenRow = Row<typeof FrozenRow>;

const CountRow = Type.Object({ isMore: Type.Boolean() });
const NameRow = Type.Object({ name: Type.String() });

const maxMessage = 300;

/** Limited to stacks that the facts allow to read. */
export function createAttentionRepository(db: Queryable) {
  /** Stacks of an organization `o`, the last changed first. */
  const ended = (trouble: ReturnType<typeof sql.fragment>, maxScanned: number) => sql.fragment`
    select c.* from stack_changes c where c.organization_id = o.id and c.trouble = ${trouble}
    order by c.changed_at desc, c.stack_id desc limit ${maxScanned}`;
  const drifted = (maxScanned: number) => sql.fragment`
    select c.* from stack_changes c where c.organization_id = o.id and c.is_drifted
    order by c.changed_at desc, c.stack_id desc limit ${maxScanned}`;
  /** At most `maxScanned` stacks of each kind. Reads no other stacks. */
  const looked = (organizations: readonly ListedOrganization[], maxScanned: number) => sql.fragment`
    select * from (
      select row_number() over (partition by l.kind order by l.changed_at desc, l.stack_id desc) as at, l.*
      from (
        select o.name as organization, o.facts, k.* from ${unnested(organizations)} as o (id, name, facts)
        cross join lateral (
          select 'failed' as kind, f.* from (${ended(sql.fragment`'failed'`, maxScanned)}) f
          union all select 'interrupted', i.* from (${ended(sql.fragment`'cancelled'`, maxScanned)}) i
          union all select 'drifted', d.* from (${drifted(maxScanned)}) d) k) l) n
    where n.at <= ${maxScanned}`;
  /** Stacks of a rule `r` of an organization `o`. */
  const ofRule = (most: number) => sql.fragment`
    (select l.project_name, l.stack_name from stack_listings l
      where r.project is null and r.tag_name is null and l.organization_id = o.id and l.tag_name = '' limit ${most})
    union all
    (select l.project_name, l.stack_name from stack_listings l
      where r.tag_name is null and l.organization_id = o.id and l.tag_name = '' and l.project_name = r.project
        and (r.stack is null or l.stack_name = r.stack) limit ${most})
    union all
    (select l.project_name, l.stack_name from stack_listings l
      where l.organization_id = o.id and l.tag_name = r.tag_name and l.tag_name <> '' and l.tag_value = r.tag_value
        and (r.project is null or l.project_name = r.project) limit ${most})`;
  return {
    /** Failed, interrupted and drifted stacks: the newest `limit` of each kind. */
    listTroubled: (organizations: readonly ListedOrganization[], maxScanned: number, limit: number) =>
      db.any(sql.rows(TroubledRow)`
        /* attention.listTroubled */
        with found as materialized (
          select r.kind as trouble, r.organization, r.project_name, r.stack_name, r.stack_id, r.changed_at, d.update_id as drift_id
          from (${looked(organizations, maxScanned)}) r
          left join lateral (
            select update_id, is_detected, number from drift_runs d where r.kind = 'drifted' and d.stack_id = r.stack_id and d.state = 'done'
            order by d.number desc limit 1) d on true
          where (r.kind <> 'drifted' or d.is_detected and not exists (
              select 1 from updates u where u.stack_id = r.stack_id and u.number >= d.number and u.kind in ('update', 'destroy')
                and not u.dry_run and u.status = 'succeeded'))
            and (r.facts is null or effective_permissions(r.facts, r.organization_id, r.project_name, r.stack_name) & 1 = 1)
        ),
        listed as (
          select *, count(*) over (partition by trouble)::int as count,
            row_number() over (partition by trouble order by changed_at desc, stack_id desc) as rank
          from found
        )
        select l.trouble, l.count, l.organization, l.project_name as project, l.stack_name as stack,
          u.id as "updateId", u.stack_version as version, u.kind, left(u.message, ${maxMessage}) as message,
          u.commit_id as commit, u.ci_run::json ->> 'build.url' as "ciUrl",
          coalesce(a.login, t.kind || ':' || t.name) as by, coalesce(u.ended_at, u.started_at, u.created_at) as since
        from listed l
        cross join lateral (select coalesce(l.drift_id, (
          select u.id from updates u where u.stack_id = l.stack_id and ${isEffective}
          order by u.number desc limit 1)) as id offset 0) w
        join updates u on u.id = w.id
        left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id and u.requested_by is null
        where l.rank <= ${limit} order by l.trouble, l.rank`),

    /** More than `maxScanned` stacks that may have a trouble of one kind. */
    hasMore: async (organizations: readonly ListedOrganization[], maxScanned: number): Promise<boolean> => {
      const row = await db.one(sql.rows(CountRow)`
        /* attention.hasMore */
        select count(*) > 0 as "isMore" from (${looked(organizations, maxScanned + 1)}) c where c.at > ${maxScanned}`);
      return row.isMore;
    },

    /**
     * The newest first, with the number of their stacks that the reader may read. A freeze without readable stacks is left out, or comes
     * last if not all of its stacks were examined.
     */
    listFrozen: (
      organizations: readonly ListedOrganization[],
      ruleIds: readonly string[],
      { limit, maxCounted, maxScanned }: { limit: number; maxCounted: number; maxScanned: number },
    ) =>
      db.any(sql.rows(FrozenRow)`
        /* attention.listFrozen */
        select r.id, o.name as organization, r.project, r.stack, r.tag_name as "tagName", r.tag_value as "tagValue",
          r.settings::text as settings, r.note, a.login as by, r.set_at as since, clock_timestamp() as now, f.stacks, m."hasMore"
        from ${unnested(organizations)} as o (id, name, facts)
        join update_rules r on r.organization_id = o.id and r.id = any (${sql.array([...ruleIds], 'uuid')})
        left join users a on a.id = r.set_by
        cross join lateral (
          select count(*)::int as stacks from (
            select 1 from (${ofRule(maxScanned)}) l
            where o.facts is null or effective_permissions(o.facts, o.id, l.project_name, l.stack_name) & 1 = 1
            limit ${maxCounted}) c) f
        cross join lateral (
          select f.stacks = 0 and exists (select 1 from (${ofRule(maxScanned + 1)}) l offset ${maxScanned}) as "hasMore") m
        where f.stacks > 0 or m."hasMore"
        order by f.stacks = 0, r.set_at desc, r.id limit ${limit}`),

    hasMoreApprovals: async (organizationId: string, maxScanned: number): Promise<boolean> => {
      const { isMore } = await db.one(sql.rows(CountRow)`
        /* attention.hasMoreApprovals */
        select exists (
          select from update_approvals where organization_id = ${organizationId} and approved_at is null offset ${maxScanned}) as "isMore"`);
      return isMore;
    },

    /** The oldest request first. */
    listWithApprovals: async (organizations: readonly ListedOrganization[], limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* attention.listWithApprovals */
        select o.name from ${unnested(organizations)} as o (id, name, facts)
        cross join lateral (
          select a.asked_at from update_approvals a where a.organization_id = o.id and a.approved_at is null
          order by a.asked_at limit 1) a
        order by a.asked_at limit ${limit}`);
      return rows.map(({ name }) => name);
    },
  };
}
