-- A client may number its checkpoints from 0: before the first, checkpoint_sequence is -1.
alter table updates alter column checkpoint_sequence set default -1;
update updates set checkpoint_sequence = -1 where checkpoint_sequence = 0 and status in ('not started', 'running');

-- How many checkpoints an update has written. Clients number theirs without gaps, from 1 as the CLI does, or from 0, which counts one less.
create function count_checkpoints(highest_number integer, full_committed integer) returns integer immutable language sql as $$
  select least(greatest(highest_number, case when highest_number < 0 then 0 else 1 end)::bigint + full_committed, 2147483647)::integer
$$;

create or replace function complete_update(of_update uuid, of_epoch integer, new_status text, seen_losses integer, seen_position bigint,
  knows_outputs boolean)
returns table (outcome text, organization text, project text, stack text, stack_id uuid, kind text, dry_run boolean, stack_version integer,
  entry_count integer, checkpoint_count integer, missing_entries text)
rows 1 language plpgsql as $$
#variable_conflict use_column
declare
  held_stack uuid;
begin
  -- No update ends with its client's status in a database that may lack acknowledged writes.
  if database_change(seen_losses, seen_position) not in ('none', 'unnoted') then
    outcome := 'other-database';
    return next;
    return;
  end if;
  select s.id into held_stack from stacks s
  where s.id = (select u.stack_id from updates u where u.id = of_update) and s.deleted_at is null for update;
  if held_stack is not null then
    perform lock_exclusive(of_update);
    perform 1 from updates u where u.id = of_update and u.stack_id = held_stack for update;
  end if;
  -- A statement of its own: batches of entries and reads of secrets that it waited for do not change the locked row.
  select o.name, p.name, s.name, s.id, u.kind, u.dry_run, u.stack_version, coalesce(j.entry_count, 0),
    count_checkpoints(u.checkpoint_sequence, u.full_committed), m.missing,
    case
      when u.epoch <> of_epoch then 'lease-lost'
      when u.status = new_status then 'repeated'
      when u.status <> 'running' or u.end_reason is not null or u.expires_at <= clock_timestamp() then 'lease-lost'
      when j.entry_count > j.compacted_entries and j.compaction_error is null then 'pending-entries'
      when new_status = 'succeeded' and m.missing is not null then 'gap'
      when not knows_outputs and new_status = 'succeeded' and u.kind in ('update', 'preview') and exists (
        select 1 from update_rules r
        where r.organization_id = o.id and r.kind = 'consumers' and (r.project is null or r.project = p.name)
          and (r.stack is null or r.stack = s.name) and (r.tag_name is null or s.tags::jsonb ->> r.tag_name = r.tag_value)) then 'watched'
      else 'ended'
    end
  into organization, project, stack, stack_id, kind, dry_run, stack_version, entry_count, checkpoint_count, missing_entries, outcome
  from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
    join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
    cross join lateral (select missing_journal_entries(u.id, j.entry_count) as missing offset 0) m
  where u.id = of_update and s.id = held_stack;
  if outcome = 'ended' then
    perform end_locked_update(of_update, held_stack, new_status, null, true, stack_version, missing_entries);
  end if;
  outcome := coalesce(outcome, 'lease-lost');
  return next;
end $$;
