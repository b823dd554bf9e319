-- The graph of references, lists of drift and the sweep of empty projects read what they show, however many stacks there are.
-- Without a transaction

-- The organization of a stack whose newest state refers to other stacks; null: it has no reference. A trigger keeps it current, in the
-- transaction that writes the index, which commits never wait for.
alter table state_indexes add column if not exists referring_in uuid;

-- Next statement
create or replace function note_references() returns trigger language plpgsql as $$
declare
  of_stack uuid := coalesce(new.stack_id, old.stack_id);
  found_in uuid := (select p.organization_id from stacks s join projects p on p.id = s.project_id
    where s.id = of_stack and exists (select 1 from stack_resources r where r.stack_id = of_stack and r.reads is not null));
begin
  update state_indexes set referring_in = found_in where stack_id = of_stack and referring_in is distinct from found_in;
  return null;
end $$;
create or replace trigger stack_resources_refer after insert or update on stack_resources
  for each row when (new.reads is not null) execute function note_references();
create or replace trigger stack_resources_referred after delete or update on stack_resources
  for each row when (old.reads is not null) execute function note_references();

-- Next statement
-- The lock keeps out workers, whose newer values would be overwritten.
do $$
declare
  reached uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(stack_id) into ids from (
      select stack_id from state_indexes where stack_id > reached order by stack_id limit 500 for no key update) batch;
    exit when ids is null;
    update state_indexes i set referring_in = p.organization_id from stacks s join projects p on p.id = s.project_id
    where i.stack_id = any (ids) and s.id = i.stack_id and i.referring_in is distinct from p.organization_id
      and exists (select 1 from stack_resources r where r.stack_id = i.stack_id and r.reads is not null);
    reached := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
drop index concurrently if exists state_indexes_referring;

-- Next statement
create index concurrently state_indexes_referring on state_indexes (referring_in, stack_id) where referring_in is not null;

-- Next statement
-- Runs that have found no drift: one look into the index for each stack, however long its drift has lasted.
drop index concurrently if exists drift_runs_clean;

-- Next statement
create index concurrently drift_runs_clean on drift_runs (stack_id, number) where state = 'done' and not is_detected;

-- Next statement
-- Updates that have brought a stack to what its program says.
drop index concurrently if exists updates_applied;

-- Next statement
create index concurrently updates_applied on updates (stack_id, number)
  where kind in ('update', 'destroy') and not dry_run and status = 'succeeded';

-- Next statement
-- Whether the project is new, or a stack has left it since it was last looked at.
alter table projects add column if not exists may_be_empty boolean not null default true;

-- Next statement
-- It locks the project even if nothing changes: otherwise, the sweep may take the mark away before the last stack is gone.
create or replace function note_left_project() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and new.project_id = old.project_id then return null; end if;
  update projects set may_be_empty = true where id = old.project_id;
  return null;
end $$;
create or replace trigger stacks_left_project after delete or update of project_id on stacks
  for each row execute function note_left_project();

-- Next statement
drop index concurrently if exists projects_maybe_empty;

-- Next statement
create index concurrently projects_maybe_empty on projects (id) where may_be_empty;
