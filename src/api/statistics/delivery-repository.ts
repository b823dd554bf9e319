import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import { readableStacks, today } from './ci-query-repository.ts';

/** The median and the 90th percentile, in seconds. */
const Quantiles = Nullable(Type.Array(Type.Integer()));

const DeliveryRow = Type.Object({
  /** Null: of all projects. */
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

/** What stacks deliver, from the counters of their days. */
export function createDeliveryRepository(db: Queryable) {
  const times = (column: ReturnType<typeof sql.fragment>, key: ReturnType<typeof sql.fragment>) => sql.fragment`
    select ${key} as key, count(*)::int as count, percentile_disc(array[0.5, 0.9]) within group (order by s.seconds) as quantiles
    from d cross join lateral unnest(${column}) as s (seconds)`;
  return {
    /** Of the readable live stacks in the last days: by project, and of all together. */
    sum: (organization: ListedOrganization, days: number) =>
      db.any(sql.rows(DeliveryRow)`
        /* deliveries.sum */
        with r as materialized (${readableStacks(organization)}),
        d as materialized (
          select r.project_name, d.runs - d.cancelled as finished, d.failed, d.changed, d.lead_seconds, d.restore_seconds
          from stack_days d join r on r.stack_id = d.stack_id
          where d.organization_id = ${organization.id} and d.day > ${today} - ${days}::int and d.runs > 0),
        c as (
          select d.project_name as project, coalesce(sum(d.finished), 0)::int as finished, coalesce(sum(d.failed), 0)::int as failed,
            coalesce(sum(d.changed), 0)::int as changed
          from d group by grouping sets ((d.project_name), ())),
        l as (${times(sql.fragment`d.lead_seconds`, sql.fragment`coalesce(d.project_name, '')`)} group by grouping sets ((d.project_name), ())),
        m as (${times(sql.fragment`d.restore_seconds`, sql.fragment`coalesce(d.project_name, '')`)} group by grouping sets ((d.project_name), ()))
        select c.*, coalesce(l.count, 0) as leads, l.quantiles as lead, coalesce(m.count, 0) as restores, m.quantiles as restore
        from c left join l on l.key = coalesce(c.project, '') left join m on m.key = coalesce(c.project, '')
        order by c.project`),

    /** Of the live stacks of organizations in the last days; of those with the most runs. */
    listOrganizations: (days: number, limit: number) =>
      db.any(sql.rows(CountRow)`
        /* deliveries.listOrganizations */
        with n as not materialized (
          select c.organization_id, d.runs - d.cancelled as finished, d.failed, d.changed, d.lead_seconds, d.restore_seconds
          from stack_days d join stack_changes c on c.stack_id = d.stack_id and c.organization_id = d.organization_id
          where d.day > ${today} - ${days}::int and d.runs > 0),
        c as materialized (
          select organization_id, sum(finished)::int as finished, sum(failed)::int as failed, sum(changed)::int as changed
          from n group by 1 order by sum(finished) desc, 1 limit ${limit}),
        -- Times of the chosen ones only.
        d as materialized (
          select n.organization_id, n.lead_seconds, n.restore_seconds from n join c on c.organization_id = n.organization_id
          where n.lead_seconds <> '{}' or n.restore_seconds <> '{}'),
        l as (${times(sql.fragment`d.lead_seconds`, sql.fragment`d.organization_id`)} group by 1),
        m as (${times(sql.fragment`d.restore_seconds`, sql.fragment`d.organization_id`)} group by 1)
        select o.name as organization, c.finished, c.failed, c.changed, l.quantiles[1] as "leadSeconds", m.quantiles[1] as "restoreSeconds"
        from c join organizations o on o.id = c.organization_id left join l on l.key = o.id left join m on m.key = o.id`),
  };
}
