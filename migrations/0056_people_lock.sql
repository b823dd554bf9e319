-- Changes of users, memberships and tokens are made one at a time on the whole server. A waiting one keeps a connection, so it does not wait
-- long. The limit is for this lock alone: later locks of the transaction are waited for as before.
create function lock_people(wait_ms integer) returns void language plpgsql set lock_timeout = '2s' as $$
begin
  perform set_config('lock_timeout', wait_ms::text, true);
  perform pg_advisory_xact_lock(hashtextextended('holdfast people', 0));
end $$;

-- As before, with the facts of each token computed once, not once for each of its updates.
create or replace function end_unpermitted_leases(organization uuid, of_stack uuid) returns void language plpgsql as $$
begin
  perform end_active_leases(array(
    with active as materialized (
      select u.id, u.token_id, u.stack_id, u.dry_run, p.name as project_name, s.name as stack_name
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
    where permissions & (case when dry_run then 2 else 4 end) = 0),
    'grant-ended');
end $$;
