-- Up Migration

-- Says to the client of the statement what has changed: it tells others once the transaction has ended. An INFO message takes no lock and
-- no round trip. NOTIFY would let all committing transactions of the database wait for each other.
create function tell_live(kind text, organization uuid, of_stack uuid, of_update uuid) returns void language plpgsql as $$
begin
  raise info 'holdfast_live' using detail =
    concat_ws(' ', kind, coalesce(organization::text, '-'), coalesce(of_stack::text, '-'), coalesce(of_update::text, '-'));
end $$;

create function tell_live_of_update() returns trigger language plpgsql as $$
begin
  perform tell_live(
    case new.status when 'not started' then 'update.created' when 'running' then 'update.started' else 'update.ended' end,
    coalesce(new.organization_id, (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id)),
    new.stack_id, new.id);
  return null;
end $$;
create trigger updates_live_inserted after insert on updates for each row execute function tell_live_of_update();
create trigger updates_live_changed after update of status on updates
  for each row when (old.status <> new.status) execute function tell_live_of_update();

create function tell_live_of_stack() returns trigger language plpgsql as $$
begin
  perform tell_live('stack.changed', (select p.organization_id from projects p where p.id = new.project_id), new.id, null);
  return null;
end $$;
create trigger stacks_live_inserted after insert on stacks for each row execute function tell_live_of_stack();
create trigger stacks_live_changed after update of stack_version, checkpoint_id, tags, remote_config, name, project_id, deleted_at on stacks
  for each row when ((old.stack_version, old.checkpoint_id, old.tags, old.remote_config, old.name, old.project_id, old.deleted_at)
    is distinct from (new.stack_version, new.checkpoint_id, new.tags, new.remote_config, new.name, new.project_id, new.deleted_at))
  execute function tell_live_of_stack();

create function tell_live_of_queue() returns trigger language plpgsql as $$
declare
  place lock_waiters := coalesce(new, old);
begin
  perform tell_live('queue.changed',
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = place.stack_id), place.stack_id, null);
  return null;
end $$;
create trigger lock_waiters_live after insert or delete on lock_waiters for each row execute function tell_live_of_queue();
create trigger lock_waiters_live_changed after update of superseded_by, held_by on lock_waiters
  for each row when ((old.superseded_by, old.held_by) is distinct from (new.superseded_by, new.held_by))
  execute function tell_live_of_queue();

create function tell_live_of_index() returns trigger language plpgsql as $$
begin
  perform tell_live('index.changed',
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id), new.stack_id, null);
  return null;
end $$;
create trigger state_indexes_live after update of edition on state_indexes
  for each row when (old.edition <> new.edition) execute function tell_live_of_index();

-- Whoever loses a right must not wait for a client that may have died meanwhile. Such changes are rare, so that their commits may wait for
-- each other. Within a transaction, equal notifications are sent once.
create function tell_live_of_rights() returns trigger language plpgsql as $$
begin
  if tg_argv[0] = 'organization' then
    perform pg_notify('holdfast_live', 'rights organization ' || coalesce(new.organization_id, old.organization_id));
  elsif tg_table_name = 'users' then
    perform pg_notify('holdfast_live', 'rights user ' || old.id);
  elsif old.user_id is null then
    -- A token of a team or an organization.
    perform pg_notify('holdfast_live', 'rights organization ' || old.organization_id);
  else
    perform pg_notify('holdfast_live', 'rights user ' || old.user_id);
  end if;
  return null;
end $$;
create trigger organization_access_live after update of version, default_permissions on organization_access
  for each row execute function tell_live_of_rights('organization');
create trigger memberships_live after update of role or delete on memberships for each row execute function tell_live_of_rights('user');
create trigger users_live after update of deactivated_at, site_admin or delete on users
  for each row execute function tell_live_of_rights('user');
create trigger sessions_live after delete on sessions for each row execute function tell_live_of_rights('user');
create trigger api_tokens_live after update of revoked_at, expires_at, scopes, role on api_tokens
  for each row when (old.revoked_at is null and (old.revoked_at, old.expires_at, old.scopes, old.role)
    is distinct from (new.revoked_at, new.expires_at, new.scopes, new.role))
  execute function tell_live_of_rights('user');
create trigger api_tokens_live_deleted after delete on api_tokens
  for each row when (old.revoked_at is null and (old.expires_at is null or old.expires_at > clock_timestamp()))
  execute function tell_live_of_rights('user');
