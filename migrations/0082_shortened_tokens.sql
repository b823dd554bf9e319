-- When a token expires, for a statement that waits for locks: it sees commits made during the wait.
create function token_end(token uuid) returns timestamptz language plpgsql as $$
begin
  return (select t.expires_at from api_tokens t where t.id = token);
end $$;

-- As before, but a shortened life waits for starts and renewals that are not committed yet.
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
  elsif new.expires_at < coalesce(old.expires_at, 'infinity') then
    perform lock_exclusive(owner);
    for busy in
      select id from updates where token_id = old.id and status in ('not started', 'running')
        and (must_end_at is null or must_end_at > new.expires_at) order by id
    loop
      perform lock_exclusive(busy);
      update updates set expires_at = new.expires_at
      where id = busy and status in ('not started', 'running') and expires_at > new.expires_at;
    end loop;
  end if;
  return null;
end $$;
