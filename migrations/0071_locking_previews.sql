-- The permission that an update needs: a preview that locks its stack needs that of updates.
create function permission_of_update(dry_run boolean, exclusive boolean) returns integer language sql immutable as $$
  select case when dry_run and not exclusive then 2 else 4 end
$$;

-- As before, with the permission by permission_of_update.
create or replace function end_unpermitted_leases(organization uuid, of_stack uuid) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    with active as materialized (
      select u.id, u.token_id, u.stack_id, permission_of_update(u.dry_run, u.exclusive) as needed, p.name as project_name, s.name as stack_name
      from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
      where u.status in ('not started', 'running') and u.end_reason is null and u.token_id is not null
        and p.organization_id = organization and (of_stack is null or u.stack_id = of_stack)
    ), of_tokens as materialized (
      select token_id, token_facts(token_id, organization) as facts from (select distinct token_id from active) tokens
    ), of_stacks as materialized (
      select token_id, stack_id, effective_permissions(facts, organization, project_name, stack_name) as permissions
      from (select distinct token_id, stack_id, project_name, stack_name from active) held join of_tokens using (token_id)
    )
    select id from active join of_stacks using (token_id, stack_id)
    where permissions & needed = 0),
    'grant-ended');
end $$;

-- As before, with the permission by permission_of_update.
create or replace function end_leases_of_member() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(place_of_user(old.user_id));
  if tg_op = 'UPDATE' and new.user_id = old.user_id and new.organization_id = old.organization_id then
    perform end_active_leases(array(
      select u.id from updates u join api_tokens t on t.id = u.token_id
      join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
      where t.user_id = new.user_id and p.organization_id = new.organization_id
        and u.status in ('not started', 'running') and u.end_reason is null
        and coalesce(token_permissions(u.token_id, u.stack_id), 0) & permission_of_update(u.dry_run, u.exclusive) = 0),
      'membership-ended');
    return null;
  end if;
  perform end_leases(array(select id from api_tokens where user_id = old.user_id), old.organization_id, 'membership-ended');
  return null;
end $$;

-- As before, with the permission by permission_of_update.
create or replace function token_rights_changed() returns trigger language plpgsql as $$
begin
  perform lock_exclusive(coalesce(place_of_user(old.user_id), old.organization_id));
  perform end_active_leases(array(
    select u.id from updates u
    where u.token_id = new.id and u.status in ('not started', 'running') and u.end_reason is null
      and coalesce(token_permissions(u.token_id, u.stack_id), 0) & permission_of_update(u.dry_run, u.exclusive) = 0),
    'grant-ended');
  return null;
end $$;
