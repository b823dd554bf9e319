-- Without a transaction

-- When the update of the journal ended; null while it runs. Running updates are many, and a sweep looks for the others.
alter table journals add column if not exists ended_at timestamptz;

-- Next statement
-- The organization of an update, by which active ones are counted. Null for updates that ended before this column existed.
alter table updates add column if not exists organization_id uuid;

-- Next statement
-- Triggers, so that the previous release keeps both columns as well. The row of the update is locked before that of its journal,
-- as everywhere.
create or replace function note_update_ended() returns trigger language plpgsql as $$
begin
  update journals set ended_at = coalesce(new.ended_at, clock_timestamp()) where update_id = new.id;
  return null;
end $$;

-- Next statement
create or replace trigger updates_ended after update of status on updates
  for each row when (old.status in ('not started', 'running') and new.status not in ('not started', 'running'))
  execute function note_update_ended();

-- Next statement
-- A stack does not leave its organization.
create or replace function set_update_organization() returns trigger language plpgsql as $$
begin
  new.organization_id := (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id);
  return new;
end $$;

-- Next statement
create or replace trigger updates_organization before insert on updates
  for each row execute function set_update_organization();

-- Next statement
-- Journals of updates that have ended, and active updates, in short transactions.
do $$
declare
  place uuid := '00000000-0000-0000-0000-000000000000';
  ids uuid[];
begin
  loop
    select array_agg(update_id) into ids from (
      select update_id from journals where update_id > place and ended_at is null order by update_id limit 500 for update
    ) batch;
    exit when ids is null;
    update journals j set ended_at = coalesce(u.ended_at, clock_timestamp()) from updates u
    where j.update_id = any (ids) and u.id = j.update_id and u.status not in ('not started', 'running');
    place := ids[array_length(ids, 1)];
    commit;
  end loop;
  place := '00000000-0000-0000-0000-000000000000';
  loop
    select array_agg(id) into ids from (
      select id from updates where id > place and status in ('not started', 'running') and organization_id is null
      order by id limit 100 for no key update
    ) batch;
    exit when ids is null;
    update updates u set organization_id = p.organization_id from stacks s join projects p on p.id = s.project_id
    where u.id = any (ids) and s.id = u.stack_id;
    place := ids[array_length(ids, 1)];
    commit;
  end loop;
end $$;

-- Next statement
-- Ended updates whose journal is to be compacted, in the order in which they are.
drop index concurrently if exists journals_to_compact;

-- Next statement
create index concurrently journals_to_compact on journals (next_fold_at nulls first, ended_at)
  where folded_at is null and ended_at is not null;

-- Next statement
-- Active updates of one organization.
drop index concurrently if exists updates_active_by_organization;

-- Next statement
create index concurrently updates_active_by_organization on updates (organization_id)
  where status in ('not started', 'running');

-- Next statement
-- The active update with a lease.
drop index concurrently if exists updates_active_by_lease;

-- Next statement
create index concurrently updates_active_by_lease on updates (lease_hash) where status in ('not started', 'running');
