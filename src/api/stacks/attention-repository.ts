import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import { type ListedOrganization, unnested } from '../../shared/stacks/stack-list-repository.ts';

const Text = Nullable(Type.String());

const TroubledRow = Type.Object({
  trouble: Type.Union([Type.Literal('failed'), Type.Literal('interrupted'), Type.Literal('drifted')]),
  /** Number of stacks with this trouble. */
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
  /** Number of frozen stacks that the reader may read, at most `maxCounted`. */
  stacks: Type.Integer(),
});
export type FrozenRow = Row<typeof FrozenRow>;

const CountRow = Type.Object({ isMore: Type.Boolean() });
const NameRow = Type.Object({ name: Type.String() });

const maxMessage = 300;

/** What needs attention in organizations, as far as their facts allow to read the stacks. */
export function createAttentionRepository(db: Queryable) {
  /** The stacks that changed last, at most `maxScanned` of all organizations. Reads no rows of other tables. */
  const newest = (organizations: readonly ListedOrganization[], maxScanned: number) => sql.fragment`
    select o.name as organization, o.facts, c.* from ${unnested(organizations)} as o (id, name, facts)
    cross join lateral (
      select * from stack_changes c where c.organization_id = o.id
      order by c.changed_at desc, c.stack_id desc limit ${maxScanned}) c
    order by c.changed_at desc, c.stack_id desc limit ${maxScanned}`;
  return {
    /** Stacks whose last update failed or was interrupted, and drifted ones: the newest `limit` of each. */
    listTroubled: (organizations: readonly ListedOrganization[], maxScanned: number, limit: number) =>
      db.any(sql.rows(TroubledRow)`
        /* attention.listTroubled */
        with read as materialized (
          select c.*, u.id as last_id, u.status,
            case when d.is_detected and not exists (
              select 1 from updates r where r.stack_id = c.stack_id and r.number >= d.number and r.kind in ('update', 'destroy')
                and not r.dry_run and r.status = 'succeeded') then d.update_id end as drift_id
          from (${newest(organizations, maxScanned)}) c
          left join lateral (
            select id, status from updates u where u.stack_id = c.stack_id and not u.dry_run and u.kind <> 'preview'
            order by u.number desc limit 1) u on true
          left join lateral (
            select update_id, is_detected, number from drift_runs r where r.stack_id = c.stack_id and r.state = 'done'
            order by r.number desc limit 1) d on true
          offset 0
        ),
        found as (
          select t.trouble, t.update_id, r.* from read r
          cross join lateral (values
            (case r.status when 'failed' then 'failed' when 'cancelled' then 'interrupted' end, r.last_id),
            (case when r.drift_id is not null then 'drifted' end, r.drift_id)) as t (trouble, update_id)
          where t.trouble is not null and (r.facts is null
            or effective_permissions(r.facts, r.organization_id, r.project_name, r.stack_name) & 1 = 1)
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
        from listed l join updates u on u.id = l.update_id
        left join users a on a.id = u.requested_by left join api_tokens t on t.id = u.token_id and u.requested_by is null
        where l.rank <= ${limit} order by l.trouble, l.rank`),

    /** Whether the organizations have more than `maxScanned` stacks. */
    hasMore: async (organizations: readonly ListedOrganization[], maxScanned: number): Promise<boolean> => {
      const row = await db.one(sql.rows(CountRow)`
        /* attention.hasMore */
        select count(*) > ${maxScanned} as "isMore" from (${newest(organizations, maxScanned + 1)}) c`);
      return row.isMore;
    },

    /** These freezes, the newest first, without the ones of no stack that the reader may read. */
    listFrozen: (
      organizations: readonly ListedOrganization[],
      ruleIds: readonly string[],
      { limit, maxCounted, maxScanned }: { limit: number; maxCounted: number; maxScanned: number },
    ) =>
      db.any(sql.rows(FrozenRow)`
        /* attention.listFrozen */
        select r.id, o.name as organization, r.project, r.stack, r.tag_name as "tagName", r.tag_value as "tagValue",
          r.settings::text as settings, r.note, a.login as by, r.set_at as since, clock_timestamp() as now, f.stacks
        from ${unnested(organizations)} as o (id, name, facts)
        join update_rules r on r.organization_id = o.id and r.id = any (${sql.array([...ruleIds], 'uuid')})
        left join users a on a.id = r.set_by
        cross join lateral (
          select count(*)::int as stacks from (
            select 1 from (
              (select l.project_name, l.stack_name from stack_listings l
                where r.project is null and r.tag_name is null and l.organization_id = o.id and l.tag_name = '' limit ${maxScanned})
              union all
              (select l.project_name, l.stack_name from stack_listings l
                where r.tag_name is null and l.organization_id = o.id and l.tag_name = '' and l.project_name = r.project
                  and (r.stack is null or l.stack_name = r.stack) limit ${maxScanned})
              union all
              (select l.project_name, l.stack_name from stack_listings l
                where l.organization_id = o.id and l.tag_name = r.tag_name and l.tag_name <> '' and l.tag_value = r.tag_value
                  and (r.project is null or l.project_name = r.project) limit ${maxScanned})) l
            where o.facts is null or effective_permissions(o.facts, o.id, l.project_name, l.stack_name) & 1 = 1
            limit ${maxCounted}) c) f
        where f.stacks > 0
        order by r.set_at desc, r.id limit ${limit}`),

    /** Names of the organizations with pending approvals, the oldest request first. */
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
