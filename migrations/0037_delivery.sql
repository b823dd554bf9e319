-- What is known of deliveries: runs that changed resources, lead times, and times to restore.
-- Without a transaction

-- Null: recorded before this migration, or copied by `holdfast import`. Deliveries do not count these runs.
alter table update_statistics add column if not exists organization_id uuid,
  -- Of the update.
  add column if not exists created_at timestamptz;

-- Next statement
alter table stack_days
  -- Runs that succeeded and changed resources.
  add column if not exists changed integer not null default 0,
  -- Of the first 50 runs of the day that have one.
  add column if not exists lead_seconds integer[] not null default '{}',
  add column if not exists restore_seconds integer[] not null default '{}';

-- Next statement
drop index concurrently if exists update_statistics_commit;

-- Next statement
-- The first run of a commit.
create index concurrently update_statistics_commit on update_statistics (organization_id, commit_id, created_at)
  where organization_id is not null and commit_id is not null;

-- Next statement
drop index concurrently if exists update_statistics_delivered;

-- Next statement
-- Whether a stack has had a commit.
create index concurrently update_statistics_delivered on update_statistics (organization_id, commit_id, stack_id)
  where organization_id is not null and commit_id is not null and kind = 'update' and is_success and not is_preview;

-- Next statement
-- Counts a successful run, when a worker records its statistics. It may hold a row for which the end of another update then waits: for one
-- short statement.
create or replace function count_delivery() returns trigger language plpgsql as $$
declare
  own record;
  has_changed boolean := new.kind in ('update', 'destroy') and greatest(new.creates, new.updates, new.replaces, new.deletes) > 0;
  since timestamptz;
  lead integer;
  restore integer;
begin
  select u.number, u.created_at into own from updates u where u.id = new.update_id;
  -- The first success of the stack with this commit. Workers record them in any order: of later ones, one that has changed resources was
  -- counted for the commit.
  if has_changed and new.kind = 'update' and new.commit_id is not null and not exists (
    select 1 from update_statistics f
    where f.organization_id = new.organization_id and f.commit_id = new.commit_id and f.stack_id = new.stack_id and f.kind = 'update'
      and f.is_success and not f.is_preview and f.update_id <> new.update_id
      and (f.ended_at < new.ended_at or greatest(f.creates, f.updates, f.replaces, f.deletes) > 0)) then
    select f.created_at into since from update_statistics f
    where f.organization_id = new.organization_id and f.commit_id = new.commit_id order by f.created_at limit 1;
    lead := greatest(0, extract(epoch from new.ended_at - least(since, own.created_at)));
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
    update stack_days d set changed = d.changed + has_changed::integer,
      lead_seconds = d.lead_seconds || case when lead is not null and cardinality(d.lead_seconds) < 50 then array[lead] else '{}' end,
      restore_seconds = d.restore_seconds || case when restore is not null and cardinality(d.restore_seconds) < 50 then array[restore] else '{}' end
    where d.organization_id = new.organization_id and d.day = (new.ended_at at time zone 'UTC')::date and d.stack_id = new.stack_id;
  end if;
  return null;
end $$;

-- Next statement
create or replace trigger update_statistics_delivery after insert on update_statistics
  for each row when (new.organization_id is not null and new.is_success and not new.is_preview)
  execute function count_delivery();
