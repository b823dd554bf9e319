-- A limit for the lives of tokens holds for tokens that are being made, and a legal hold keeps approvals whose commits need another.
-- Without a transaction

-- As before, but a token that is being made waits for a limit of its organizations that is not committed, and such a limit for the token. The
-- member, too: a membership that is not committed may bring a limit. For key share: changes of grants do not wait.
create or replace function limit_token_life() returns trigger language plpgsql as $$
declare
  seconds bigint;
begin
  if new.listed_in is not null or new.is_session then return new; end if;
  if tg_op = 'INSERT' and new.user_id is not null then perform lock_shared(place_of_user(new.user_id)); end if;
  select min(l.max_token_seconds) into seconds from (
    select a.max_token_seconds from organization_access a
    where a.organization_id = any (array(
      select new.organization_id union all select m.organization_id from memberships m where m.user_id = new.user_id))
    order by a.organization_id for key share of a) l;
  if seconds is not null then
    new.expires_at := least(new.expires_at, coalesce(new.rotated_at, new.created_at) + make_interval(secs => seconds));
    if new.previous_until is not null then
      new.previous_until := least(new.previous_until, new.rotated_at + make_interval(secs => seconds));
    end if;
  end if;
  return new;
end $$;

-- Next statement
-- As before, but waits for tokens of the member that are being made.
create or replace function limit_tokens_of_member() returns trigger language plpgsql as $$
begin
  if exists (select 1 from organization_access where organization_id = new.organization_id and max_token_seconds is not null) then
    perform lock_exclusive(place_of_user(new.user_id));
    update api_tokens set expires_at = expires_at
    where user_id = new.user_id and revoked_at is null and (expires_at is null or expires_at > now());
  end if;
  return null;
end $$;

-- Next statement
-- When another approval took its place under a legal hold. Of those in place, there is one for each stack, kind and commit.
alter table update_approvals add column if not exists superseded_at timestamptz;

-- Next statement
drop index concurrently if exists update_approvals_current;

-- Next statement
create unique index concurrently update_approvals_current on update_approvals (stack_id, kind, commit_id) where superseded_at is null;

-- Next statement
drop index concurrently if exists update_approvals_key;

-- Next statement
-- Nobody is notified of what is only kept.
create or replace trigger update_approvals_notified_of_request after insert on update_approvals
  for each row when (new.superseded_at is null) execute function notify_of_approval();

-- Next statement
create or replace function keep_held_approval() returns trigger language plpgsql as $$
begin
  if exists (select 1 from stacks s where s.id = old.stack_id and s.held_at is not null) then
    old.id := gen_random_uuid();
    old.superseded_at := clock_timestamp();
    old.expires_at := least(old.expires_at, old.superseded_at);
    insert into update_approvals select old.*;
  end if;
  return new;
end $$;

-- Next statement
create or replace trigger update_approvals_kept before update on update_approvals
  for each row when (old.approved_at is not null and new.approved_at is distinct from old.approved_at)
  execute function keep_held_approval();
