-- Up Migration

-- Creates an update in one round trip: holds the caller's access, locks the stack, looks at it after it has the lock, inserts the update
-- and lets it hold the stack if it is exclusive. Returns its id; no row, and nothing is changed, if there is more to decide: the token is
-- not valid or may not do this, another update holds the stack, calls wait for it (which counts for those that `may_wait`), a rule
-- applies to it, or entries of a journal could not be replayed.
create function create_update(of_stack uuid, of_token uuid, of_organization text, new_kind text, is_dry_run boolean, is_exclusive boolean,
  may_wait boolean, new_message text, new_environment text, new_config text, new_program text, new_requested_by uuid, new_ci_run text,
  wait_seconds float8)
returns uuid language plpgsql as $$
declare
  held record;
  version integer;
  created uuid;
begin
  select h.role, h."isPlain" as is_plain, h.facts into held from hold_access(of_token, of_organization) h;
  if not found then return null; end if;
  perform 1 from stacks s where s.id = of_stack and s.deleted_at is null for update;
  if not found then return null; end if;
  -- A statement of its own: what was committed while it waited for the lock is not in the snapshot of the one that locks.
  select s.stack_version into version
  from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
  where s.id = of_stack and o.name = of_organization
    and not (is_exclusive and s.active_update_id is not null)
    and not (may_wait and exists (select 1 from lock_waiters w where w.stack_id = of_stack))
    and not exists (
      select 1 from update_rules r
      where r.organization_id = o.id and (r.project is null or r.project = p.name) and (r.stack is null or r.stack = s.name)
        and (r.tag_name is null or s.tags::jsonb ->> r.tag_name = r.tag_value))
    and (is_dry_run or not exists (
      select 1 from journals j where j.stack_id = of_stack and j.accepted_at is null and (j.fold_error is not null or j.fold_warning is not null)))
    and case when held.is_plain then role_permissions(held.role) else effective_permissions(held.facts, o.id, p.name, s.name) end
      & (case when is_dry_run then 2 else 4 end) <> 0;
  if not found then return null; end if;
  insert into updates (stack_id, kind, dry_run, exclusive, status, base_stack_version, message, environment, config, program,
    requested_by, token_id, ci_run, expires_at)
  values (of_stack, new_kind, is_dry_run, is_exclusive, 'not started', version, new_message, new_environment, new_config, new_program,
    new_requested_by, of_token, new_ci_run, clock_timestamp() + make_interval(secs => wait_seconds))
  returning id into created;
  if is_exclusive then update stacks set active_update_id = created where id = of_stack; end if;
  return created;
end $$;

-- Starts an update in one round trip: holds the caller's access, locks the stack of this name and then the update, looks at both after it
-- has the locks, and gives the update its lease and, if `with_journal`, its journal. No row, and nothing is changed, if there is more to
-- decide: the token is not valid or may not do this, the update is another stack's or waits for nothing any more, another update holds
-- the stack, tags change, entries of a journal are in no checkpoint, or a guard asks for a journal.
create function start_update(of_update uuid, of_token uuid, of_organization text, of_project text, of_name text, new_tags text,
  new_lease bytea, lease_seconds float8, max_seconds float8, with_journal boolean)
returns table (stack_id uuid, kind text, dry_run boolean, "expiresAt" timestamptz, "headVersion" integer, "stackVersion" integer,
  "journalVersion" integer)
rows 1 language plpgsql as $$
#variable_conflict use_column
declare
  held record;
  held_stack uuid;
  found_update record;
begin
  select h.role, h."isPlain" as is_plain, h.facts into held from hold_access(of_token, of_organization) h;
  if not found then return; end if;
  select s.id into held_stack from stacks s
  where s.id = (select u.stack_id from updates u where u.id = of_update) and s.deleted_at is null for update;
  if held_stack is null then return; end if;
  perform lock_exclusive(of_update);
  perform 1 from updates u where u.id = of_update and u.stack_id = held_stack for update;
  -- A statement of its own: what was committed while it waited for the locks is not in the snapshot of those that lock.
  select u.kind, u.dry_run, u.exclusive and not u.dry_run as writes, s.stack_version, s.checkpoint_id into found_update
  from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
  where u.id = of_update and s.id = held_stack and o.name = of_organization and p.name = of_project and s.name = of_name
    and u.status = 'not started' and u.end_reason is null and u.expires_at > clock_timestamp()
    and u.expires_at <= clock_timestamp() + make_interval(secs => lease_seconds)
    and (u.exclusive or s.active_update_id is null)
    and (new_tags is null or s.tags = new_tags)
    and not (u.is_guarded and not with_journal)
    and not exists (
      select 1 from journals j where j.stack_id = held_stack and j.folded_at is null and j.entry_count > j.folded_entries)
    and not exists (
      select 1 from journals j where j.stack_id = held_stack and j.accepted_at is null and (j.fold_error is not null or j.fold_warning is not null))
    and case when held.is_plain then role_permissions(held.role) else effective_permissions(held.facts, o.id, p.name, s.name) end
      & (case when u.dry_run then 2 else 4 end) <> 0;
  if not found then return; end if;
  stack_id := held_stack;
  kind := found_update.kind;
  dry_run := found_update.dry_run;
  "headVersion" := found_update.stack_version;
  "stackVersion" := case when found_update.writes then found_update.stack_version + 1 end;
  "journalVersion" := case when found_update.writes and with_journal then 1 else 0 end;
  update updates u set status = 'running', started_at = clock_timestamp(), lease_hash = new_lease, token_id = of_token,
    must_end_at = clock_timestamp() + make_interval(secs => max_seconds),
    expires_at = least(clock_timestamp() + make_interval(secs => least(lease_seconds, max_seconds)),
      (select t.expires_at from api_tokens t where t.id = of_token)),
    epoch = u.epoch + 1, stack_version = "stackVersion", base_stack_version = found_update.stack_version,
    journal_version = "journalVersion", base_checkpoint_id = found_update.checkpoint_id, checkpoint_id = found_update.checkpoint_id
  where u.id = of_update returning u.expires_at into "expiresAt";
  if "journalVersion" > 0 then insert into journals (update_id, stack_id) values (of_update, held_stack); end if;
  return next;
end $$;
