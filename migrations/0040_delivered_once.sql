-- Two workers that record two runs of one commit at once count its lead time once.

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
    update stack_days d set changed = d.changed + has_changed::integer,
      lead_seconds = d.lead_seconds || case when lead is not null and cardinality(d.lead_seconds) < 50 then array[lead] else '{}' end,
      restore_seconds = d.restore_seconds || case when restore is not null and cardinality(d.restore_seconds) < 50 then array[restore] else '{}' end
    where d.organization_id = new.organization_id and d.day = (new.ended_at at time zone 'UTC')::date and d.stack_id = new.stack_id;
  end if;
  return null;
end $$;
