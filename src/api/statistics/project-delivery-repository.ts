import { Type } from 'typebox';
import { type Queryable, type Row, type SqlFragment, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import { readableProjects, readableStacks, today } from './ci-query-repository.ts';

/** Median and 90th percentile, in seconds. */
const Quantiles = Nullable(Type.Array(Type.Integer()));

const DeliveryRow = Type.Object({
  /** Null: all projects together. */
  project: Nullable(Type.String()),
  finished: Type.Integer(),
  failed: Type.Integer(),
  changed: Type.Integer(),
  leads: Type.Integer(),
  lead: Quantiles,
  restores: Type.Integer(),
  restore: Quantiles,
});
export type DeliveryRow = Row<typeof DeliveryRow>;

const CountRow = Type.Object({
  organization: Type.String(),
  finished: Type.Integer(),
  failed: Type.Integer(),
  changed: Type.Integer(),
  leadSeconds: Nullable(Type.Integer()),
  restoreSeconds: Nullable(Type.Integer()),
});

/** Counts the rows of `k` of each kind, with quantiles, by a key. */
const quantiles = sql.fragment`
  q as (
    select t.key, t.kind, t.seconds, sum(t.count) over (partition by t.key, t.kind order by t.seconds) as reached,
      sum(t.count) over (partition by t.key, t.kind) as total
    from t where t.count > 0),
  v as materialized (
    select q.key, q.kind, q.total::int as count,
      array[min(q.seconds) filter (where q.reached >= 0.5 * q.total), min(q.seconds) filter (where q.reached >= 0.9 * q.total)] as quantiles
    from q group by q.key, q.kind, q.total)`;
/** `d` has runs, `k` has deliveries by kind and time. */
const byProject = sql.fragment`
  c as (
    select d.project_name as project, coalesce(sum(d.finished), 0)::int as finished, coalesce(sum(d.failed), 0)::int as failed
    from d group by grouping sets ((d.project_name), ())),
  t as (
    select coalesce(k.project_name, '') as key, k.kind, k.seconds, sum(k.count) as count
    from k group by grouping sets ((k.project_name, k.kind, k.seconds), (k.kind, k.seconds))),
  ${quantiles}
  select c.*, coalesce(n.count, 0) as changed, coalesce(l.count, 0) as leads, l.quantiles as lead, coalesce(m.count, 0) as restores,
    m.quantiles as restore
  from c left join v n on n.key = coalesce(c.project, '') and n.kind = 'changed'
  left join v l on l.key = coalesce(c.project, '') and l.kind = 'lead'
  left join v m on m.key = coalesce(c.project, '') and m.kind = 'restore'
  order by c.project`;

/** Includes runs that are not added up yet. */
const runsOf = (condition: SqlFragment) => sql.fragment`
  (select organization_id, day, project_name, runs, cancelled, failed from project_days where ${condition}
   union all select organization_id, day, project_name, runs, cancelled, failed from project_day_changes where ${condition})`;
const deliveriesOf = (condition: SqlFragment) => sql.fragment`
  (select organization_id, project_name, kind, seconds, count from project_day_deliveries where ${condition}
   union all select organization_id, project_name, kind, seconds, count from project_day_delivery_changes where ${condition})`;

/** Times are rounded like the kept sums. */
export function createProjectDeliveryRepository(db: Queryable) {
  return {
    /** Metrics of readable live stacks: by project, and of all together. */
    sum: (organization: ListedOrganization, days: number) =>
      db.any(sql.rows(DeliveryRow)`
        /* deliveries.sum */
        with r as materialized (${readableStacks(organization)}),
        s as materialized (
          select r.project_name, d as of_day from stack_days d join r on r.stack_id = d.stack_id
          where d.organization_id = ${organization.id} and d.day > ${today} - ${days}::int and d.runs > 0),
        d as (
          select s.project_name, sum((s.of_day).runs - (s.of_day).cancelled) as finished, sum((s.of_day).failed) as failed
          from s group by s.project_name),
        k as materialized (
          select s.project_name, n.kind, n.seconds, sum(n.count) as count from s cross join lateral deliveries_of_day(s.of_day) n
          group by s.project_name, n.kind, n.seconds),
        ${byProject}`),

    /** Metrics for callers who, in each project, may read all stacks or none: no stack is read. */
    sumProjects: (organization: ListedOrganization, days: number) => {
      const isMeant = sql.fragment`organization_id = ${organization.id} and day > ${today} - ${days}::int`;
      return db.any(sql.rows(DeliveryRow)`
        /* deliveries.sumProjects */
        with r as materialized (${readableProjects(organization)}),
        d as (
          select d.project_name, sum(d.runs - d.cancelled) as finished, sum(d.failed) as failed
          from ${runsOf(isMeant)} d where d.project_name in (select name from r) group by d.project_name),
        k as materialized (
          select k.project_name, k.kind, k.seconds, sum(k.count) as count
          from ${deliveriesOf(isMeant)} k where k.project_name in (select name from r) group by k.project_name, k.kind, k.seconds),
        ${byProject}`);
    },

    /** Metrics of live stacks, for the organizations with the most runs. */
    listOrganizations: (days: number, limit: number) => {
      const isMeant = sql.fragment`day > ${today} - ${days}::int`;
      return db.any(sql.rows(CountRow)`
        /* deliveries.listOrganizations */
        with c as materialized (
          select d.organization_id, o.name, sum(d.runs - d.cancelled)::int as finished, sum(d.failed)::int as failed
          from ${runsOf(isMeant)} d join organizations o on o.id = d.organization_id
          group by 1, 2 having sum(d.runs) > 0 order by 3 desc, 1 limit ${limit}),
        t as (
          select k.organization_id as key, k.kind, k.seconds, sum(k.count) as count
          from ${deliveriesOf(isMeant)} k where k.organization_id in (select organization_id from c) group by 1, 2, 3),
        ${quantiles}
        select c.name as organization, c.finished, c.failed, coalesce(n.count, 0) as changed, l.quantiles[1] as "leadSeconds",
          m.quantiles[1] as "restoreSeconds"
        from c left join v n on n.key = c.organization_id and n.kind = 'changed'
        left join v l on l.key = c.organization_id and l.kind = 'lead'
        left join v m on m.key = c.organization_id and m.kind = 'restore'`);
    },
  };
}
