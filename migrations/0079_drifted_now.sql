-- Stacks that have drifted are found without those that once had.
-- Without a transaction

-- Whether the last run that compared the stack found drift that no update has repaired since. Triggers keep it current. It may be true a moment too
-- long, if a run and a repair end at once, so readers check what they find.
alter table stack_changes add column if not exists is_drifted boolean not null default false;

-- Next statement
create or replace function stack_is_drifted(of_stack uuid) returns boolean language sql stable as $$
  select coalesce((
    select r.is_detected and not exists (
      select 1 from updates u
      where u.stack_id = r.stack_id and u.number >= r.number and u.kind in ('update', 'destroy') and not u.dry_run and u.status = 'succeeded')
    from drift_runs r where r.stack_id = of_stack and r.state = 'done' order by r.number desc limit 1), false)
$$;

-- Next statement
-- The lock first, then the look: neither of a run and a repair that end at once overlooks the other.
create or replace function note_drift_found() returns trigger language plpgsql as $$
begin
  perform 1 from stack_changes where stack_id = new.stack_id for no key update;
  update stack_changes set is_drifted = not is_drifted
  where stack_id = new.stack_id and is_drifted <> stack_is_drifted(new.stack_id);
  return null;
end $$;

-- Next statement
create or replace trigger drift_runs_found after insert or update of state, is_detected on drift_runs
  for each row when (new.state = 'done') execute function note_drift_found();

-- Next statement
create or replace function note_drift_repaired() returns trigger language plpgsql as $$
begin
  perform 1 from stack_changes where stack_id = new.stack_id and is_drifted for no key update;
  if found then
    update stack_changes set is_drifted = false
    where stack_id = new.stack_id and is_drifted and not stack_is_drifted(new.stack_id);
  end if;
  return null;
end $$;

-- Next statement
create or replace trigger updates_drift_repaired after update of status on updates
  for each row when (new.status = 'succeeded' and new.kind in ('update', 'destroy') and not new.dry_run)
  execute function note_drift_repaired();

-- Next statement
create or replace trigger updates_drift_repaired_inserted after insert on updates
  for each row when (new.status = 'succeeded' and new.kind in ('update', 'destroy') and not new.dry_run)
  execute function note_drift_repaired();

-- Next statement
-- A deleted stack that is restored.
create or replace trigger stack_changes_drift after insert on stack_changes
  for each row execute function note_drift_found();

-- Next statement
drop index concurrently if exists stack_changes_drifted;

-- Next statement
create index concurrently stack_changes_drifted on stack_changes (organization_id, changed_at, stack_id) where is_drifted;

-- Next statement
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(stack_id) into ids from (
      select stack_id from stack_changes where stack_id > reached order by stack_id limit 500 for no key update) batch;
    exit when ids is null;
    update stack_changes set is_drifted = not is_drifted
    where stack_id = any (ids) and is_drifted <> stack_is_drifted(stack_id);
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;
