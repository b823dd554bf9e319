-- Without a transaction

-- When each live stack was last changed, so that those of an organization can be listed with the newest change first: an update that
-- takes or releases it, a version, tags, a name. Not each checkpoint of an update that runs. A trigger keeps it current, so that the
-- previous release does too. Only who holds the stack's row writes to its row here. No foreign keys, as for stack_listings.
create table if not exists stack_changes (
  stack_id uuid primary key,
  organization_id uuid not null,
  project_name text not null,
  stack_name text not null,
  changed_at timestamptz not null
);

-- Next statement
-- With all columns that lists need, so that Postgres does not prefer to sort the stacks of an organization.
create index if not exists stack_changes_newest on stack_changes (organization_id, changed_at, stack_id)
  include (project_name, stack_name);

-- Next statement
create or replace function note_stack_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    delete from stack_changes where stack_id = old.id;
  elsif new.deleted_at is not null then
    delete from stack_changes where stack_id = new.id;
  else
    insert into stack_changes (stack_id, organization_id, project_name, stack_name, changed_at)
    select new.id, p.organization_id, p.name, new.name, clock_timestamp() from projects p where p.id = new.project_id
    on conflict (stack_id) do update set organization_id = excluded.organization_id, project_name = excluded.project_name,
      stack_name = excluded.stack_name, changed_at = excluded.changed_at;
  end if;
  return null;
end $$;

-- Next statement
create or replace trigger stacks_change_noted after insert or delete on stacks
  for each row execute function note_stack_change();

-- Next statement
create or replace trigger stacks_rechange_noted after update of project_id, name, tags, deleted_at, stack_version, active_update_id on stacks
  for each row when ((old.project_id, old.name, old.tags, old.deleted_at, old.stack_version, old.active_update_id)
    is distinct from (new.project_id, new.name, new.tags, new.deleted_at, new.stack_version, new.active_update_id))
  execute function note_stack_change();

-- Next statement
-- Existing stacks, in short transactions: a batch waits for those who are changing one of its stacks, and they for it.
do $$
declare
  place uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(id) into ids from (select id from stacks where id > place order by id limit 500 for share) batch;
    exit when ids is null;
    insert into stack_changes (stack_id, organization_id, project_name, stack_name, changed_at)
    select s.id, p.organization_id, p.name, s.name, s.updated_at from stacks s join projects p on p.id = s.project_id
    where s.id = any (ids) and s.deleted_at is null
    on conflict (stack_id) do nothing;
    place := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
analyze stack_changes;
