-- Up Migration

-- Ends an update that is locked together with its stack, releases the stack if the update held it, and publishes the version of the
-- update, if it has one. `keep_lease`: keeps the hash, so that the holder of the lease can be distinguished from others.
create function end_locked_update(of_update uuid, of_stack uuid, new_status text, reason text, keep_lease boolean, new_version integer)
returns void language plpgsql as $$
begin
  update stacks s set active_update_id = nullif(s.active_update_id, of_update),
    stack_version = greatest(s.stack_version, new_version),
    updated_at = case when new_version is null then s.updated_at else now() end
  where s.id = of_stack and (s.active_update_id = of_update or new_version is not null);
  update updates u set status = new_status, end_reason = reason, ended_at = clock_timestamp(),
    lease_hash = case when keep_lease then u.lease_hash end
  where u.id = of_update;
end $$;

-- Completes a running update in one round trip: locks its stack and then the update, looks at both after it has the locks, and ends
-- the update. Returns what the audit log says about it; no row, and nothing is changed, if there is more to decide: the lease is over or
-- another one, entries are in no checkpoint, secrets were read that are in no event yet, or a rule asks which outputs were removed.
create function complete_update(of_update uuid, of_epoch integer, new_status text)
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
    and not exists (select 1 from audit_secret_reads r where r.update_id = u.id)
    and not (new_status = 'succeeded' and u.kind in ('update', 'preview') and exists (
      select 1 from update_rules r
      where r.organization_id = o.id and r.kind = 'consumers' and (r.project is null or r.project = p.name)
        and (r.stack is null or r.stack = s.name) and (r.tag_name is null or s.tags::jsonb ->> r.tag_name = r.tag_value)));
  if not found then return; end if;
  perform end_locked_update(of_update, held_stack, new_status, null, true, stack_version);
  return next;
end $$;

-- The same as before, without functions that call functions: these run with each checkpoint, and a function in SQL is planned each time.
create or replace function note_head() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again);
  return null;
end $$;

create or replace function note_version() returns trigger language plpgsql as $$
begin
  insert into state_index_due (stack_id) values (new.stack_id)
  on conflict (stack_id) do update set is_noted_again = state_index_due.claim is not null, is_backlog = false
    where state_index_due.is_backlog or (state_index_due.claim is not null and not state_index_due.is_noted_again);
  return null;
end $$;

create or replace function tell_live_of_stack() returns trigger language plpgsql as $$
declare
  told_organization uuid;
begin
  select p.organization_id into told_organization from projects p where p.id = new.project_id;
  raise info 'holdfast_live' using detail = concat_ws(' ', 'stack.changed', coalesce(told_organization::text, '-'), new.id, '-');
  return null;
end $$;

create or replace function tell_live_of_update() returns trigger language plpgsql as $$
declare
  told_organization uuid := new.organization_id;
begin
  if told_organization is null then
    select p.organization_id into told_organization from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id;
  end if;
  raise info 'holdfast_live' using detail = concat_ws(' ',
    case new.status when 'not started' then 'update.created' when 'running' then 'update.started' else 'update.ended' end,
    coalesce(told_organization::text, '-'), new.stack_id, new.id);
  return null;
end $$;
