-- Up Migration

-- What decides about somebody who is signed in by a browser is what decides about the holder of a token: each session that calls the
-- dashboard's API has a row here, with the id of the session. Nobody can present it: its hash is that of a value that was not kept.
alter table api_tokens add column is_session boolean not null default false;
create index api_tokens_session on api_tokens (expires_at) where is_session;

-- Sessions have limits of their own: a policy on the life of tokens does not end them.
create or replace function limit_token_life() returns trigger language plpgsql as $$
declare
  seconds bigint;
begin
  if new.listed_in is not null or new.is_session then return new; end if;
  select min(a.max_token_seconds) into seconds from organization_access a
  where a.max_token_seconds is not null and (a.organization_id = new.organization_id
    or a.organization_id in (select m.organization_id from memberships m where m.user_id = new.user_id));
  if seconds is not null then
    new.expires_at := least(new.expires_at, coalesce(new.rotated_at, new.created_at) + make_interval(secs => seconds));
  end if;
  return new;
end $$;

-- Whether the token is not that of a session, or of one that has not ended. It stays so until the end of the transaction. Whoever ends
-- sessions of a user whose rights they change has locked the user alone before, so call this after the user is locked.
create function hold_session(token uuid) returns boolean language plpgsql as $$
begin
  if exists (select 1 from api_tokens t where t.id = token and t.is_session) then
    perform 1 from sessions s where s.id = token for share;
    return found;
  end if;
  return true;
end $$;

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
  if owner is not null then perform lock_shared(owner); end if;
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
  select coalesce(user_id, organization_id) into owner from api_tokens where id = token;
  if owner is null then return false; end if;
  perform lock_shared(owner);
  return hold_session(token) and exists (
    select 1 from api_tokens t left join users u on u.id = t.user_id
    where t.id = token and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock_timestamp())
      and u.deactivated_at is null);
end $$;
