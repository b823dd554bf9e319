-- Up Migration

-- Row locks do not keep an order: as long as transactions that share a row overlap, one that wants it alone waits. Whoever sends many
-- calls at once could so delay the end of their own rights. Advisory locks are given in the order of arrival.

-- Locks what the id stands for until the end of the transaction, together with others.
create function lock_shared(id uuid) returns void language sql as $$
  select pg_advisory_xact_lock_shared(hashtextextended(id::text, 46))
$$;

-- The same, alone.
create function lock_exclusive(id uuid) returns void language sql as $$
  select pg_advisory_xact_lock(hashtextextended(id::text, 46))
$$;

-- What the holder of a token may do in an organization; no row if the token is not valid there. It stays so until the end of the
-- transaction: what a user has is locked by the user's id, what an organization gives by its id. The last statement sees what was
-- committed while the locks were waited for.
create function hold_access(token uuid, organization_name text) returns table (role text, "isPlain" boolean, facts jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  owner uuid;
  organization uuid;
begin
  select t.user_id, o.id into owner, organization
  from api_tokens t join organizations o on o.name = organization_name where t.id = token;
  if organization is null then return; end if;
  if owner is not null then perform lock_shared(owner); end if;
  perform lock_shared(organization);
  return query
    select coalesce(m.role, t.role), p.plain, case when not p.plain then token_facts(t.id, o.id) end
    from api_tokens t join organizations o on o.id = organization join organization_access a on a.organization_id = o.id
    left join users u on u.id = t.user_id left join memberships m on m.organization_id = o.id and m.user_id = t.user_id
    cross join lateral (select a.version = 0 and not t.is_sealed as plain) p
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and case when t.kind = 'personal' then m.role is not null and u.deactivated_at is null else t.organization_id = o.id end;
end $$;

-- Whether the token, and its user if it has one, is valid. It stays so until the end of the transaction.
create function hold_owner(token uuid) returns boolean language plpgsql as $$
declare
  owner uuid;
begin
  select coalesce(user_id, organization_id) into owner from api_tokens where id = token;
  if owner is null then return false; end if;
  perform lock_shared(owner);
  return exists (
    select 1 from api_tokens t left join users u on u.id = t.user_id
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and u.deactivated_at is null);
end $$;

-- Whether the user is active. It stays so until the end of the transaction.
create function hold_user(id uuid) returns boolean language plpgsql as $$
begin
  perform lock_shared(id);
  return exists (select 1 from users u where u.id = hold_user.id and u.deactivated_at is null);
end $$;

-- Ends the leases of those of the updates that are active. Rows that others are writing to are locked one after another, so that
-- there are no more advisory locks than such rows.
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

create or replace function end_leases(tokens uuid[], organization uuid, reason text) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = any (tokens) and u.status in ('not started', 'running') and u.end_reason is null
      and (organization is null or exists (
        select 1 from stacks s join projects p on p.id = s.project_id where s.id = u.stack_id and p.organization_id = organization))),
    reason);
end $$;

create or replace function end_unpermitted_leases(organization uuid, of_stack uuid) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    select u.id from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
    where u.status in ('not started', 'running') and u.end_reason is null and u.token_id is not null
      and p.organization_id = organization and (of_stack is null or u.stack_id = of_stack)
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
    'grant-ended');
end $$;

create or replace function token_rights_changed() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(coalesce(old.user_id, old.organization_id));
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = new.id and u.status in ('not started', 'running') and u.end_reason is null
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
    'grant-ended');
  return null;
end $$;

create or replace function end_leases_of_member() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(old.user_id);
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

create or replace function end_leases_of_user() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(old.id);
  perform end_leases(array(select id from api_tokens where user_id = old.id), null, 'user-deactivated');
  return null;
end $$;

create or replace function end_leases_of_token() returns trigger language plpgsql as $$
declare
  busy uuid;
begin
  if tg_op = 'DELETE' then
    if old.revoked_at is null and (old.expires_at is null or old.expires_at > clock_timestamp()) then
      perform lock_exclusive(coalesce(old.user_id, old.organization_id));
    end if;
    perform end_leases(array[old.id], null, 'token-revoked');
    return old;
  end if;
  if new.revoked_at is not null or new.user_id <> old.user_id or new.id <> old.id then
    if old.revoked_at is null then perform lock_exclusive(coalesce(old.user_id, old.organization_id)); end if;
    perform end_leases(array[old.id], null, 'token-revoked');
  elsif new.expires_at <= clock_timestamp() then
    if old.expires_at is null or old.expires_at > clock_timestamp() then
      perform lock_exclusive(coalesce(old.user_id, old.organization_id));
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

-- Raising the version waits for updates that are being started, and those that start later see the change.
create or replace function change_access(organizations uuid[]) returns void language plpgsql as $$
declare
  id uuid;
begin
  foreach id in array array(select unnest(organizations) order by 1) loop
    perform lock_exclusive(id);
  end loop;
  update organization_access a set version = version + 1
  where a.organization_id in (
    select organization_id from organization_access where organization_id = any (organizations) order by 1 for no key update);
  foreach id in array organizations loop
    perform end_unpermitted_leases(id, null);
  end loop;
end $$;
