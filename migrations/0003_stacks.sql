-- Projects, stacks, and the lists that show them.

create table projects (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  created_at timestamptz not null default now(),
  constraint projects_name_key unique (organization_id, name)
);

create table stacks (
  id uuid primary key default gen_random_uuid(),
  project_id uuid not null references projects (id),
  name text not null,
  -- Text of a JSON object with string values, stored as sent, including key order.
  tags text not null default '{}',
  stack_version integer not null default 0,
  -- Head: the latest state, which a running update may have written.
  checkpoint_id uuid,
  -- Update that holds the stack's lock.
  active_update_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- A deleted stack is hidden at once. Its data is deleted later in batches, and its row last. The columns below are null for a stack
  -- that is not deleted.
  deleted_at timestamptz,
  -- The user who deleted it, as named in the audit log.
  deleted_by text,
  -- Until then, a deleted stack keeps its data and can be restored. Null: it cannot be restored, and its data is deleted.
  restorable_until timestamptz,
  -- Its organization while it can be restored, for lists of one.
  restorable_in uuid,
  -- Its newest state, which cannot be deleted while this refers to it; checkpoint_id is null then.
  deleted_checkpoint_id uuid
);
create index stacks_checkpoint on stacks (checkpoint_id) where checkpoint_id is not null;
create index stacks_active_update on stacks (active_update_id) where active_update_id is not null;
create unique index stacks_name_key on stacks (project_id, name) where deleted_at is null;
create index stacks_deleted on stacks (deleted_at) where deleted_at is not null;
-- Deleted stacks of an organization that can be restored, the last deleted first.
create index stacks_restorable on stacks (restorable_in, deleted_at desc, id desc) where restorable_until is not null;
-- From when on the data of a deleted stack may be deleted.
create index stacks_purge_due on stacks ((coalesce(restorable_until, '-infinity'::timestamptz)), deleted_at)
  where deleted_at is not null;
-- For the foreign key.
create index stacks_deleted_checkpoint on stacks (deleted_checkpoint_id) where deleted_checkpoint_id is not null;
-- Finds the previous stack of a name while it can be restored.
create index stacks_deleted_name on stacks (project_id, name, deleted_at) where restorable_until is not null;

-- Former names of renamed stacks. Secrets in old checkpoints are decrypted at the path stored in them.
create table former_stack_names (
  stack_id uuid not null references stacks (id) on delete cascade,
  organization_id uuid not null references organizations (id) on delete cascade,
  project_name text not null,
  stack_name text not null,
  primary key (organization_id, project_name, stack_name, stack_id)
);
-- For the foreign key, because the primary key does not start with the stack.
create index former_stack_names_stack on former_stack_names (stack_id);

-- Where each live stack appears in lists: once under no tag (an empty name) and once under each of its tags, in the order in
-- which stacks are listed. So the cost of a page is proportional to its size, for any filter. A trigger keeps it current. No foreign keys:
-- the trigger also runs when a stack is deleted. The indexes have all columns that lists need, so that Postgres does not prefer to
-- sort the stacks of an organization.
create table stack_listings (
  organization_id uuid not null,
  tag_name text not null,
  project_name text not null,
  stack_name text not null,
  tag_value text not null,
  stack_id uuid not null,
  primary key (organization_id, tag_name, project_name, stack_name) include (stack_id)
);
create index stack_listings_value
  on stack_listings (organization_id, tag_name, tag_value, project_name, stack_name) include (stack_id)
  where tag_name <> '';

-- When each live stack was last changed, so that the stacks of an organization can be listed with the newest change first: an update that
-- takes or releases it, a version, tags, a name. Not each checkpoint of an update that runs. A trigger keeps it current: only the
-- transaction that holds the stack's row writes to its row here. No foreign keys, as for stack_listings.
create table stack_changes (
  stack_id uuid primary key,
  organization_id uuid not null,
  project_name text not null,
  stack_name text not null,
  changed_at timestamptz not null
);
-- With all columns that lists need, so that Postgres does not prefer to sort the stacks of an organization.
create index stack_changes_newest on stack_changes (organization_id, changed_at, stack_id)
  include (project_name, stack_name);

-- The tags under which a stack is listed.
create function listed_tags(tags text) returns table (tag_name text, tag_value text) language plpgsql immutable as $$
begin
  return query select '', '';
  begin
    return query select key, value from json_each_text(tags::json) where key <> '' and value is not null;
  exception when others then
    -- A stack whose tags cannot be read must still be writable.
    null;
  end;
end $$;

create function list_stack() returns trigger language plpgsql as $$
declare
  old_organization uuid;
  old_project text;
  new_organization uuid;
  new_project text;
begin
  if tg_op <> 'DELETE' and new.deleted_at is null then
    select organization_id, name into new_organization, new_project from projects where id = new.project_id;
  end if;
  if tg_op <> 'INSERT' and old.deleted_at is null then
    select organization_id, name into old_organization, old_project from projects where id = old.project_id;
    delete from stack_listings l
    where l.organization_id = old_organization and l.project_name = old_project and l.stack_name = old.name
      and l.tag_name = any (array(select t.tag_name from listed_tags(old.tags) t)) and l.stack_id = old.id
      and case when new_organization is null then true else
        (new_organization, new_project, new.name) is distinct from (old_organization, old_project, old.name)
          or l.tag_name <> all (array(select t.tag_name from listed_tags(new.tags) t)) end;
  end if;
  if new_organization is not null then
    insert into stack_listings as l (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
    select new_organization, t.tag_name, new_project, new.name, t.tag_value, new.id from listed_tags(new.tags) t
    on conflict (organization_id, tag_name, project_name, stack_name)
      do update set tag_value = excluded.tag_value, stack_id = excluded.stack_id
      where l.tag_value <> excluded.tag_value or l.stack_id <> excluded.stack_id;
  end if;
  return null;
end $$;
create trigger stacks_listed after insert or delete on stacks
  for each row execute function list_stack();
create trigger stacks_relisted after update of project_id, name, tags, deleted_at on stacks
  for each row when (
    (old.project_id, old.name, old.tags, old.deleted_at) is distinct from (new.project_id, new.name, new.tags, new.deleted_at))
  execute function list_stack();

create function note_stack_change() returns trigger language plpgsql as $$
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
create trigger stacks_change_noted after insert or delete on stacks
  for each row execute function note_stack_change();
create trigger stacks_rechange_noted after update of project_id, name, tags, deleted_at, stack_version, active_update_id on stacks
  for each row when ((old.project_id, old.name, old.tags, old.deleted_at, old.stack_version, old.active_update_id)
    is distinct from (new.project_id, new.name, new.tags, new.deleted_at, new.stack_version, new.active_update_id))
  execute function note_stack_change();
