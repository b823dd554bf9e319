import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Nullable, Timestamp } from '../../shared/platform/schema/standard-schema.ts';
import type { ListedOrganization } from '../../shared/stacks/stack-list-repository.ts';
import type { RefusalReason } from '../../shared/updates/refused-run-repository.ts';

const Text = Nullable(Type.String());

const StatisticsPartRow = Type.Object({
  /** A row has either a day (UTC) or a project. */
  day: Text,
  project: Text,
  runs: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
  previews: Type.Integer(),
  failedPreviews: Type.Integer(),
  waits: Type.Integer(),
  runMs: Type.Number(),
  waitedMs: Type.Number(),
  longestMs: Type.Number(),
});
export type CiStatisticsRow = Row<typeof StatisticsPartRow>;

const RefusalCountRow = Type.Object({
  /** A row has some of these keys. */
  day: Text,
  project: Text,
  reason: Nullable(Type.Unsafe<RefusalReason>(Type.String())),
  times: Type.Integer(),
  waitedMs: Type.Number(),
});
export type RefusalCountRow = Row<typeof RefusalCountRow>;

const RefusedRow = Type.Object({
  id: Type.String(),
  /** Microseconds since the epoch, as text. */
  position: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  reason: Type.Unsafe<RefusalReason>(Type.String()),
  kind: Text,
  message: Type.String(),
  by: Text,
  commit: Text,
  branch: Text,
  ciUrl: Text,
  updateId: Text,
  waitedMs: Type.Number(),
  times: Type.Integer(),
  refusedAt: Timestamp,
});
export type RefusedRow = Row<typeof RefusedRow>;

const DriftedRow = Type.Object({
  stackId: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** The end of the last run that has found the drift, in microseconds since the epoch, as text. */
  position: Type.String(),
  updateId: Type.String(),
  /** JSON text: the number of differing resources, by the operation that would repair the state. */
  changes: Type.String(),
  foundAt: Timestamp,
  /** The end of the first run that found the drift. */
  since: Timestamp,
  cleanAt: Nullable(Timestamp),
  cleanUpdateId: Text,
});
export type DriftedRow = Row<typeof DriftedRow>;

/** A position in a list: microseconds since the epoch, and an id. */
export type CiPosition = readonly [string, string];

/** The live stacks that the caller may read. */
export const readableStacks = (
  { facts, id }: ListedOrganization,
  stacks = sql.fragment`stack_changes c`,
) => sql.fragment`
    select c.stack_id, c.project_name, c.stack_name from ${stacks}
    where c.organization_id = ${id}
      and (${facts}::jsonb is null or effective_permissions(${facts}::jsonb, ${id}::uuid, c.project_name, c.stack_name) & 1 = 1)`;

/** Projects for a caller who may read all stacks of a project or none. */
export const readableProjects = ({ facts, id }: Pick<ListedOrganization, 'facts' | 'id'>) => sql.fragment`
  select p.name from projects p where p.organization_id = ${id}
    and ${facts === null ? sql.fragment`true` : sql.fragment`effective_permissions(${facts}::jsonb, ${id}::uuid, p.name, '') & 1 = 1`}`;

// As of the start of the statement, so that Postgres can use the index for the days.
export const today = sql.fragment`(statement_timestamp() at time zone 'UTC')::date`;

const counters = sql.fragment`runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms`;
const sums = sql.fragment`sum(c.runs) as runs, sum(c.failed) as failed, sum(c.cancelled) as cancelled,
  sum(c.previews) as previews, sum(c.failed_previews) as failed_previews, sum(c.waits) as waits,
  sum(c.run_ms) as run_ms, sum(c.waited_ms) as waited_ms, max(c.longest_ms) as longest_ms`;
/** Groups the rows of `d`. */
const byDayAndProject = sql.fragment`
  select d.day::text as day, d.project_name as project, sum(d.runs)::int as runs, sum(d.failed)::int as failed,
    sum(d.cancelled)::int as cancelled, sum(d.previews)::int as previews, sum(d.failed_previews)::int as "failedPreviews",
    sum(d.waits)::int as waits, sum(d.run_ms)::float8 as "runMs", sum(d.waited_ms)::float8 as "waitedMs",
    max(d.longest_ms)::float8 as "longestMs"
  from d group by grouping sets ((d.day), (d.project_name))`;

/** Results of runs on readable live stacks. */
export function createCiQueryRepository(db: Queryable) {
  /** Reads each of these stacks once, and no other stack of the organization. */
  const among = (ids: ReturnType<typeof sql.fragment>) => sql.fragment`
    (select distinct m.stack_id from (${ids}) m) m
    cross join lateral (select * from stack_changes c where c.stack_id = m.stack_id offset 0) c`;
  const moment = (position: CiPosition) =>
    sql.fragment`'epoch'::timestamptz + ${position[0]}::bigint * interval '1 microsecond'`;
  const micros = (column: ReturnType<typeof sql.fragment>) =>
    sql.fragment`(extract(epoch from ${column}) * 1000000)::bigint::text as position`;
  /** What ends the drift of the stack `r`. Each condition is one lookup in its own index, regardless of the number of runs. */
  const applied = sql.fragment`
    select u.id, u.number, u.ended_at from updates u
    where u.stack_id = r.stack_id and u.kind in ('update', 'destroy') and not u.dry_run and u.status = 'succeeded'`;
  const clean = sql.fragment`
    select v.id, v.number, v.ended_at from drift_runs c join updates v on v.id = c.update_id
    where c.stack_id = r.stack_id and c.state = 'done' and not c.is_detected`;
  return {
    /** Statistics for callers who, in each project, may read all stacks or none: no stack is read. */
    sumProjects: ({ facts, id }: ListedOrganization, days: number) =>
      db.any(sql.rows(StatisticsPartRow)`
        /* ciQueries.sumProjects */
        with r as materialized (${readableProjects({ facts, id })}),
        d as materialized (
          select c.day, c.project_name, ${sums} from (
            select day, project_name, ${counters}, longest_ms from project_days
            where organization_id = ${id} and day > ${today} - ${days}::int
            -- Not added up yet.
            union all
            select day, project_name, ${counters}, longest_ms from project_day_changes
            where organization_id = ${id} and day > ${today} - ${days}::int) c
          where c.project_name in (select name from r)
          group by c.day, c.project_name
          -- Otherwise, its stacks have left.
          having sum(c.runs) > 0 or sum(c.previews) > 0)
        ${byDayAndProject}`),

    /** Statistics of stacks that the caller may read. */
    sum: (organization: ListedOrganization, days: number) =>
      db.any(sql.rows(StatisticsPartRow)`
        /* ciQueries.sum */
        with r as materialized (${readableStacks(organization)}),
        -- First the many rows by a hash, then the few that are left by day and by project.
        d as materialized (
          select c.day, r.project_name, ${sums}
          from stack_days c join r on r.stack_id = c.stack_id
          where c.organization_id = ${organization.id} and c.day > ${today} - ${days}::int
          group by c.day, r.project_name)
        ${byDayAndProject}`),

    /** Counts by reason, by day and by project. */
    countRefused: (organization: ListedOrganization, days: number) =>
      db.any(sql.rows(RefusalCountRow)`
        /* ciQueries.countRefused */
        with f as materialized (
          select f.stack_id, (f.refused_at at time zone 'UTC')::date as day, f.reason, sum(f.times) as times, sum(f.waited_ms) as waited_ms
          from refused_runs f
          where f.organization_id = ${organization.id} and f.refused_at >= (${today} - ${days - 1}::int)::timestamp at time zone 'UTC'
          group by 1, 2, 3),
        r as materialized (${readableStacks(organization, among(sql.fragment`select stack_id from f`))})
        select f.day::text as day, r.project_name as project, f.reason, sum(f.times)::int as times, sum(f.waited_ms)::float8 as "waitedMs"
        from f join r on r.stack_id = f.stack_id
        group by grouping sets ((f.day), (r.project_name), (f.reason))`),

    /** The newest first. */
    listRefused: (
      organization: ListedOrganization,
      {
        after,
        days,
        limit,
        project,
        reasons,
      }: {
        readonly days: number;
        readonly reasons: readonly string[] | null;
        readonly project: string | null;
        readonly after: CiPosition | null;
        readonly limit: number;
      },
    ) =>
      db.any(sql.rows(RefusedRow)`
        /* ciQueries.listRefused */
        select f.id::text as id, ${micros(sql.fragment`f.refused_at`)}, c.project_name as project, c.stack_name as stack, f.reason, f.kind,
          f.message, f.requested_by as by, f.commit_id as commit, f.branch, f.ci_url as "ciUrl", f.update_id as "updateId",
          f.waited_ms::float8 as "waitedMs", f.times, f.refused_at as "refusedAt"
        from refused_runs f
        cross join lateral (select * from stack_changes e where e.stack_id = f.stack_id offset 0) c
        where f.organization_id = ${organization.id} and f.refused_at >= (${today} - ${days - 1}::int)::timestamp at time zone 'UTC'
          and ${reasons === null ? sql.fragment`true` : sql.fragment`f.reason = any (${sql.array([...reasons], 'text')})`}
          and (${project}::text is null or c.project_name = ${project})
          and (${organization.facts}::jsonb is null
            or effective_permissions(${organization.facts}::jsonb, ${organization.id}::uuid, c.project_name, c.stack_name) & 1 = 1)
          and ${after === null ? sql.fragment`true` : sql.fragment`(f.refused_at, f.id) < (${moment(after)}, ${after[1]}::bigint)`}
        order by f.refused_at desc, f.id desc limit ${limit}`),

    /**
     * Drift that was found in the last days, or persists, the newest first. It ends when an update or a destroy has succeeded, or when a
     * later run finds none.
     */
    listDrifted: (
      organization: ListedOrganization,
      {
        after,
        days,
        limit,
        onlyDrifted,
      }: {
        readonly days: number;
        readonly onlyDrifted: boolean;
        readonly after: CiPosition | null;
        readonly limit: number;
      },
    ) =>
      db.any(sql.rows(DriftedRow)`
        /* ciQueries.listDrifted */
        with r as materialized (${readableStacks(
          organization,
          onlyDrifted
            ? sql.fragment`(select * from stack_changes where is_drifted) c`
            : among(sql.fragment`select d.stack_id from drifted_stacks(${organization.id}::uuid) as d (stack_id)`),
        )})
        select r.stack_id as "stackId", r.project_name as project, r.stack_name as stack, ${micros(sql.fragment`l.ended_at`)},
          l.update_id as "updateId", l.changes, l.ended_at as "foundAt", coalesce(f.ended_at, l.ended_at) as since,
          m.ended_at as "cleanAt", m.id as "cleanUpdateId"
        from r
        cross join lateral (
          select d.update_id, d.number, d.changes, u.ended_at from drift_runs d join updates u on u.id = d.update_id
          where d.stack_id = r.stack_id and d.is_detected order by d.number desc limit 1) l
        left join lateral (
          select e.id, e.ended_at from (
            (${applied} and u.number >= l.number order by u.number limit 1)
            union all (${clean} and c.number > l.number order by c.number limit 1)) e
          order by e.number limit 1) m on true
        left join lateral (
          -- The first one after the last that has found none, or that has changed the stack.
          select u.ended_at from drift_runs d join updates u on u.id = d.update_id
          where d.stack_id = r.stack_id and d.is_detected and d.number > coalesce((
            select max(e.number) from (
              (${applied} and u.number < l.number order by u.number desc limit 1)
              union all (${clean} and c.number < l.number order by c.number desc limit 1)) e), 0)
          order by d.number limit 1) f on true
        where (m.id is null or (not ${onlyDrifted} and l.ended_at >= (${today} - ${days - 1}::int)::timestamp at time zone 'UTC'))
          and ${after === null ? sql.fragment`true` : sql.fragment`(l.ended_at, r.stack_id) < (${moment(after)}, ${after[1]}::uuid)`}
        order by l.ended_at desc, r.stack_id desc limit ${limit}`),
  };
}
