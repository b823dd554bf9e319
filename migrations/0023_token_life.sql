-- Up Migration

alter table organization_access
  -- Longest life of a token, in seconds; null: no limit.
  add column max_token_seconds bigint;

alter table api_tokens
  -- When the present secret was made, if it is not the first one.
  add column rotated_at timestamptz,
  -- Hash of the secret before, as it was stored, and until when it is valid.
  add column previous_hash bytea,
  add column previous_until timestamptz;
create unique index api_tokens_previous_hash on api_tokens (previous_hash) where previous_hash is not null;

-- Tokens that a bootstrap file lists are as old as the file says: changing them there is how they are replaced.
create function limit_token_life() returns trigger language plpgsql as $$
declare
  seconds bigint;
begin
  if new.listed_in is not null then return new; end if;
  select min(a.max_token_seconds) into seconds from organization_access a
  where a.max_token_seconds is not null and (a.organization_id = new.organization_id
    or a.organization_id in (select m.organization_id from memberships m where m.user_id = new.user_id));
  if seconds is not null then
    new.expires_at := least(new.expires_at, coalesce(new.rotated_at, new.created_at) + make_interval(secs => seconds));
  end if;
  return new;
end $$;
create trigger api_tokens_limited before insert or update of expires_at, user_id, organization_id, rotated_at on api_tokens
  for each row execute function limit_token_life();

create function max_token_life_changed() returns trigger language plpgsql as $$
begin
  update api_tokens t set expires_at = t.expires_at
  where t.revoked_at is null and (t.organization_id = new.organization_id
    or t.user_id in (select m.user_id from memberships m where m.organization_id = new.organization_id));
  return null;
end $$;
create trigger organization_access_token_life after update of max_token_seconds on organization_access
  for each row when (new.max_token_seconds is not null and new.max_token_seconds is distinct from old.max_token_seconds)
  execute function max_token_life_changed();

create function limit_tokens_of_member() returns trigger language plpgsql as $$
begin
  if exists (select 1 from organization_access where organization_id = new.organization_id and max_token_seconds is not null) then
    update api_tokens set expires_at = expires_at where user_id = new.user_id and revoked_at is null;
  end if;
  return null;
end $$;
create trigger memberships_token_life after insert or update of organization_id, user_id on memberships
  for each row execute function limit_tokens_of_member();
