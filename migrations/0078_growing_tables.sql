-- What grows for years is not read whole.
-- Without a transaction

-- The chunks of one stack in their order.
drop index concurrently if exists version_chunks_stack;

-- Next statement
create index concurrently version_chunks_stack on version_chunks (stack_id, id);

-- Next statement
-- For the foreign keys: the others of these columns are conditional.
drop index concurrently if exists stacks_project;

-- Next statement
create index concurrently stacks_project on stacks (project_id);

-- Next statement
drop index concurrently if exists api_tokens_listed_in;

-- Next statement
create index concurrently api_tokens_listed_in on api_tokens (listed_in) where listed_in is not null;

-- Next statement
drop index concurrently if exists users_site_admin_listed_in;

-- Next statement
create index concurrently users_site_admin_listed_in on users (site_admin_listed_in) where site_admin_listed_in is not null;

-- Next statement
drop index concurrently if exists users_provisioned_by;

-- Next statement
create index concurrently users_provisioned_by on users (provisioned_by) where provisioned_by is not null;

-- Next statement
-- In place of those without the time: an owner and a policy have far more tokens of CI runs that have ended than valid tokens.
drop index concurrently if exists api_tokens_user_life;

-- Next statement
create index concurrently api_tokens_user_life on api_tokens (user_id, expires_at) where user_id is not null;

-- Next statement
drop index concurrently if exists api_tokens_organization_life;

-- Next statement
create index concurrently api_tokens_organization_life on api_tokens (organization_id, expires_at) where organization_id is not null;

-- Next statement
drop index concurrently if exists api_tokens_team_life;

-- Next statement
create index concurrently api_tokens_team_life on api_tokens (team_id, expires_at) where team_id is not null;

-- Next statement
drop index concurrently if exists api_tokens_policy_life;

-- Next statement
create index concurrently api_tokens_policy_life on api_tokens (policy_id, expires_at) where policy_id is not null;

-- Next statement
drop index concurrently if exists api_tokens_user;

-- Next statement
drop index concurrently if exists api_tokens_organization;

-- Next statement
drop index concurrently if exists api_tokens_team;

-- Next statement
drop index concurrently if exists api_tokens_policy;

-- Next statement
-- As in migration 4, for the tokens alone that live longer than the new limit.
create or replace function max_token_life_changed() returns trigger language plpgsql as $$
begin
  update api_tokens t set expires_at = t.expires_at
  where t.id = any (array(
      select o.id from api_tokens o where o.organization_id = new.organization_id and (o.expires_at is null or o.expires_at > now())
      union all
      select p.id from memberships m join api_tokens p on p.user_id = m.user_id
      where m.organization_id = new.organization_id and (p.expires_at is null or p.expires_at > now())))
    and t.revoked_at is null and not t.is_session and t.listed_in is null
    and (t.expires_at is null
      or greatest(t.expires_at, t.previous_until) > coalesce(t.rotated_at, t.created_at) + make_interval(secs => new.max_token_seconds));
  return null;
end $$;

-- Next statement
-- As in migration 4, but tokens that have expired stay as they are.
create or replace function limit_tokens_of_member() returns trigger language plpgsql as $$
begin
  if exists (select 1 from organization_access where organization_id = new.organization_id and max_token_seconds is not null) then
    update api_tokens set expires_at = expires_at
    where user_id = new.user_id and revoked_at is null and (expires_at is null or expires_at > now());
  end if;
  return null;
end $$;

-- Next statement
drop index concurrently if exists users_email_lower;

-- Next statement
create index concurrently users_email_lower on users (lower(email)) where email <> '';

-- Next statement
-- As before, by searches for the names of the claims, not among all members of the organization.
create or replace function people_behind(of_token uuid, of_user uuid) returns uuid[] language sql stable as $$
  select array_remove(array[of_user, t.user_id, t.created_by, t.rotated_by,
      case when t.previous_until > clock_timestamp() then t.previous_rotated_by end]
    || (select i.keys_by from trust_policies p join trusted_issuers i on i.id = p.issuer_id where p.id = t.policy_id)
    || case when t.policy_id is null then '{}' else array(
    select u.id from (
      select id from users where lower(login) in (lower(t.claims ->> 'actor'), lower(t.claims ->> 'user_login'))
      union select id from users where email <> '' and lower(email) = lower(t.claims ->> 'user_email')) u
    cross join lateral (
      select 1 from memberships m where m.user_id = u.id and m.organization_id in (
        select t.organization_id
        union all select o.id from organizations o where t.kind = 'personal' and o.name in (
          select s.organization from jsonb_to_recordset(t.scopes) as s (organization text))) limit 1) m) end, null)
  from (values (of_token)) one (id) left join api_tokens t on t.id = one.id
$$;

-- Next statement
drop index concurrently if exists stack_storage_unmeasured;

-- Next statement
create index concurrently stack_storage_unmeasured on stack_storage (organization_id) where measured_at = '-infinity';
