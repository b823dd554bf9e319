-- Without a transaction

-- Where each live stack appears in lists: once under no tag (an empty name) and once under each of its tags, in the order in
-- which stacks are listed. So a page costs what it shows, whichever filter it has. A trigger keeps it current, so that the
-- previous release does too. No foreign keys: the trigger also runs when a stack is deleted. The indexes have all columns that
-- lists need, so that Postgres does not prefer to sort the stacks of an organization.
create table if not exists stack_listings (
  organization_id uuid not null,
  tag_name text not null,
  project_name text not null,
  stack_name text not null,
  tag_value text not null,
  stack_id uuid not null,
  primary key (organization_id, tag_name, project_name, stack_name) include (stack_id)
);

-- Next statement
create index if not exists stack_listings_value
  on stack_listings (organization_id, tag_name, tag_value, project_name, stack_name) include (stack_id)
  where tag_name <> '';

-- Next statement
-- Under which tags a stack is listed.
create or replace function listed_tags(tags text) returns table (tag_name text, tag_value text) language plpgsql immutable as $$
begin
  return query select '', '';
  begin
    return query select key, value from json_each_text(tags::json) where key <> '' and value is not null;
  exception when others then
    -- A stack whose tags cannot be read must still be writable.
    null;
  end;
end $$;

-- Next statement
create or replace function list_stack() returns trigger language plpgsql as $$
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

-- Next statement
create or replace trigger stacks_listed after insert or delete on stacks
  for each row execute function list_stack();

-- Next statement
create or replace trigger stacks_relisted after update of project_id, name, tags, deleted_at on stacks
  for each row when (
    (old.project_id, old.name, old.tags, old.deleted_at) is distinct from (new.project_id, new.name, new.tags, new.deleted_at))
  execute function list_stack();

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
    insert into stack_listings (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
    select p.organization_id, t.tag_name, p.name, s.name, t.tag_value, s.id
    from stacks s join projects p on p.id = s.project_id cross join lateral listed_tags(s.tags) t
    where s.id = any (ids) and s.deleted_at is null
    on conflict (organization_id, tag_name, project_name, stack_name) do nothing;
    place := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
analyze stack_listings;
