import { type SqlFragment, sql } from '../../../shared/platform/db/sql.ts';
import { isPreview } from '../../../shared/updates/preview-fragments.ts';
import { active, idTypes, lockStack, type TableCheck } from './table-check-repository.ts';

const countedDays = 98;

/** The first day of compared counters: older counters may be deleted at any moment. */
export const oldestDay = sql.fragment`((now() at time zone 'UTC')::date - ${countedDays}::integer)`;

/** The daily counters of a stack computed from its updates, next to the kept counters. Previews may be deleted, updates are not. */
const days = (stackId: SqlFragment, organizationId: SqlFragment): SqlFragment => sql.fragment`
  (
    select (u.ended_at at time zone 'UTC')::date as day, count(*) filter (where not k.preview)::integer as runs,
      count(*) filter (where not k.preview and u.status = 'failed')::integer as failed,
      count(*) filter (where not k.preview and u.status = 'cancelled')::integer as cancelled,
      count(*) filter (where k.preview)::integer as previews,
      count(*) filter (where k.preview and u.status = 'failed')::integer as failed_previews,
      count(u.waited_ms) filter (where not k.preview)::integer as waits,
      coalesce(sum(k.lasted) filter (where not k.preview), 0)::bigint as run_ms,
      coalesce(sum(u.waited_ms) filter (where not k.preview), 0)::bigint as waited_ms,
      coalesce(max(k.lasted) filter (where not k.preview), 0)::bigint as longest_ms,
      (array_agg(u.id order by k.lasted desc, u.number) filter (where not k.preview))[1] as longest_id,
      count(*) filter (where not k.preview and u.status = 'succeeded' and u.kind in ('update', 'destroy')
        and greatest(f.creates, f.updates, f.replaces, f.deletes) > 0)::integer as changed
    from updates u left join update_statistics f on f.update_id = u.id and f.organization_id is not null cross join lateral (
      select ${isPreview} as preview,
        greatest(0, floor(1000 * extract(epoch from u.ended_at - u.started_at)))::bigint as lasted) k
    where u.stack_id = ${stackId} and u.status not in ${active} and u.started_at is not null and u.ended_at >= ${oldestDay}
      and u.kind not in ('import', 'rename') and not exists (select 1 from imported_versions i where i.update_id = u.id)
      and not exists (select 1 from imported_previews i where i.update_id = u.id)
    group by 1
  ) c full join (
    select * from stack_days k where k.stack_id = ${stackId} and k.organization_id = ${organizationId} and k.day >= ${oldestDay}
  ) d on d.day = c.day`;

const isMiscounted = sql.fragment`
  (coalesce(c.runs, 0), coalesce(c.failed, 0), coalesce(c.cancelled, 0), coalesce(c.waits, 0), coalesce(c.run_ms, 0),
    coalesce(c.waited_ms, 0), coalesce(c.longest_ms, 0), coalesce(c.changed, 0))
  is distinct from (d.runs, d.failed, d.cancelled, d.waits, d.run_ms, d.waited_ms, d.longest_ms, d.changed)
  or coalesce(c.previews, 0) > d.previews or coalesce(c.failed_previews, 0) > d.failed_previews`;

/** Also the rows of other tables that are computed from stacks or refer to them. */
export const stackChecks: readonly TableCheck[] = [
  {
    name: 'stacks with their counters and holds',
    from: sql.fragment`stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id`,
    id: sql.fragment`s.id`,
    idType: idTypes.uuid,
    object: sql.fragment`o.name || '/' || p.name || '/' || s.name`,
    problems: [
      {
        kind: 'deleted-stack',
        when: sql.fragment`case when s.deleted_at is null
          then num_nonnulls(s.restorable_until, s.restorable_in, s.deleted_by, s.deleted_checkpoint_id) > 0
          else num_nonnulls(s.checkpoint_id, s.active_update_id) > 0 end`,
      },
      {
        kind: 'hold',
        when: sql.fragment`s.held_at is not null and s.deleted_at is not null and s.restorable_until is null`,
        repair: (id) => [
          sql.fragment`update stacks s set held_at = null, held_by = null, hold_reason = null
            where s.id = ${id}::uuid and s.deleted_at is not null and s.restorable_until is null
              and not exists (select 1 from updates u where u.stack_id = s.id)
              and not exists (select 1 from checkpoints c where c.stack_id = s.id)
              and not exists (select 1 from update_approvals a where a.stack_id = s.id)
              and not exists (select 1 from encryption_keys k where k.stack_id = s.id)`,
        ],
      },
      {
        kind: 'former-name',
        when: sql.fragment`exists (
          select 1 from former_stack_names f where f.stack_id = s.id and f.organization_id <> p.organization_id)`,
        repair: (id) => [
          lockStack(id),
          sql.fragment`
            with wrong as (
              delete from former_stack_names f using stacks s join projects p on p.id = s.project_id
              where s.id = ${id}::uuid and f.stack_id = s.id and f.organization_id <> p.organization_id
              returning f.stack_id, p.organization_id, f.project_name, f.stack_name)
            insert into former_stack_names (stack_id, organization_id, project_name, stack_name)
            select distinct stack_id, organization_id, project_name, stack_name from wrong on conflict do nothing`,
        ],
      },
      {
        kind: 'day-counter',
        when: sql.fragment`exists (
          select 1 from ${days(sql.fragment`s.id`, sql.fragment`p.organization_id`)} where d.day is null or ${isMiscounted})`,
        repair: (id) => [
          lockStack(id),
          sql.fragment`
            insert into stack_days as k (organization_id, day, stack_id, runs, failed, cancelled, previews, failed_previews, waits, run_ms,
              waited_ms, longest_ms, longest_id, changed)
            select t.organization_id, f.* from (
              select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = ${id}::uuid) t
            cross join lateral (
              select coalesce(c.day, d.day) as day, ${id}::uuid as stack_id, coalesce(c.runs, 0), coalesce(c.failed, 0), coalesce(c.cancelled, 0),
                greatest(c.previews, d.previews), greatest(c.failed_previews, d.failed_previews), coalesce(c.waits, 0),
                coalesce(c.run_ms, 0), coalesce(c.waited_ms, 0), coalesce(c.longest_ms, 0), c.longest_id,
                -- The difference: a worker may count another one meanwhile.
                coalesce(c.changed, 0) - coalesce(d.changed, 0)
              from ${days(sql.fragment`${id}::uuid`, sql.fragment`t.organization_id`)} where d.day is null or ${isMiscounted}) f
            on conflict (organization_id, day, stack_id) do update set runs = excluded.runs, failed = excluded.failed,
              cancelled = excluded.cancelled, previews = greatest(k.previews, excluded.previews),
              failed_previews = greatest(k.failed_previews, excluded.failed_previews), waits = excluded.waits,
              run_ms = excluded.run_ms, waited_ms = excluded.waited_ms, longest_ms = excluded.longest_ms,
              longest_id = excluded.longest_id, changed = k.changed + excluded.changed`,
        ],
      },
    ],
  },
  {
    name: 'stacks with retention',
    from: sql.fragment`stack_retention r`,
    id: sql.fragment`r.stack_id`,
    idType: idTypes.uuid,
    object: sql.fragment`'stack ' || r.stack_id`,
    problems: [
      {
        kind: 'retention-progress',
        when: sql.fragment`r.events_until > (
          select last_value from pg_sequences where schemaname = 'public' and sequencename = 'updates_number_seq')`,
        repair: (id) => [
          sql.fragment`update stack_retention set events_until = 0, swept_at = '-infinity' where stack_id = ${id}::uuid`,
        ],
      },
    ],
  },
];
