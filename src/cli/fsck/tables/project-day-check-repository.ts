import { type SqlFragment, sql } from '../../../shared/platform/db/sql.ts';
import { oldestDay } from './stack-check-repository.ts';
import { idTypes, type TableCheck } from './table-check-repository.ts';

const sums = (longest: SqlFragment): SqlFragment => sql.fragment`
  d.day, sum(d.runs) as runs, sum(d.failed) as failed, sum(d.cancelled) as cancelled, sum(d.previews) as previews,
  sum(d.failed_previews) as failed_previews, sum(d.waits) as waits, sum(d.run_ms) as run_ms, sum(d.waited_ms) as waited_ms, ${longest}`;

const columns = sql.fragment`organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms,
  longest_ms, left_ms`;

/** The differences between the kept sums of projects and the sums of their stacks, including pending additions. As of one moment. */
const differences = (isMeant: SqlFragment): SqlFragment => sql.fragment`
  (
    select organization_id, day, project_name,
      coalesce(c.runs, 0) - coalesce(k.runs, 0) as runs, coalesce(c.failed, 0) - coalesce(k.failed, 0) as failed,
      coalesce(c.cancelled, 0) - coalesce(k.cancelled, 0) as cancelled, coalesce(c.previews, 0) - coalesce(k.previews, 0) as previews,
      coalesce(c.failed_previews, 0) - coalesce(k.failed_previews, 0) as failed_previews, coalesce(c.waits, 0) - coalesce(k.waits, 0) as waits,
      coalesce(c.run_ms, 0) - coalesce(k.run_ms, 0) as run_ms, coalesce(c.waited_ms, 0) - coalesce(k.waited_ms, 0) as waited_ms,
      coalesce(c.longest_ms, 0) as longest_ms,
      -- If one has left, a worker is yet to look for the longest of the others.
      case when k.longest_ms > coalesce(c.longest_ms, 0) and k.left_ms = 0 then k.longest_ms else 0 end as left_ms,
      coalesce(c.longest_ms, 0) > coalesce(k.longest_ms, 0) as is_longer
    from (
      select d.organization_id, d.project_name, ${sums(sql.fragment`max(d.longest_ms) as longest_ms`)}
      from (
        select s.project_name, n.* from stack_changes s join stack_days n on n.organization_id = s.organization_id and n.stack_id = s.stack_id
        where n.day <= (now() at time zone 'UTC')::date + 1) d
      where d.day >= ${oldestDay} and ${isMeant}
      group by 1, 2, 3
    ) c full join (
      select d.organization_id, d.project_name, ${sums(sql.fragment`max(d.longest_ms) as longest_ms, max(d.left_ms) as left_ms`)}
      from (select ${columns} from project_days union all select ${columns} from project_day_changes) d
      where d.day >= ${oldestDay} and ${isMeant}
      group by 1, 2, 3
    ) k using (organization_id, project_name, day)
  )`;

const isWrong = sql.fragment`f.is_longer or f.left_ms > 0
  or (f.runs, f.failed, f.cancelled, f.previews, f.failed_previews, f.waits, f.run_ms, f.waited_ms) <> (0, 0, 0, 0, 0, 0, 0, 0)`;

const deliveryColumns = sql.fragment`organization_id, day, project_name, kind, seconds, count`;

/** The differences for deliveries; only rows that differ. */
const deliveryDifferences = (isMeant: SqlFragment): SqlFragment => sql.fragment`
  (
    select organization_id, day, project_name, kind, seconds, coalesce(c.count, 0) - coalesce(k.count, 0) as count
    from (
      select d.organization_id, d.day, d.project_name, d.kind, d.seconds, sum(d.count) as count
      from (
        select s.organization_id, s.project_name, n.day, m.kind, m.seconds, m.count
        from stack_changes s join stack_days n on n.organization_id = s.organization_id and n.stack_id = s.stack_id
        cross join lateral deliveries_of_day(n) m
        where n.day <= (now() at time zone 'UTC')::date + 1) d
      where d.day >= ${oldestDay} and ${isMeant} group by 1, 2, 3, 4, 5
    ) c full join (
      select d.organization_id, d.day, d.project_name, d.kind, d.seconds, sum(d.count) as count
      from (select ${deliveryColumns} from project_day_deliveries union all select ${deliveryColumns} from project_day_delivery_changes) d
      where d.day >= ${oldestDay} and ${isMeant} group by 1, 2, 3, 4, 5
    ) k using (organization_id, day, project_name, kind, seconds)
    where coalesce(c.count, 0) <> coalesce(k.count, 0)
  )`;

const summed = sql.fragment`stacks, state_bytes, journal_bytes, event_bytes`;
/** The differences between the sums of the organization `o` and the sums of its stacks. */
const missing = sql.fragment`
  select coalesce(sum(stacks), 0) as stacks, coalesce(sum(state_bytes), 0) as state_bytes, coalesce(sum(journal_bytes), 0) as journal_bytes,
    coalesce(sum(event_bytes), 0) as event_bytes
  from (
    select count(*) as stacks, 0 as state_bytes, 0 as journal_bytes, 0 as event_bytes from stack_changes where organization_id = o.id
    union all select 0, state_bytes, journal_bytes, event_bytes from stack_storage where organization_id = o.id
    union all select -stacks, -state_bytes, -journal_bytes, -event_bytes from stack_counts where organization_id = o.id) n`;

export const projectDayChecks: readonly TableCheck[] = [
  {
    name: 'projects with their sums',
    // Only wrong rows, and so a single page: reading the stacks of one project means reading those of its organization.
    from: sql.fragment`(
      select f.organization_id, f.project_name from ${differences(sql.fragment`true`)} f where ${isWrong}
      union select organization_id, project_name from ${deliveryDifferences(sql.fragment`true`)} f) r
      join organizations o on o.id = r.organization_id`,
    id: sql.fragment`(r.organization_id || '/' || r.project_name)`,
    idType: idTypes.text,
    object: sql.fragment`o.name || '/' || r.project_name`,
    problems: [
      {
        kind: 'project-counter',
        when: sql.fragment`true`,
        // A worker adds the difference, as it adds the sums that ending updates note meanwhile.
        repair: (id) => {
          const [organizationId = '', project = ''] = id.split('/');
          const isMeant = sql.fragment`d.organization_id = ${organizationId}::uuid and d.project_name = ${project}`;
          return [
            sql.fragment`insert into project_day_changes (${columns})
              select ${columns} from ${differences(isMeant)} f where ${isWrong}`,
            sql.fragment`insert into project_day_delivery_changes (${deliveryColumns})
              select ${deliveryColumns} from ${deliveryDifferences(isMeant)} f`,
          ];
        },
      },
    ],
  },
  {
    name: 'organizations with their sums',
    from: sql.fragment`organizations o`,
    id: sql.fragment`o.id`,
    idType: idTypes.uuid,
    object: sql.fragment`o.name`,
    problems: [
      {
        kind: 'stack-counter',
        when: sql.fragment`(0, 0, 0, 0) <> (${missing})`,
        repair: (id) => [
          sql.fragment`insert into stack_counts (organization_id, ${summed})
            select o.id, m.* from organizations o cross join lateral (${missing}) m where o.id = ${id}::uuid`,
        ],
      },
    ],
  },
];
