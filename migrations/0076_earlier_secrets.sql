-- As before, and the secret before a rotation lives no longer than a token may, either.
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
    if new.previous_until is not null then
      new.previous_until := least(new.previous_until, new.rotated_at + make_interval(secs => seconds));
    end if;
  end if;
  return new;
end $$;

-- Keys that the bundle had before: states that were changed in it keep them.
alter table bundles add column earlier_keys text[] not null default '{}';
