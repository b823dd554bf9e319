-- Up Migration

-- A deactivated user cannot log in. Clearing the time reactivates the user.
alter table users
  add column deactivated_at timestamptz,
  -- Organization under which the bootstrap file made this user a site admin.
  add column site_admin_listed_in uuid references organizations (id) on delete set null;
alter table memberships
  -- Whether the bootstrap file created or last changed it.
  add column is_listed boolean not null default false;
alter table api_tokens
  -- Organization under which the bootstrap file lists this token.
  add column listed_in uuid references organizations (id) on delete set null,
  -- Revoked because the bootstrap file no longer lists it; restored when the file lists it again.
  add column is_withdrawn boolean not null default false;
alter table installation add column bootstrap_revision bigint;

-- Revokes tokens that the README once showed as examples.
update api_tokens set revoked_at = now()
where revoked_at is null and token_hash in (
  sha256('at-least-16-characters-of-randomness'), sha256('another-long-random-string'));

alter table updates
  -- API token that created the update, then the one that started it. No foreign key, because tokens can be deleted.
  add column token_id uuid,
  -- Latest time to which the lease can be renewed. Set at the start.
  add column must_end_at timestamptz;
create index updates_active_by_token on updates (token_id) where status in ('not started', 'running');

-- Ends the leases of active updates in the same transaction that removes their token, user or membership. The raised epoch
-- rejects writes admitted before, and end_reason rejects later ones. The update itself is cancelled when it is next closed.
create function end_leases(tokens uuid[], organization uuid, reason text) returns void language plpgsql as $$
begin
  with lost as (
    select u.id from updates u
    where u.token_id = any (tokens) and u.status in ('not started', 'running') and u.end_reason is null
      and (organization is null or exists (
        select 1 from stacks s join projects p on p.id = s.project_id where s.id = u.stack_id and p.organization_id = organization))
    -- Always in the same order, so that two who do this do not wait for each other.
    order by u.id for update
  )
  update updates u set expires_at = least(u.expires_at, clock_timestamp()), epoch = u.epoch + 1, end_reason = reason
  from lost where u.id = lost.id;
end $$;

create function end_leases_of_token() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform end_leases(array[old.id], null, 'token-revoked');
    return old;
  end if;
  if new.revoked_at is not null or new.user_id <> old.user_id or new.id <> old.id then
    perform end_leases(array[old.id], null, 'token-revoked');
  elsif new.expires_at <= clock_timestamp() then
    perform end_leases(array[old.id], null, 'token-expired');
  else
    update updates u set expires_at = new.expires_at
    from (
      select id from updates where token_id = old.id and status in ('not started', 'running') and expires_at > new.expires_at
      order by id for update
    ) shortened where u.id = shortened.id;
  end if;
  return null;
end $$;
create trigger api_tokens_end_leases after update of id, user_id, revoked_at, expires_at on api_tokens
  for each row when (old.* is distinct from new.*) execute function end_leases_of_token();
create trigger api_tokens_deleted_end_leases before delete on api_tokens
  for each row execute function end_leases_of_token();

create function end_leases_of_user() returns trigger language plpgsql as $$
begin
  perform end_leases(array(select id from api_tokens where user_id = old.id), null, 'user-deactivated');
  return null;
end $$;
-- No trigger for deleted users: deleting a user deletes its tokens.
create trigger users_end_leases after update of deactivated_at on users
  for each row when (new.deactivated_at is not null) execute function end_leases_of_user();

create function end_leases_of_member() returns trigger language plpgsql as $$
begin
  perform end_leases(array(select id from api_tokens where user_id = old.user_id), old.organization_id, 'membership-ended');
  return null;
end $$;
create trigger memberships_end_leases after update of organization_id, user_id, role on memberships
  for each row when (new.role not in ('member', 'admin') or new.user_id <> old.user_id or new.organization_id <> old.organization_id)
  execute function end_leases_of_member();
create trigger memberships_deleted_end_leases after delete on memberships
  for each row execute function end_leases_of_member();
