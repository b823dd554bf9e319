-- As before, but a preview that locks its stack needs the permission for updates.
create or replace function start_update(of_update uuid, of_token uuid, of_organization text, of_project text, of_name text, new_tags text,
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
      when a.allowed & (case when u.dry_run and not u.exclusive then 2 else 4 end) = 0 then 'denied'
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

-- The user who gave the issuer its keys, and so can sign for anybody; null: nobody has, or an operator. No foreign key: it is only compared.
alter table trusted_issuers add column keys_by uuid;
update trusted_issuers set keys_by = created_by where jwks is not null;

-- As before, with the user who gave the keys of a CI run's issuer.
create or replace function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by,
      case when t.previous_until > clock_timestamp() then t.previous_rotated_by end,
      (select i.keys_by from trust_policies p join trusted_issuers i on i.id = p.issuer_id where p.id = t.policy_id)]
    || case when t.policy_id is null then '{}' else array(
    select u.id from memberships m join users u on u.id = m.user_id
    where m.organization_id in (
        select t.organization_id
        union all select o.id from organizations o where t.kind = 'personal' and o.name in (
          select s.organization from jsonb_to_recordset(t.scopes) as s (organization text)))
      and (lower(u.login) in (lower(t.claims ->> 'actor'), lower(t.claims ->> 'user_login'))
        or u.email <> '' and lower(u.email) = lower(t.claims ->> 'user_email'))) end, null)
  from (values (of_token)) one (id) left join api_tokens t on t.id = one.id
$$;
