-- Lists of stacks that failed, were interrupted or have drifted read these alone, however many stacks the organization has.
-- Without a transaction

-- Null unless the last update of the stack, other than a preview, has failed or was cancelled: that status. Triggers keep it current; the
-- transaction that ends an update holds the stack's row.
alter table stack_changes add column if not exists trouble text;

-- Next statement
create or replace function stack_trouble(of_stack uuid) returns text language sql stable as $$
  select case when u.status in ('failed', 'cancelled') then u.status end from updates u
  where u.stack_id = of_stack and not u.dry_run and u.kind <> 'preview' order by u.number desc limit 1
$$;

-- Next statement
-- As in migration 3, with the trouble: a new update ends it.
create or replace function note_stack_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    delete from stack_changes where stack_id = old.id;
  elsif new.deleted_at is not null then
    delete from stack_changes where stack_id = new.id;
  else
    insert into stack_changes (stack_id, organization_id, project_name, stack_name, changed_at, trouble)
    select new.id, p.organization_id, p.name, new.name, clock_timestamp(), stack_trouble(new.id)
    from projects p where p.id = new.project_id
    on conflict (stack_id) do update set organization_id = excluded.organization_id, project_name = excluded.project_name,
      stack_name = excluded.stack_name, changed_at = excluded.changed_at, trouble = excluded.trouble;
  end if;
  return null;
end $$;

-- Next statement
-- An update releases its stack before its status changes. One that `holdfast import` copies may come when its stack does not change.
create or replace function note_stack_trouble() returns trigger language plpgsql as $$
declare
  found_trouble text := stack_trouble(new.stack_id);
begin
  update stack_changes set trouble = found_trouble where stack_id = new.stack_id and trouble is distinct from found_trouble;
  return null;
end $$;

-- Next statement
create or replace trigger updates_trouble after update of status on updates
  for each row when (new.status in ('failed', 'cancelled') and not new.dry_run and new.kind <> 'preview')
  execute function note_stack_trouble();

-- Next statement
create or replace trigger updates_trouble_inserted after insert on updates
  for each row when (new.status not in ('not started', 'running') and not new.dry_run and new.kind <> 'preview')
  execute function note_stack_trouble();

-- Next statement
-- Of the stack, which does not leave it.
alter table drift_runs add column if not exists organization_id uuid;

-- Next statement
-- As in migration 9, with the organization.
create or replace function note_drift_run() returns trigger language plpgsql as $$
begin
  insert into drift_runs (update_id, stack_id, organization_id, number, state)
  values (new.id, new.stack_id, coalesce(new.organization_id,
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id)),
    new.number, case new.status when 'succeeded' then 'waiting' else 'failed' end)
  on conflict (update_id) do nothing;
  return null;
end $$;

-- Next statement
-- The lock on the stacks keeps out the triggers, whose newer values would be overwritten.
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(id) into ids from (select id from stacks where id > reached order by id limit 500 for share) batch;
    exit when ids is null;
    update stack_changes set trouble = stack_trouble(stack_id)
    where stack_id = any (ids) and trouble is distinct from stack_trouble(stack_id);
    update drift_runs r set organization_id = p.organization_id from stacks s join projects p on p.id = s.project_id
    where s.id = any (ids) and r.stack_id = s.id and r.organization_id is null;
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
drop index concurrently if exists stack_changes_troubled;

-- Next statement
create index concurrently stack_changes_troubled on stack_changes (organization_id, trouble, changed_at, stack_id)
  include (project_name, stack_name) where trouble is not null;

-- Next statement
-- The stacks of an organization in which drift was ever found: one look into the index for each, however often it was found.
create or replace function drifted_stacks(of_organization uuid) returns setof uuid language sql stable rows 10 as $$
  with recursive found as (
    (select d.stack_id from drift_runs d where d.organization_id = of_organization and d.is_detected order by d.stack_id limit 1)
    union all
    select (
      select d.stack_id from drift_runs d
      where d.organization_id = of_organization and d.is_detected and d.stack_id > f.stack_id order by d.stack_id limit 1)
    from found f where f.stack_id is not null
  )
  select stack_id from found where stack_id is not null
$$;

-- Next statement
drop index concurrently if exists drift_runs_found;

-- Next statement
create index concurrently drift_runs_found on drift_runs (organization_id, stack_id) where is_detected;

-- Next statement
-- Stacks with versions from before their index, which workers look for all the time.
drop index concurrently if exists state_indexes_fillable;

-- Next statement
create index concurrently state_indexes_fillable on state_indexes (stack_id) where known_from > 0;
