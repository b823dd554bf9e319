-- Metrics of deliveries read sums by project, however many stacks there are.
-- Without a transaction

-- Whether project_day_deliveries has what this stack has delivered. Triggers then keep it current.
alter table stack_changes add column if not exists is_delivery_counted boolean not null default false;

-- Next statement
-- What the live stacks of a project have delivered on a day, from stack_days. Workers add the rows of project_day_delivery_changes. No foreign
-- keys, as for stack_days.
create table if not exists project_day_deliveries (
  organization_id uuid not null,
  day date not null,
  project_name text not null,
  -- 'changed' (runs that succeeded and changed resources), 'lead' or 'restore'.
  kind text not null,
  -- The rounded time; 0 for 'changed'.
  seconds integer not null,
  count integer not null,
  primary key (organization_id, day, project_name, kind, seconds)
);
create index if not exists project_day_deliveries_age on project_day_deliveries (day);

-- Next statement
-- What is to be added to project_day_deliveries. Transactions only append.
create table if not exists project_day_delivery_changes (
  id bigint generated always as identity primary key,
  organization_id uuid not null,
  day date not null,
  project_name text not null,
  kind text not null,
  seconds integer not null,
  count integer not null
);
create index if not exists project_day_delivery_changes_organization on project_day_delivery_changes (organization_id);

-- Next statement
-- A time that is kept with its count: there are few different ones, however many stacks there are.
create or replace function rounded_delivery(seconds integer) returns integer language sql immutable as $$
  select (least(seconds, 1000000000) + s.step / 2) / s.step * s.step
  from (select case when seconds < 300 then 1 when seconds < 1200 then 10 when seconds < 10800 then 60 when seconds < 172800 then 600
    when seconds < 8640000 then 3600 else 86400 end as step) s
$$;

-- Next statement
create or replace function deliveries_of_day(of_day stack_days) returns table (kind text, seconds integer, count integer)
language sql immutable rows 3 as $$
  select 'changed', 0, (of_day).changed where (of_day).changed <> 0
  union all
  select 'lead', rounded_delivery(t), count(*)::integer from unnest((of_day).lead_seconds) t group by 2
  union all
  select 'restore', rounded_delivery(t), count(*)::integer from unnest((of_day).restore_seconds) t group by 2
$$;

-- Next statement
create or replace function note_project_deliveries(of_organization uuid, of_project text, of_stack uuid, sign integer) returns void
language sql as $$
  insert into project_day_delivery_changes (organization_id, day, project_name, kind, seconds, count)
  select d.organization_id, d.day, of_project, k.kind, k.seconds, sign * k.count
  from days_of_stack(of_organization, of_stack) d cross join lateral deliveries_of_day(d) k
$$;

-- Next statement
-- A stack is created, restored, renamed or deleted. A new one has no days.
create or replace function move_project_deliveries() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then perform note_project_deliveries(old.organization_id, old.project_name, old.stack_id, -1); end if;
  if tg_op = 'UPDATE' or (tg_op = 'INSERT' and exists (select 1 from updates u where u.stack_id = new.stack_id)) then
    perform note_project_deliveries(new.organization_id, new.project_name, new.stack_id, 1);
  end if;
  return null;
end $$;
create or replace trigger stack_changes_deliveries_counted after insert on stack_changes
  for each row when (new.is_delivery_counted) execute function move_project_deliveries();
create or replace trigger stack_changes_deliveries_recounted after update of project_name on stack_changes
  for each row when (old.is_delivery_counted and new.is_delivery_counted and old.project_name <> new.project_name)
  execute function move_project_deliveries();
create or replace trigger stack_changes_deliveries_uncounted after delete on stack_changes
  for each row when (old.is_delivery_counted) execute function move_project_deliveries();

-- Next statement
-- The lock keeps the stack in its project. An update that ends takes it before its row of stack_days, as count_delivery does.
create or replace function note_delivery_of_project() returns trigger language plpgsql as $$
declare
  own stack_changes;
begin
  select * into own from stack_changes where stack_id = new.stack_id for share;
  if not found or not own.is_delivery_counted then return null; end if;
  insert into project_day_delivery_changes (organization_id, day, project_name, kind, seconds, count)
  select own.organization_id, c.day, own.project_name, c.kind, c.seconds, sum(c.count)
  from (
    select old.day as day, k.kind, k.seconds, -k.count as count from deliveries_of_day(old) k
    union all select new.day, k.kind, k.seconds, k.count from deliveries_of_day(new) k) c
  group by 2, 4, 5 having sum(c.count) <> 0;
  return null;
end $$;
create or replace trigger stack_days_deliveries_counted after insert on stack_days
  for each row when (new.changed <> 0 or new.lead_seconds <> '{}' or new.restore_seconds <> '{}')
  execute function note_delivery_of_project();
create or replace trigger stack_days_deliveries_recounted after update on stack_days
  for each row when (
    (old.day, old.changed, old.lead_seconds, old.restore_seconds) is distinct from (new.day, new.changed, new.lead_seconds, new.restore_seconds))
  execute function note_delivery_of_project();

-- Next statement
-- As in migration 40, with the lock on the stack's project.
create or replace function count_delivery() returns trigger language plpgsql as $$
declare
  own record;
  has_changed boolean := new.kind in ('update', 'destroy') and greatest(new.creates, new.updates, new.replaces, new.deletes) > 0;
  since timestamptz;
  lead integer;
  restore integer;
begin
  select u.number, u.created_at into own from updates u where u.id = new.update_id;
  if has_changed and new.kind = 'update' and new.commit_id is not null then
    -- Until the commit. The next statement sees what the last holder has recorded, and no other transaction waits for this lock.
    perform pg_advisory_xact_lock(hashtextextended(new.stack_id::text, 40));
    -- The first success of the stack with this commit. Workers record them in any order: of later ones, one that has changed resources was
    -- counted for the commit.
    if not exists (
      select 1 from update_statistics f
      where f.organization_id = new.organization_id and f.commit_id = new.commit_id and f.stack_id = new.stack_id and f.kind = 'update'
        and f.is_success and not f.is_preview and f.update_id <> new.update_id
        and (f.ended_at < new.ended_at or greatest(f.creates, f.updates, f.replaces, f.deletes) > 0)) then
      select f.created_at into since from update_statistics f
      where f.organization_id = new.organization_id and f.commit_id = new.commit_id order by f.created_at limit 1;
      lead := greatest(0, extract(epoch from new.ended_at - least(since, own.created_at)));
    end if;
  end if;
  -- The first failure since the last success.
  select f.ended_at into since from updates f
  where f.stack_id = new.stack_id and not f.dry_run and f.kind in ('update', 'refresh', 'destroy') and f.number < own.number
    and f.number > coalesce((
      select s.number from updates s
      where s.stack_id = new.stack_id and not s.dry_run and s.kind in ('update', 'refresh', 'destroy') and s.number < own.number
        and s.status = 'succeeded' order by s.number desc limit 1), 0)
    and f.status = 'failed' and not exists (select 1 from imported_versions i where i.update_id = f.id)
  order by f.number limit 1;
  if since is not null then restore := greatest(0, extract(epoch from new.ended_at - since)); end if;
  if has_changed or restore is not null then
    perform 1 from stack_changes c where c.stack_id = new.stack_id for share;
    update stack_days d set changed = d.changed + has_changed::integer,
      lead_seconds = d.lead_seconds || case when lead is not null and cardinality(d.lead_seconds) < 50 then array[lead] else '{}' end,
      restore_seconds = d.restore_seconds || case when restore is not null and cardinality(d.restore_seconds) < 50 then array[restore] else '{}' end
    where d.organization_id = new.organization_id and d.day = (new.ended_at at time zone 'UTC')::date and d.stack_id = new.stack_id;
  end if;
  return null;
end $$;

-- Next statement
alter table stack_changes alter column is_delivery_counted set default true;

-- Next statement
-- The lock keeps out the triggers: they count for a stack from then on.
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(stack_id) into ids from (
      select stack_id from stack_changes where stack_id > reached order by stack_id limit 100 for no key update) batch;
    exit when ids is null;
    insert into project_day_deliveries as p (organization_id, day, project_name, kind, seconds, count)
    select d.organization_id, d.day, c.project_name, k.kind, k.seconds, sum(k.count)
    from stack_changes c cross join lateral days_of_stack(c.organization_id, c.stack_id) d cross join lateral deliveries_of_day(d) k
    where c.stack_id = any (ids) and not c.is_delivery_counted group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (organization_id, day, project_name, kind, seconds) do update set count = p.count + excluded.count;
    update stack_changes set is_delivery_counted = true where stack_id = any (ids) and not is_delivery_counted;
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;
