import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const CountRow = Type.Object({ count: Type.Integer() });
const DayRow = Type.Object({ organizationId: Type.String(), day: Type.String(), project: Type.String() });

/** Daily sums of live stacks by project, and sums of organizations: tables `project_days`, `project_day_deliveries`, `stack_counts`. */
export function createProjectDayRepository(db: Queryable) {
  return {
    /** Adds up to `limit` changes to the sums, in one statement, so that readers see each change once. Returns the number. */
    addChanges: async (limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* projectDays.addChanges */
        with taken as (
          delete from project_day_changes where id in (
            select id from project_day_changes order by id limit ${limit} for update skip locked) returning *),
        added as (
          insert into project_days as k (organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
            waited_ms, longest_ms, left_ms)
          select organization_id, day, project_name, sum(runs), sum(failed), sum(cancelled), sum(previews), sum(failed_previews), sum(waits),
            sum(run_ms), sum(waited_ms), max(longest_ms), max(left_ms)
          from taken group by 1, 2, 3 order by 1, 2, 3
          on conflict (organization_id, day, project_name) do update set runs = k.runs + excluded.runs, failed = k.failed + excluded.failed,
            cancelled = k.cancelled + excluded.cancelled, previews = k.previews + excluded.previews,
            failed_previews = k.failed_previews + excluded.failed_previews, waits = k.waits + excluded.waits,
            run_ms = k.run_ms + excluded.run_ms, waited_ms = k.waited_ms + excluded.waited_ms,
            longest_ms = greatest(k.longest_ms, excluded.longest_ms), left_ms = greatest(k.left_ms, excluded.left_ms))
        select count(*)::int as count from taken`);
      return count;
    },

    /** Like `addChanges`, for deliveries. */
    addDeliveryChanges: async (limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* projectDays.addDeliveryChanges */
        with taken as (
          delete from project_day_delivery_changes where id in (
            select id from project_day_delivery_changes order by id limit ${limit} for update skip locked) returning *),
        added as (
          insert into project_day_deliveries as k (organization_id, day, project_name, kind, seconds, count)
          select organization_id, day, project_name, kind, seconds, sum(count) from taken group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
          on conflict (organization_id, day, project_name, kind, seconds) do update set count = k.count + excluded.count)
        select count(*)::int as count from taken`);
      return count;
    },

    /** Replaces the rows of organizations in which stacks were added or removed by their sum. Returns the number of rows. */
    addStackCounts: async (limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* projectDays.addStackCounts */
        with pending as materialized (select organization_id from stack_counts where not is_sum limit ${limit}),
        taken as (
          delete from stack_counts where id in (
            select id from stack_counts where organization_id in (select organization_id from pending) order by id for update skip locked)
          returning *),
        added as (
          insert into stack_counts (organization_id, stacks, state_bytes, journal_bytes, event_bytes, is_sum)
          select organization_id, sum(stacks), sum(state_bytes), sum(journal_bytes), sum(event_bytes), true from taken group by 1
          having (sum(stacks), sum(state_bytes), sum(journal_bytes), sum(event_bytes)) <> (0, 0, 0, 0))
        select count(*)::int as count from pending`);
      return count;
    },

    /**
     * Determines the longest run for up to `limit` days of projects whose longest run may have been removed. Returns the number of days.
     * A change that it does not see yet is added later.
     */
    findLongest: async (limit: number): Promise<number> => {
      const days = await db.any(sql.rows(DayRow)`
        /* projectDays.listLeft */
        select organization_id as "organizationId", day::text as day, project_name as project from project_days where left_ms > 0
        limit ${limit}`);
      if (days.length === 0) return 0;
      const keys = sql.fragment`unnest(${sql.array(
        days.map(({ organizationId }) => organizationId),
        'uuid',
      )}, ${sql.array(
        days.map(({ day }) => day),
        'date',
      )}, ${sql.array(
        days.map(({ project }) => project),
        'text',
      )}) as k (organization_id, day, project_name)`;
      const isListed = sql.fragment`(d.organization_id, d.day, d.project_name) = (k.organization_id, k.day, k.project_name)`;
      await db.transaction(async (tx) => {
        // The next statement sees all runs that the sums contain by then. Meanwhile, no other process adds any.
        await tx.query(sql.nothing`
          /* projectDays.lock */
          select 1 from project_days d join ${keys} on ${isListed} order by d.organization_id, d.day, d.project_name for update of d`);
        await tx.query(sql.nothing`
          /* projectDays.findLongest */
          update project_days d set left_ms = 0, longest_ms = case when d.left_ms < d.longest_ms then d.longest_ms else coalesce((
            select max(n.longest_ms) from stack_listings l cross join lateral (
              select s.longest_ms from stack_days s
              where s.organization_id = d.organization_id and s.day = d.day and s.stack_id = l.stack_id offset 0) n
            where l.organization_id = d.organization_id and l.tag_name = '' and l.project_name = d.project_name), 0) end
          from ${keys} where ${isListed} and d.left_ms > 0`);
      });
      return days.length;
    },

    /** Deletes up to `limit` sums older than `days`. Returns the number. */
    deleteOld: async (days: number, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* projectDays.deleteOld */
        with old as (
          delete from project_days d using (
            select organization_id, day, project_name from project_days
            where day < (statement_timestamp() at time zone 'UTC')::date - ${days}::int order by day limit ${limit}) o
          where d.organization_id = o.organization_id and d.day = o.day and d.project_name = o.project_name returning 1)
        select count(*)::int as count from old`);
      return count;
    },

    /** Like `deleteOld`, for deliveries. */
    deleteOldDeliveries: async (days: number, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* projectDays.deleteOldDeliveries */
        with old as (
          delete from project_day_deliveries d using (
            select organization_id, day, project_name, kind, seconds from project_day_deliveries
            where day < (statement_timestamp() at time zone 'UTC')::date - ${days}::int order by day limit ${limit}) o
          where (d.organization_id, d.day, d.project_name, d.kind, d.seconds)
            = (o.organization_id, o.day, o.project_name, o.kind, o.seconds) returning 1)
        select count(*)::int as count from old`);
      return count;
    },
  };
}
