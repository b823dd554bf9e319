-- Webhooks, their events, and the deliveries.

-- Webhooks of an organization, or of one stack.
create table webhooks (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  -- Null: receives events of all stacks of the organization.
  stack_id uuid references stacks (id) on delete cascade,
  -- Its id in paths.
  name text not null,
  display_name text not null,
  url text not null,
  format text not null,
  is_active boolean not null,
  -- Names of events and of their groups; both empty: all events.
  events text[] not null,
  event_groups text[] not null,
  -- The key of its signatures, or the token of a code host, encrypted with a master key.
  secret bytea,
  master_key_id text,
  modified_at timestamptz not null default now(),
  created_by uuid references users (id) on delete set null,
  constraint webhooks_name_key unique nulls not distinct (organization_id, stack_id, name),
  constraint webhooks_display_name_key unique nulls not distinct (organization_id, stack_id, display_name),
  constraint webhooks_secret_check check ((secret is null) = (master_key_id is null))
);
create index webhooks_stack on webhooks (stack_id) where stack_id is not null;

-- Events for webhooks. Names are as of that time; stack and update may be gone when the event is delivered.
create table webhook_events (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organizations (id) on delete cascade,
  organization text not null,
  project text,
  stack text,
  stack_id uuid,
  update_id uuid,
  event text not null,
  occurred_at timestamptz not null default clock_timestamp(),
  -- JSON text of an object: further details of the event.
  details text not null default '{}',
  -- JSON text of the payload, from the first attempt on: later attempts send the same.
  facts text
);
create index webhook_events_organization on webhook_events (organization_id);
create index webhook_events_age on webhook_events (occurred_at);

-- One event for one webhook, and the result of the last attempt.
create table webhook_deliveries (
  id uuid primary key default gen_random_uuid(),
  number bigint generated always as identity,
  -- No foreign key: an event must not wait for, or fail by, the deletion of a webhook. A trigger deletes what is left.
  webhook_id uuid not null,
  event_id uuid not null references webhook_events (id) on delete cascade,
  state text not null default 'waiting',
  -- Requested by a caller who waits for the result: one attempt.
  is_manual boolean not null default false,
  attempts integer not null default 0,
  next_at timestamptz not null default clock_timestamp(),
  -- Claimed until then by the process that makes the attempt.
  claimed_until timestamptz,
  attempted_at timestamptz,
  duration_ms integer,
  request_url text,
  request_headers text,
  -- Null: there was no response; the reason is in response_body.
  response_status integer,
  response_headers text,
  response_body text,
  constraint webhook_deliveries_state_check check (state in ('waiting', 'delivered', 'failed', 'left-out'))
);
create index webhook_deliveries_due on webhook_deliveries (next_at) where state = 'waiting';
create index webhook_deliveries_waiting on webhook_deliveries (webhook_id, next_at) where state = 'waiting';
create index webhook_deliveries_claimed on webhook_deliveries (webhook_id) where claimed_until is not null;
create index webhook_deliveries_log on webhook_deliveries (webhook_id, number desc);
create index webhook_deliveries_event on webhook_deliveries (event_id);

create function forget_webhook() returns trigger language plpgsql as $$
begin
  delete from webhook_deliveries where webhook_id = old.id;
  return null;
end $$;
create trigger webhooks_forgotten after delete on webhooks for each row execute function forget_webhook();

-- Records an event for each webhook that selects it, in the transaction of the change. Takes no lock of a webhook.
create function notify_webhooks(notified_organization uuid, notified_stack uuid, notified_update uuid, notified_event text, notified_group text, notified_details text)
returns void language plpgsql as $$
declare
  receivers uuid[];
  told uuid;
begin
  select array_agg(w.id) into receivers from webhooks w
  where w.organization_id = notified_organization and w.is_active and (w.stack_id is null or w.stack_id = notified_stack)
    and (notified_event = any (w.events) or notified_group = any (w.event_groups) or (w.events = '{}' and w.event_groups = '{}'));
  if receivers is null then return; end if;
  insert into webhook_events (organization_id, organization, project, stack, stack_id, update_id, event, details)
  select o.id, o.name, p.name, s.name, s.id, notified_update, notified_event, notified_details
  from organizations o left join stacks s on s.id = notified_stack left join projects p on p.id = s.project_id
  where o.id = notified_organization
  returning id into told;
  insert into webhook_deliveries (webhook_id, event_id) select receiver, told from unnest(receivers) as receiver;
end $$;

-- The following events are recorded by triggers, so that every change, including commands of operators, is recorded without another round trip.
-- Stacks first: transactions lock stacks before updates.
create function notify_of_stack() returns trigger language plpgsql as $$
begin
  perform notify_webhooks(p.organization_id, new.id, null, case when new.deleted_at is null then 'stack_created' else 'stack_deleted' end,
    'stacks', '{}')
  from projects p where p.id = new.project_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
create trigger stacks_notified_of_creation after insert on stacks for each row execute function notify_of_stack();
create trigger stacks_notified_of_deletion after update of deleted_at on stacks
  for each row when (old.deleted_at is null and new.deleted_at is not null) execute function notify_of_stack();

create function notify_of_restored_stack() returns trigger language plpgsql as $$
begin
  perform notify_webhooks(p.organization_id, new.id, null, 'stack_restored', 'holdfast', '{}')
  from projects p where p.id = new.project_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
create trigger stacks_notified_of_restoration after update of deleted_at on stacks
  for each row when (old.deleted_at is not null and new.deleted_at is null) execute function notify_of_restored_stack();

create function notify_of_update() returns trigger language plpgsql as $$
declare
  notified_organization uuid := coalesce(new.organization_id,
    (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = new.stack_id));
  noun text := case when new.dry_run or new.kind = 'preview' then 'preview' else new.kind end;
begin
  if not exists (select 1 from webhooks where organization_id = notified_organization) then return null; end if;
  if new.status = 'running' then
    perform notify_webhooks(notified_organization, new.stack_id, new.id,
      case noun when 'preview' then 'preview_started' else 'update_started' end, 'holdfast', '{}');
  else
    perform notify_webhooks(notified_organization, new.stack_id, new.id,
      noun || case new.status when 'succeeded' then '_succeeded' else '_failed' end, 'stacks', '{}');
  end if;
  return null;
end $$;
create trigger updates_notified after update of status on updates
  for each row when ((old.status = 'not started' and new.status = 'running')
    or (old.status = 'running' and new.status not in ('not started', 'running')))
  execute function notify_of_update();
-- Imports are recorded as ended.
create trigger updates_notified_of_import after insert on updates
  for each row when (new.kind = 'import' and new.status = 'succeeded') execute function notify_of_update();

create function notify_of_freeze_rule(rule update_rules, event text) returns void language sql as $$
  select notify_webhooks(rule.organization_id,
    (select s.id from stacks s join projects p on p.id = s.project_id
     where p.organization_id = rule.organization_id and p.name = rule.project and s.name = rule.stack and s.deleted_at is null),
    null, event, 'holdfast',
    json_build_object('text', rule.note, 'rule', rule.id, 'project', rule.project, 'stack', rule.stack,
      'tag', case when rule.tag_name is not null then json_build_object('name', rule.tag_name, 'value', rule.tag_value) end,
      'settings', rule.settings)::text);
$$;

-- The webhooks of a stack are notified of its freeze. If the scope of a freeze changes, the webhooks of the previous stack are notified
-- that it was lifted.
create function notify_of_freeze() returns trigger language plpgsql as $$
begin
  -- Also false while the organization is being deleted.
  if not exists (select 1 from webhooks w join organizations o on o.id = w.organization_id
                 where o.id = coalesce(new.organization_id, old.organization_id)) then
    return null;
  end if;
  if tg_op = 'DELETE' or tg_op = 'UPDATE' and
    (old.project, old.stack, old.tag_name, old.tag_value) is distinct from (new.project, new.stack, new.tag_name, new.tag_value)
  then
    perform notify_of_freeze_rule(old, 'freeze_lifted');
  end if;
  if tg_op <> 'DELETE' then
    perform notify_of_freeze_rule(new, 'freeze_set');
  end if;
  return null;
end $$;
create trigger update_rules_notified after insert or update on update_rules
  for each row when (new.kind = 'freeze') execute function notify_of_freeze();
create trigger update_rules_notified_of_end after delete on update_rules
  for each row when (old.kind = 'freeze') execute function notify_of_freeze();

create function notify_of_approval() returns trigger language plpgsql as $$
begin
  perform notify_webhooks(p.organization_id, new.stack_id, new.update_id,
    case when new.approved_at is null then 'approval_asked' else 'approval_given' end, 'holdfast',
    json_build_object('text', case when new.approved_at is null then new.request else new.reason end, 'approval', new.id,
      'kind', new.kind, 'commit', new.commit_id, 'askedBy', new.asked_by, 'approvedBy', new.approved_by, 'until', new.expires_at)::text)
  from stacks s join projects p on p.id = s.project_id
  where s.id = new.stack_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
-- No approval has to be requested for a commit that is approved already.
create trigger update_approvals_notified_of_request after insert on update_approvals
  for each row execute function notify_of_approval();
create trigger update_approvals_notified after update on update_approvals
  for each row when (new.approved_at is distinct from old.approved_at or (new.approved_at is null and new.asked_at > old.asked_at))
  execute function notify_of_approval();

create function notify_of_stop() returns trigger language plpgsql as $$
begin
  perform notify_webhooks(p.organization_id, u.stack_id, u.id, 'update_stopped', 'holdfast',
    json_build_object('text', new.stop_message, 'reason', new.stop_reason)::text)
  from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
  where u.id = new.update_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
create trigger update_limits_notified after insert on update_limits
  for each row when (new.stopped_at is not null) execute function notify_of_stop();
create trigger update_limits_notified_of_stop after update of stopped_at on update_limits
  for each row when (old.stopped_at is null and new.stopped_at is not null) execute function notify_of_stop();
