-- Up Migration

-- Set if the events that say what an update has removed could not be read when it ended. `names` is then an empty list, as the release
-- before reads it.
alter table output_losses add column is_unknown boolean not null default false;

-- What stands for a user in advisory locks. There are 1,024 of these, so that a transaction that changes the rights of any number of
-- users takes no more locks than that: the lock table of Postgres holds a few thousand.
create function place_of_user(id uuid) returns uuid language sql immutable strict parallel safe as $$
  select lpad(to_hex(hashtextextended(id::text, 70) & 1023), 32, '0')::uuid
$$;

-- The functions of before, with these places instead of the ids of users.
create or replace function hold_access(token uuid, organization_name text) returns table (role text, "isPlain" boolean, facts jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  owner uuid;
  organization uuid;
begin
  select t.user_id, o.id into owner, organization
  from api_tokens t join organizations o on o.name = organization_name where t.id = token;
  if organization is null then return; end if;
  if owner is not null then perform lock_shared(place_of_user(owner)); end if;
  perform lock_shared(organization);
  if not hold_session(token) then return; end if;
  return query
    select coalesce(m.role, t.role), p.plain, case when not p.plain then token_facts(t.id, o.id) end
    from api_tokens t join organizations o on o.id = organization join organization_access a on a.organization_id = o.id
    left join users u on u.id = t.user_id left join memberships m on m.organization_id = o.id and m.user_id = t.user_id
    cross join lateral (select a.version = 0 and not t.is_sealed as plain) p
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and case when t.kind = 'personal' then m.role is not null and u.deactivated_at is null else t.organization_id = o.id end;
end $$;

create or replace function hold_owner(token uuid) returns boolean language plpgsql as $$
declare
  owner uuid;
begin
  select coalesce(place_of_user(user_id), organization_id) into owner from api_tokens where id = token;
  if owner is null then return false; end if;
  perform lock_shared(owner);
  return hold_session(token) and exists (
    select 1 from api_tokens t left join users u on u.id = t.user_id
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and u.deactivated_at is null);
end $$;

create or replace function hold_user(id uuid) returns boolean language plpgsql as $$
begin
  perform lock_shared(place_of_user(id));
  return exists (select 1 from users u where u.id = hold_user.id and u.deactivated_at is null);
end $$;

create or replace function token_rights_changed() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(coalesce(place_of_user(old.user_id), old.organization_id));
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = new.id and u.status in ('not started', 'running') and u.end_reason is null
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & (case when u.dry_run then 2 else 4 end) = 0),
    'grant-ended');
  return null;
end $$;

create or replace function end_leases_of_member() returns trigger language plpgsql as $$
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

create or replace function end_leases_of_user() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(place_of_user(old.id));
  perform end_leases(array(select id from api_tokens where user_id = old.id), null, 'user-deactivated');
  return null;
end $$;

create or replace function end_leases_of_token() returns trigger language plpgsql as $$
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
