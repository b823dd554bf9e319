-- Tokens of CI runs are counted, and more of the people behind a token are known.
-- Without a transaction

-- The organization whose policy issued the token, for a CI run; null: another token, or issued before this migration. No foreign key: it only counts.
alter table api_tokens add column if not exists issued_in uuid,
  -- The user who knows the previous secret because a rotation made it; null as for rotated_by.
  add column if not exists previous_rotated_by uuid;

-- Next statement
drop index concurrently if exists api_tokens_issued;

-- Next statement
create index concurrently api_tokens_issued on api_tokens (issued_in, expires_at) include (revoked_at) where issued_in is not null;

-- Next statement
drop index concurrently if exists api_tokens_made;

-- Next statement
-- Tokens of an organization and its teams other than those of CI runs, of which many have ended.
create index concurrently api_tokens_made on api_tokens (organization_id) where organization_id is not null and policy_id is null;

-- Next statement
-- As before, but tokens that have expired stay as they are.
create or replace function revoke_tokens_of_policy() returns trigger language plpgsql as $$
begin
  update api_tokens set revoked_at = now() where policy_id = old.id and revoked_at is null and (expires_at is null or expires_at > now());
  return null;
end $$;

-- Next statement
-- As before, with the user who knows the previous secret. A CI run's token of a user works in the organizations that its scopes name.
create or replace function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by,
      case when t.previous_until > clock_timestamp() then t.previous_rotated_by end]
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

-- Next statement
-- As before, also where no grant was ever made: a member keeps what the new role permits.
create or replace function end_leases_of_member() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(place_of_user(old.user_id));
  if tg_op = 'UPDATE' and new.user_id = old.user_id and new.organization_id = old.organization_id then
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
