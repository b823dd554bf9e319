-- Updates with their leases, the queue of a stack, and the rules that organizations set for updates.

create table updates (
  id uuid primary key default gen_random_uuid(),
  -- Creation order within a stack. Timestamps would be wrong after the clock was set back.
  number bigint generated always as identity,
  stack_id uuid not null references stacks (id) on delete cascade,
  -- Filled by a trigger. Used to count the active updates of an organization.
  organization_id uuid,
  kind text not null,
  dry_run boolean not null default false,
  -- Whether it takes the stack's lock. All updates do, except previews of the CLI's dialect.
  exclusive boolean not null,
  status text not null,
  -- Why it ended without being completed by its client: null, 'cancelled' or 'lease-expired'.
  end_reason text,
  -- Stack version of this update; null for previews and before the start.
  stack_version integer,
  -- Stack version it started from.
  base_stack_version integer not null default 0,
  message text not null default '',
  -- JSON texts, as sent.
  environment text not null default '{}',
  config text not null default '{}',
  program text not null default '{}',
  -- Extracted by a trigger from the environment, which may be large: the checkout in which the update runs. Null if not stated.
  commit_id text,
  branch text,
  -- The CI run that created the update, as JSON text.
  ci_run text,
  resource_changes text not null default '{}',
  requested_by uuid references users (id) on delete set null,
  -- API token that created the update, then the one that started it. No foreign key, because tokens can be deleted.
  token_id uuid,
  created_at timestamptz not null default now(),
  -- How long the call that created the update waited for the stack, in ms; null: it did not wait, or that is not known.
  waited_ms integer,
  started_at timestamptz,
  ended_at timestamptz,
  lease_hash bytea,
  -- Before the start: deadline for starting. After it: when the lease expires.
  expires_at timestamptz not null,
  -- Latest time to which the lease can be renewed. Set at the start.
  must_end_at timestamptz,
  -- Raised by every start and takeover. Each write of the execution phase names the epoch in which it was admitted.
  epoch integer not null default 0,
  journal_version integer not null default 0,
  -- Whether batches that begin operations have to check update_limits. In the row that every batch locks, so that a batch of an update without
  -- change limits reads nothing more.
  is_limited boolean not null default false,
  -- State that journal positions refer to; never changes after the start.
  base_checkpoint_id uuid,
  -- State as written or found by this update.
  checkpoint_id uuid,
  -- Highest accepted checkpoint sequence number; 0 before the first.
  checkpoint_sequence integer not null default 0,
  -- Full checkpoints have no sequence number on the wire. Each gets one on arrival, so that a late one cannot overwrite a newer one.
  full_assigned integer not null default 0,
  full_committed integer not null default 0,
  -- Which entries of its journal were missing when the update ended, as in '3-4, 7'. It stays when an operator has accepted that.
  missing_entries text,
  -- Whether its events are in segments only. They move there some time after its end.
  events_archived boolean not null default false,
  constraint updates_kind_check check (kind in ('update', 'preview', 'refresh', 'destroy', 'import', 'rename')),
  constraint updates_status_check check (status in ('not started', 'running', 'succeeded', 'failed', 'cancelled'))
);
create unique index updates_one_active_per_stack on updates (stack_id)
  where exclusive and status in ('not started', 'running');
create unique index updates_stack_version on updates (stack_id, stack_version) where stack_version is not null;
create index updates_expiring on updates (expires_at) where status in ('not started', 'running');
create index updates_checkpoint on updates (checkpoint_id) where checkpoint_id is not null;
create index updates_base_checkpoint on updates (base_checkpoint_id) where base_checkpoint_id is not null;
create unique index updates_by_number on updates (stack_id, number desc);
-- Previews, which can be far more numerous, are excluded from this index of the history.
create index updates_history on updates (stack_id, number desc) where not dry_run and kind <> 'preview';
create index updates_active_by_token on updates (token_id) where status in ('not started', 'running');
create index updates_to_archive on updates (ended_at, id) where not events_archived and ended_at is not null;
-- The newest previews of a stack that has many other updates.
create index updates_previews on updates (stack_id, number desc) where dry_run or kind = 'preview';
-- Active updates that lost their lease, among many that have one.
create index updates_lost on updates (id) where status in ('not started', 'running') and end_reason is not null;
-- Active updates of one organization.
create index updates_active_by_organization on updates (organization_id)
  where status in ('not started', 'running');
-- The active update with a lease.
create index updates_active_by_lease on updates (lease_hash) where status in ('not started', 'running');

-- Stacks and updates refer to each other.
alter table stacks add constraint stacks_active_update_fkey foreign key (active_update_id) references updates (id) on delete set null;

-- Processes in which calls wait for a locked stack. Each renews its row while it has waiting calls.
create table update_queue_processes (
  id uuid primary key,
  alive_until timestamptz not null
);

-- Entries in the queues of stacks, in the order of their numbers.
create table update_queue_waiters (
  id uuid primary key default gen_random_uuid(),
  number bigint generated always as identity,
  stack_id uuid not null references stacks (id) on delete cascade,
  organization_id uuid,
  token_id uuid not null references api_tokens (id) on delete cascade,
  -- The process in which a call waits at this entry; null: its client was asked to call again.
  process_id uuid,
  -- Without a process, the entry expires then.
  kept_until timestamptz not null,
  arrived_at timestamptz not null default clock_timestamp(),
  -- An emergency, which goes before all others.
  is_urgent boolean not null default false,
  -- The run, as far as a newer run may supersede it: {line, commit, url, builds, build}. Null: none may.
  run jsonb,
  -- The waiting run, as shown to users: {kind, commit, branch, url}.
  shown jsonb,
  -- The run that superseded it: {commit, url}. The entry no longer counts, and its call is evicted from the queue.
  superseded_by jsonb,
  -- The limit that defers it although its stack is free, with the organization of the stack.
  held_by text,
  -- Whether webhooks were notified that it waits too long, and that a freeze defers it.
  is_late_notified boolean not null default false,
  is_freeze_notified boolean not null default false
);
create index update_queue_waiters_queue on update_queue_waiters (stack_id, number);
create index update_queue_waiters_token on update_queue_waiters (token_id);
create index update_queue_waiters_superseded on update_queue_waiters (process_id) where superseded_by is not null;
create index update_queue_waiters_held on update_queue_waiters (organization_id, held_by) where held_by is not null;

-- Rules that organizations set for the updates of their stacks. Kinds and their settings are defined in rule-kinds.ts.
create table update_rules (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  kind text not null,
  -- Distinguishes rules of one kind for the same stacks. Empty for kinds that allow only one.
  slot text not null default '',
  -- The scope: stacks that match all given names and the tag. Names, not ids: renaming a stack, or deleting and recreating it, does not change the
  -- rules for the name.
  project text,
  stack text,
  tag_name text,
  tag_value text,
  settings jsonb not null,
  note text not null default '',
  set_at timestamptz not null default clock_timestamp(),
  -- Null: an operator.
  set_by uuid references users (id) on delete set null,
  constraint update_rules_stack_check check (stack is null or project is not null and tag_name is null),
  constraint update_rules_tag_check check ((tag_name is null) = (tag_value is null))
);
create unique index update_rules_key on update_rules (organization_id, kind, slot, coalesce(project, ''), coalesce(stack, ''),
  coalesce(tag_name, ''), coalesce(tag_value, ''));
create index update_rules_set_by on update_rules (set_by) where set_by is not null;

-- Change limits, which may stop an update that sends a journal from beginning more operations.
create table update_limits (
  update_id uuid primary key references updates (id) on delete cascade,
  -- The rules for deletes and replacements that applied when the update was created, as in change-limits.ts; null: none.
  limits text,
  -- Deletes and replacements that have begun, if a rule limits their number.
  changes integer not null default 0,
  -- From then on, the update begins no more operations. Never unset.
  stopped_at timestamptz,
  -- 'drain', or the kind of the rule that stopped it.
  stop_reason text,
  -- The message for the user who runs the update.
  stop_message text,
  constraint update_limits_stop_check check ((stopped_at is null) = (stop_message is null) and (stopped_at is null) = (stop_reason is null))
);

-- The resources that an update has begun to delete or replace: a replacement is several operations, and counts once.
create table update_limit_changes (
  update_id uuid not null references update_limits (update_id) on delete cascade,
  urn_key text not null,
  primary key (update_id, urn_key)
);

-- Approvals for runs of a commit to delete or replace more than the rules of its stack allow. One row for each stack, kind and commit; the audit log
-- records their use. Ids of deleted users, tokens and updates are kept.
create table update_approvals (
  id uuid primary key default gen_random_uuid(),
  -- Filled by a trigger, for the lists of an organization.
  organization_id uuid,
  -- No foreign key: stopping an update, which locks the update's row first, would then lock the stack's row, in the opposite order of other changes.
  stack_id uuid not null,
  kind text not null,
  commit_id text not null,
  asked_at timestamptz not null default clock_timestamp(),
  asked_by text not null,
  asked_user_id uuid,
  asked_token_id uuid,
  -- The update that was stopped; null: requested ahead of a run.
  update_id uuid,
  -- The refused changes, or the reason for the request.
  request text not null,
  approved_at timestamptz,
  approved_by text,
  -- Both null: an operator.
  approved_user_id uuid,
  approved_token_id uuid,
  reason text,
  expires_at timestamptz,
  constraint update_approvals_approved_check check (
    (approved_at is null) = (approved_by is null) and (approved_at is null) = (reason is null) and (approved_at is null) = (expires_at is null))
);
create unique index update_approvals_key on update_approvals (stack_id, kind, commit_id);
-- Lists of an organization and of a stack, approved or open, read only the rows that they return.
create index update_approvals_given_of_organization on update_approvals (organization_id, asked_at, id) where approved_at is not null;
create index update_approvals_asked_of_organization on update_approvals (organization_id, asked_at, id) where approved_at is null;
create index update_approvals_given_of_stack on update_approvals (stack_id, asked_at, id) where approved_at is not null;
create index update_approvals_asked_of_stack on update_approvals (stack_id, asked_at, id) where approved_at is null;
create index update_approvals_age on update_approvals (coalesce(expires_at, asked_at));

-- A stack does not leave its organization. The environment is JSON without spaces, in which a quoted name that is followed by a colon is
-- a member.
create function set_update_columns() returns trigger language plpgsql as $$
begin
  new.organization_id := (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id);
  new.commit_id := substring(new.environment from '"git\.head":"([0-9a-fA-F]{7,64})"');
  new.branch := substring(new.environment from '"git\.headName":"([^"\\]{1,250})"');
  return new;
end $$;
create trigger updates_columns before insert on updates
  for each row execute function set_update_columns();

-- Starts an update for the holder of a token, in one round trip: holds the caller's access, locks the stack of this name and then the
-- update, reads both after it has the locks, and gives the update its lease and, if `with_journal`, its journal. Nothing is changed
-- unless the outcome is 'started'. The others, in the order of the checks:
-- 'no-access': the token is not valid in the organization
-- 'not-found': no such update of a stack of this name
-- 'denied': the token may not do this; `permissions` has its permissions
-- 'fault': entries of a journal could not be replayed
-- 'unprepared': an update of the stack may have expired, or entries of a journal may be in no checkpoint, unless the caller `is_prepared`
-- 'not-waiting': the update runs or has ended, or its time to start is over
-- 'journal-needed': change limits require a journal
-- 'new-tags': the stack has other tags
create function start_update(of_update uuid, of_token uuid, of_organization text, of_project text, of_name text, new_tags text,
  new_lease bytea, lease_seconds float8, max_seconds float8, with_journal boolean, is_prepared boolean)
returns table (outcome text, stack_id uuid, kind text, dry_run boolean, status text, end_reason text, permissions integer,
  "expiresAt" timestamptz, "headVersion" integer, "stackVersion" integer, "journalVersion" integer)
rows 1 language plpgsql as $$
#variable_conflict use_column
declare
  held record;
  held_stack uuid;
  writes boolean;
  head uuid;
begin
  select h.role, h."isPlain" as is_plain, h.facts into held from hold_access(of_token, of_organization) h;
  if not found or not (held.is_plain or held.facts is not null) then
    outcome := 'no-access';
    return next;
    return;
  end if;
  select s.id into held_stack from stacks s
  where s.id = (select u.stack_id from updates u where u.id = of_update) and s.deleted_at is null for update;
  if held_stack is not null then
    perform lock_exclusive(of_update);
    perform 1 from updates u where u.id = of_update and u.stack_id = held_stack for update;
  end if;
  -- A statement of its own: commits made during the wait for the locks are not in the snapshot of the locking statements.
  select s.id, u.kind, u.dry_run, u.status, u.end_reason, a.allowed, s.stack_version, s.checkpoint_id, w.writes,
    case when w.writes then s.stack_version + 1 end, case when w.writes and with_journal then 1 else 0 end,
    case
      when a.allowed & (case when u.dry_run then 2 else 4 end) = 0 then 'denied'
      when not u.dry_run and exists (
        select 1 from journals j where j.stack_id = s.id and j.accepted_at is null and j.compaction_error is not null) then 'fault'
      when u.status <> 'not started' and not (u.status = 'running' and w.over) then 'not-waiting'
      when not is_prepared and (w.over or u.expires_at > clock_timestamp() + make_interval(secs => lease_seconds)
        or (not u.exclusive and s.active_update_id is not null) or exists (
          select 1 from journals j
          where j.stack_id = s.id and j.compacted_at is null and j.entry_count > j.compacted_entries and j.compaction_error is null)) then 'unprepared'
      when w.over then 'not-waiting'
      when w.writes and not with_journal and u.is_limited and exists (
        select 1 from update_limits g where g.update_id = u.id and (g.limits::json ->> 'needsJournal')::boolean) then 'journal-needed'
      when s.tags <> new_tags then 'new-tags'
      else 'started'
    end
  into stack_id, kind, dry_run, status, end_reason, permissions, "headVersion", head, writes, "stackVersion", "journalVersion", outcome
  from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
    cross join lateral (
      select u.exclusive and not u.dry_run as writes, u.end_reason is not null or u.expires_at <= clock_timestamp() as over) w
    cross join lateral (
      select case when held.is_plain then role_permissions(held.role) else effective_permissions(held.facts, o.id, p.name, s.name) end
        as allowed offset 0) a
  where u.id = of_update and s.id = held_stack and o.name = of_organization and p.name = of_project and s.name = of_name;
  if outcome = 'started' then
    update updates u set status = 'running', started_at = clock_timestamp(), lease_hash = new_lease, token_id = of_token,
      must_end_at = clock_timestamp() + make_interval(secs => max_seconds),
      expires_at = least(clock_timestamp() + make_interval(secs => least(lease_seconds, max_seconds)),
        (select t.expires_at from api_tokens t where t.id = of_token)),
      epoch = u.epoch + 1, stack_version = "stackVersion", base_stack_version = "headVersion",
      journal_version = "journalVersion", base_checkpoint_id = head, checkpoint_id = head
    where u.id = of_update returning u.expires_at into "expiresAt";
    if "journalVersion" > 0 then insert into journals (update_id, stack_id) values (of_update, held_stack); end if;
  end if;
  outcome := coalesce(outcome, 'not-found');
  return next;
end $$;

-- Ends an update that is locked together with its stack: releases the stack if the update held it, publishes the version of the update if
-- it has one, records which entries its journal lacks, and turns its secret reads into an audit event. `keep_lease`: keeps the hash, so
-- that the holder of the lease can be distinguished from others.
create function end_locked_update(of_update uuid, of_stack uuid, new_status text, reason text, keep_lease boolean, new_version integer,
  missing text)
returns void language plpgsql as $$
begin
  update stacks s set active_update_id = nullif(s.active_update_id, of_update),
    stack_version = greatest(s.stack_version, new_version),
    updated_at = case when new_version is null then s.updated_at else now() end
  where s.id = of_stack and (s.active_update_id = of_update or new_version is not null);
  update updates u set status = new_status, end_reason = reason, ended_at = clock_timestamp(),
    lease_hash = case when keep_lease then u.lease_hash end, missing_entries = missing
  where u.id = of_update;
  -- For all who read the state.
  if missing is not null then
    update journals j set compaction_warning = concat_ws('; ', describe_missing_entries(missing), j.compaction_warning) where j.update_id = of_update;
  end if;
  if exists (select 1 from audit_secret_reads r where r.update_id = of_update) then perform close_secret_reads(array[of_update]); end if;
end $$;

-- Completes an update for the holder of its lease, in one round trip: locks its stack and then the update, reads both after it has the
-- locks, and ends the update with `new_status`. Nothing is changed unless the outcome is 'ended'. The others, in the order of the checks:
-- 'other-database': this may be another database than the caller has seen, or an earlier point of it
-- 'lease-lost': the update is gone or has ended otherwise, or the lease is over or another one
-- 'repeated': it has ended with this status before
-- 'pending-entries': its journal has entries that are in no checkpoint
-- 'gap': the new status is succeeded, and its journal lacks entries
-- 'watched': a rule requires the outputs that it removed, unless the caller `knows_outputs`
create function complete_update(of_update uuid, of_epoch integer, new_status text, seen_losses integer, seen_position bigint,
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
    u.checkpoint_sequence + u.full_committed, m.missing,
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

-- Ends the leases of the active ones among the updates. Rows that others are writing to are locked one after another, so that there are no more
-- advisory locks than rows of this kind.
create function end_active_leases(ids uuid[], reason text) returns void language plpgsql as $$
declare
  busy uuid;
begin
  with lost as (
    select u.id from updates u
    where u.id = any (ids) and u.status in ('not started', 'running') and u.end_reason is null
    order by u.id for update skip locked
  )
  update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = reason
  from lost where u.id = lost.id;
  for busy in
    select u.id from updates u
    where u.id = any (ids) and u.status in ('not started', 'running') and u.end_reason is null order by u.id
  loop
    perform lock_exclusive(busy);
    update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = reason
    where u.id = busy and u.status in ('not started', 'running') and u.end_reason is null;
  end loop;
end $$;

-- Ends the leases of active updates in the same transaction that removes their token, user or membership. The raised epoch
-- rejects writes admitted before, and end_reason rejects later ones. The update itself is cancelled when it is next closed.
create function end_leases(tokens uuid[], organization uuid, reason text) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = any (tokens) and u.status in ('not started', 'running') and u.end_reason is null
      and (organization is null or exists (
        select 1 from stacks s join projects p on p.id = s.project_id where s.id = u.stack_id and p.organization_id = organization))),
    reason);
end $$;

create function end_leases_of_token() returns trigger language plpgsql as $$
declare
  owner uuid := coalesce(place_of_user(old.user_id), old.organization_id);
  busy uuid;
begin
  if tg_op = 'DELETE' then
    if old.revoked_at is null and (old.expires_at is null or old.expires_at > clock_timestamp()) then
      perform lock_exclusive(owner);
    end if;
    perform end_leases(array[old.id], null, 'token-revoked');
    return old;
  end if;
  if new.revoked_at is not null or new.user_id <> old.user_id or new.id <> old.id then
    if old.revoked_at is null then perform lock_exclusive(owner); end if;
    perform end_leases(array[old.id], null, 'token-revoked');
  elsif new.expires_at <= clock_timestamp() then
    if old.expires_at is null or old.expires_at > clock_timestamp() then
      perform lock_exclusive(owner);
    end if;
    perform end_leases(array[old.id], null, 'token-expired');
  else
    for busy in
      select id from updates where token_id = old.id and status in ('not started', 'running') and expires_at > new.expires_at order by id
    loop
      perform lock_exclusive(busy);
      update updates set expires_at = new.expires_at
      where id = busy and status in ('not started', 'running') and expires_at > new.expires_at;
    end loop;
  end if;
  return null;
end $$;
create trigger api_tokens_end_leases after update of id, user_id, revoked_at, expires_at on api_tokens
  for each row when (old.* is distinct from new.*) execute function end_leases_of_token();
create trigger api_tokens_deleted_end_leases before delete on api_tokens
  for each row execute function end_leases_of_token();

create function end_leases_of_user() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(place_of_user(old.id));
  perform end_leases(array(select id from api_tokens where user_id = old.id), null, 'user-deactivated');
  return null;
end $$;
-- No trigger for deleted users: deleting a user deletes its tokens.
create trigger users_end_leases after update of deactivated_at on users
  for each row when (new.deactivated_at is not null) execute function end_leases_of_user();

-- A viewer may update stacks by grants. So a role below member ends only leases that nothing else permits.
create function end_leases_of_member() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(place_of_user(old.user_id));
  if tg_op = 'UPDATE' and new.user_id = old.user_id and new.organization_id = old.organization_id
    and exists (select 1 from organization_access where organization_id = new.organization_id and version > 0) then
    perform end_active_leases(array(
      select u.id from updates u join api_tokens t on t.id = u.token_id
      join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
      where t.user_id = new.user_id and p.organization_id = new.organization_id
        and u.status in ('not started', 'running') and u.end_reason is null
        and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
      'membership-ended');
    return null;
  end if;
  perform end_leases(array(select id from api_tokens where user_id = old.user_id), old.organization_id, 'membership-ended');
  return null;
end $$;
create trigger memberships_end_leases after update of organization_id, user_id, role on memberships
  for each row when (new.role not in ('member', 'admin') or new.user_id <> old.user_id or new.organization_id <> old.organization_id)
  execute function end_leases_of_member();
create trigger memberships_deleted_end_leases after delete on memberships
  for each row execute function end_leases_of_member();
create trigger memberships_weakened after update of role on memberships
  for each row when (new.role = 'member' and old.role = 'admin') execute function end_leases_of_member();

-- A change of a token's scopes or role, or of a membership's role, ends leases that are no longer permitted.
create function token_rights_changed() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(coalesce(place_of_user(old.user_id), old.organization_id));
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = new.id and u.status in ('not started', 'running') and u.end_reason is null
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
    'grant-ended');
  return null;
end $$;
create trigger api_tokens_rights after update of scopes, role, kind, organization_id, team_id on api_tokens
  for each row when ((old.scopes, old.role, old.kind, old.organization_id, old.team_id)
    is distinct from (new.scopes, new.role, new.kind, new.organization_id, new.team_id))
  execute function token_rights_changed();

-- The first queue entry at which a call waits now. Other entries keep their number but do not block later ones.
create function first_lock_waiter(stack uuid) returns uuid language sql as $$
  select w.id from update_queue_waiters w join update_queue_processes p on p.id = w.process_id
  where w.stack_id = stack and w.superseded_by is null and p.alive_until > clock_timestamp()
  order by not w.is_urgent, w.number limit 1
$$;

create function wake_lock_waiter(stack uuid) returns void language plpgsql as $$
declare
  first uuid;
begin
  if not exists (select 1 from update_queue_waiters where stack_id = stack) then return; end if;
  first := first_lock_waiter(stack);
  if first is not null then perform pg_notify('holdfast_update_queue', first::text); end if;
end $$;

-- Queue entries of an organization that one limit defers and that could otherwise continue. The entry whose project runs the fewest updates goes
-- first, then the earliest.
create function update_queue_waiters_held_by(organization uuid, held text) returns table (id uuid, running bigint, number bigint) language sql as $$
  select w.id, coalesce(r.running, 0), w.number
  from update_queue_waiters w join stacks s on s.id = w.stack_id
  left join (
    select t.project_id, count(*) as running from updates u join stacks t on t.id = u.stack_id
    where u.organization_id = organization and u.status in ('not started', 'running') and u.exclusive and not u.dry_run
      and u.expires_at > clock_timestamp()
    group by t.project_id) r on r.project_id = s.project_id
  where w.organization_id = organization and w.held_by = held and s.active_update_id is null and s.deleted_at is null
    and first_lock_waiter(w.stack_id) = w.id
$$;

-- Releasing a stack wakes the first waiting call. The transaction holds the stack's row until its end: a call that joined the queue too late to be
-- seen here waits for that row, and then finds the stack released.
create function stack_released() returns trigger language plpgsql as $$
declare
  organization uuid;
begin
  perform wake_lock_waiter(new.id);
  -- One active update less: a limit may admit the next one.
  select p.organization_id into organization from projects p where p.id = new.project_id;
  if exists (select 1 from update_queue_waiters w where w.organization_id = organization and w.held_by is not null) then
    perform pg_notify('holdfast_update_queue', 'held');
  end if;
  return null;
end $$;
create trigger stacks_released after update of active_update_id on stacks
  for each row when (old.active_update_id is not null and new.active_update_id is null) execute function stack_released();

-- Calls that a rule defers check again.
create function update_rules_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('holdfast_update_queue', 'rules');
  return null;
end $$;
create trigger update_rules_changed after insert or update or delete on update_rules
  for each statement execute function update_rules_changed();

-- A stack stays in its organization.
create function place_approval() returns trigger language plpgsql as $$
begin
  new.organization_id := (
    select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id);
  return new;
end $$;
create trigger update_approvals_placed before insert on update_approvals for each row execute function place_approval();

create function forget_approvals() returns trigger language plpgsql as $$
begin
  delete from update_approvals where stack_id = old.id;
  return null;
end $$;
create trigger stacks_forget_approvals after delete on stacks for each row execute function forget_approvals();

-- The identity of the database as it is now. Managed servers may hide the first two. The control file has the timeline only
-- after the next checkpoint, so it is taken from the log.
create function read_database_identity(out system_id text, out timeline text, out place text) language plpgsql as $$
begin
  place := concat_ws(' ', (select d.oid from pg_database d where d.datname = current_database()), 'installation'::regclass::oid,
    'stacks'::regclass::oid, 'updates'::regclass::oid, 'journals'::regclass::oid, 'checkpoints'::regclass::oid);
  begin
    select c.system_identifier::text into system_id from pg_control_system() c;
  exception when others then system_id := null;
  end;
  begin
    timeline := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
  exception when others then timeline := null;
  end;
end $$;

-- How far the write-ahead log is flushed, in bytes since its beginning; null if the server does not report it. It does not go back with a crash.
create function log_position() returns bigint language plpgsql as $$
begin
  return pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint;
exception when others then
  return null;
end $$;

-- Changes of the database since its identity was recorded: 'none'; 'unnoted', there is more to record, and nothing differs;
-- 'timeline', it comes from a standby or a base backup; 'replaced', it is another one; 'set-back', it is the same database as the caller
-- has seen, at an earlier point. A copy of the data directory that is put back has the same identity, but its write-ahead log ends
-- earlier. Null: the caller has seen nothing yet.
create function database_change(seen_losses integer, seen_position bigint) returns text language sql as $$
  select case
    when i.place <> n.place or i.system_id <> n.system_id then 'replaced'
    when i.timeline <> n.timeline then 'timeline'
    when i.losses < seen_losses or (i.losses = seen_losses and log_position() < seen_position) then 'set-back'
    when i.place is null or (i.system_id is null and n.system_id is not null) or (i.timeline is null and n.timeline is not null) then 'unnoted'
    else 'none'
  end
  from installation i, read_database_identity() n
$$;

-- Records the identity of the database. If it is another one than before, or one that the caller has seen at a later point, or
-- `is_ordered`, every active update loses its lease; returns how many did, and null if there was no reason to end any.
create function note_database(is_ordered boolean, seen_losses integer, seen_position bigint) returns integer language plpgsql as $$
declare
  change_now text;
  is_loss boolean;
  ended uuid[];
begin
  perform 1 from installation for update;
  change_now := database_change(seen_losses, seen_position);
  if change_now = 'none' and not is_ordered then return null; end if;
  is_loss := is_ordered or change_now <> 'unnoted';
  update installation i
  set system_id = coalesce(n.system_id, i.system_id), timeline = coalesce(n.timeline, i.timeline), place = n.place,
    losses = case when is_loss then greatest(i.losses, seen_losses) + 1 else i.losses end,
    lost_at = case when is_loss then clock_timestamp() else i.lost_at end
  from read_database_identity() n;
  if not is_loss then return null; end if;
  select coalesce(array_agg(u.id), '{}') into ended from updates u
  where u.status in ('not started', 'running') and u.end_reason is null;
  perform end_active_leases(ended, 'database-restored');
  return cardinality(ended);
end $$;
