-- Up Migration

-- Which entries of its journal were missing when the update ended, as in '3-4, 7'. It stays when an operator has accepted that.
alter table updates add column missing_entries text;

-- Ids of entries that are missing before the last one of a journal with so many entries: the first 20 ranges, and how many more. Null if
-- none is. The CLI numbers its entries from 1 without leaving out any, but they may arrive in another order.
create function missing_journal_entries(of_update uuid, entries integer) returns text language plpgsql stable as $$
declare
  ranges text;
  more bigint;
begin
  if coalesce(entries, 0) = 0 or entries = (select max(sequence_id) from journal_entries where update_id = of_update) then return null; end if;
  select string_agg(case when low = high then low::text else low || '-' || high end, ', ' order by low) filter (where place <= 20),
    greatest(count(*) - 20, 0)
  into ranges, more
  from (
    select low, high, row_number() over (order by low) as place
    from (
      select coalesce(lag(sequence_id) over (order by sequence_id), 0) + 1 as low, sequence_id - 1 as high
      from journal_entries where update_id = of_update
    ) neighbours
    where low <= high
  ) gaps;
  return ranges || case when more > 0 then ' and ' || more || ' more' else '' end;
end $$;

-- What journals.fold_warning says of an update that ended with missing entries; null if none were.
create function describe_missing_entries(missing text) returns text language sql immutable
return 'journal entries ' || missing || ' are missing. They never arrived, or were lost after they had been acknowledged, as by a restore '
  'or a fail-over of the database. Run pulumi refresh and compare the result with your provider. An operator then runs holdfast admin accept';

-- The same as before, and leaves the decision to a transaction if entries are missing.
create or replace function complete_update(of_update uuid, of_epoch integer, new_status text)
returns table (organization text, project text, stack text, stack_id uuid, kind text, dry_run boolean, stack_version integer,
  entry_count integer, checkpoint_count integer)
language plpgsql as $$
#variable_conflict use_column
declare
  held_stack uuid;
begin
  select s.id into held_stack from stacks s
  where s.id = (select u.stack_id from updates u where u.id = of_update) and s.deleted_at is null for update;
  if held_stack is null then return; end if;
  perform lock_exclusive(of_update);
  perform 1 from updates u where u.id = of_update and u.stack_id = held_stack for update;
  -- A statement of its own: batches of entries and reads of secrets that it has waited for do not change the row that was locked.
  select o.name, p.name, s.name, s.id, u.kind, u.dry_run, u.stack_version, coalesce(j.entry_count, 0),
    u.checkpoint_sequence + u.full_committed
  into organization, project, stack, stack_id, kind, dry_run, stack_version, entry_count, checkpoint_count
  from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
    join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
  where u.id = of_update and s.id = held_stack and u.status = 'running' and u.epoch = of_epoch and u.end_reason is null
    and u.expires_at > clock_timestamp() and not coalesce(j.entry_count > j.folded_entries and j.fold_error is null, false)
    and missing_journal_entries(u.id, j.entry_count) is null
    and not exists (select 1 from audit_secret_reads r where r.update_id = u.id)
    and not (new_status = 'succeeded' and u.kind in ('update', 'preview') and exists (
      select 1 from update_rules r
      where r.organization_id = o.id and r.kind = 'consumers' and (r.project is null or r.project = p.name)
        and (r.stack is null or r.stack = s.name) and (r.tag_name is null or s.tags::jsonb ->> r.tag_name = r.tag_value)));
  if not found then return; end if;
  perform end_locked_update(of_update, held_stack, new_status, null, true, stack_version);
  return next;
end $$;
