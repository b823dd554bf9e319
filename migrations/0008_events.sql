-- Engine events of updates, and notifications for browsers that show changes.

create table engine_events (
  update_id uuid not null references updates (id) on delete cascade,
  sequence bigint not null,
  -- The fields that readers of an event page need are stored beside each event, so that they need not parse it: the name of its payload
  -- (empty if the event itself contains its type) and the resource that it concerns.
  type text not null default '',
  urn text,
  event text not null,
  primary key (update_id, sequence)
);

-- Archived events of ended updates: a segment replaces the event rows from its first to its last sequence. Segments of an
-- update never overlap.
create table event_segments (
  id uuid primary key default gen_random_uuid(),
  update_id uuid not null references updates (id) on delete cascade,
  first_sequence bigint not null,
  last_sequence bigint not null,
  event_count integer not null,
  -- JSON text: position, checksum and contents of each compressed frame.
  frames text not null,
  -- Hash and size of all frames decompressed.
  sha256 bytea not null,
  size_bytes bigint not null,
  stored_bytes bigint not null,
  codec text not null,
  -- The frames are either inline or in a blob.
  inline_bytes bytea,
  blob_key text references blobs (key),
  checked_at timestamptz not null default now(),
  damaged_at timestamptz,
  constraint event_segments_place_check check ((inline_bytes is null) <> (blob_key is null)),
  constraint event_segments_range_check check (first_sequence <= last_sequence),
  constraint event_segments_last_key unique (update_id, last_sequence)
);
-- Already compressed, so Postgres should not try.
alter table event_segments alter column inline_bytes set storage external;
create index event_segments_blob on event_segments (blob_key) where blob_key is not null;
create index event_segments_checked on event_segments (checked_at);
create index event_segments_damaged on event_segments (checked_at) where damaged_at is not null;

create trigger event_segments_blob_referenced after insert on event_segments
  for each row when (new.blob_key is not null) execute function note_blob_referenced();
create trigger event_segments_blob_released after delete on event_segments
  for each row when (old.blob_key is not null) execute function note_blob_released();

-- Outputs that an update or a preview has removed, according to its events, for stacks with a rule about consumers. Names only, as a JSON list.
create table output_losses (
  update_id uuid primary key references updates (id) on delete cascade,
  names text not null,
  -- Set if the events about removed outputs could not be read when the update ended. `names` is then an empty list.
  is_unknown boolean not null default false
);

-- Reports the change to the client of the statement, which notifies others once the transaction has ended. An INFO message takes no lock and
-- no round trip. NOTIFY would make all committing transactions of the database wait for each other.
create function notify_live(kind text, organization uuid, of_stack uuid, of_update uuid) returns void language plpgsql as $$
begin
  raise info 'holdfast_live' using detail =
    concat_ws(' ', kind, coalesce(organization::text, '-'), coalesce(of_stack::text, '-'), coalesce(of_update::text, '-'));
end $$;

create function notify_live_of_update() returns trigger language plpgsql as $$
declare
  notified_organization uuid := new.organization_id;
begin
  if notified_organization is null then
    select p.organization_id into notified_organization from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id;
  end if;
  raise info 'holdfast_live' using detail = concat_ws(' ',
    case new.status when 'not started' then 'update.created' when 'running' then 'update.started' else 'update.ended' end,
    coalesce(notified_organization::text, '-'), new.stack_id, new.id);
  return null;
end $$;
create trigger updates_live_inserted after insert on updates for each row execute function notify_live_of_update();
create trigger updates_live_changed after update of status on updates
  for each row when (old.status <> new.status) execute function notify_live_of_update();

create function notify_live_of_stack() returns trigger language plpgsql as $$
declare
  notified_organization uuid;
begin
  select p.organization_id into notified_organization from projects p where p.id = new.project_id;
  raise info 'holdfast_live' using detail = concat_ws(' ', 'stack.changed', coalesce(notified_organization::text, '-'), new.id, '-');
  return null;
end $$;
create trigger stacks_live_inserted after insert on stacks for each row execute function notify_live_of_stack();
create trigger stacks_live_changed after update of stack_version, checkpoint_id, tags, name, project_id, deleted_at on stacks
  for each row when ((old.stack_version, old.checkpoint_id, old.tags, old.name, old.project_id, old.deleted_at)
    is distinct from (new.stack_version, new.checkpoint_id, new.tags, new.name, new.project_id, new.deleted_at))
  execute function notify_live_of_stack();

create function notify_live_of_queue() returns trigger language plpgsql as $$
declare
  place update_queue_waiters := coalesce(new, old);
begin
  perform notify_live('queue.changed',
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = place.stack_id), place.stack_id, null);
  return null;
end $$;
create trigger update_queue_waiters_live after insert or delete on update_queue_waiters for each row execute function notify_live_of_queue();
create trigger update_queue_waiters_live_changed after update of superseded_by, held_by on update_queue_waiters
  for each row when ((old.superseded_by, old.held_by) is distinct from (new.superseded_by, new.held_by))
  execute function notify_live_of_queue();

-- A loss of rights must be notified even if the client of the statement dies meanwhile. Such changes are rare, so their commits may wait for each
-- other. Within a transaction, equal notifications are sent once.
create function notify_live_of_rights() returns trigger language plpgsql as $$
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
  for each row execute function notify_live_of_rights('organization');
create trigger memberships_live after update of role or delete on memberships for each row execute function notify_live_of_rights('user');
create trigger users_live after update of deactivated_at, site_admin or delete on users
  for each row execute function notify_live_of_rights('user');
create trigger sessions_live after delete on sessions for each row execute function notify_live_of_rights('user');
create trigger api_tokens_live after update of revoked_at, expires_at, scopes, role on api_tokens
  for each row when (old.revoked_at is null and (old.revoked_at, old.expires_at, old.scopes, old.role)
    is distinct from (new.revoked_at, new.expires_at, new.scopes, new.role))
  execute function notify_live_of_rights('user');
create trigger api_tokens_live_deleted after delete on api_tokens
  for each row when (old.revoked_at is null and (old.expires_at is null or old.expires_at > clock_timestamp()))
  execute function notify_live_of_rights('user');
