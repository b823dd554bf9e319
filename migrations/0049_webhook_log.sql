-- Removing a webhook deletes a bounded number of rows, and stacks' webhooks are not notified of their creation and deletion.

-- What is left of a longer log cannot be read any more, and is deleted by its age.
create or replace function forget_webhook() returns trigger language plpgsql as $$
begin
  delete from webhook_deliveries where ctid = any (array(select ctid from webhook_deliveries where webhook_id = old.id limit 10000));
  return null;
end $$;

-- As in migration 11. A deleted stack has its webhooks while it can be restored.
create or replace function notify_webhooks(notified_organization uuid, notified_stack uuid, notified_update uuid, notified_event text, notified_group text, notified_details text)
returns void language plpgsql as $$
declare
  receivers uuid[];
  told uuid;
begin
  select array_agg(w.id) into receivers from webhooks w
  where w.organization_id = notified_organization and w.is_active
    and (w.stack_id is null or (w.stack_id = notified_stack and notified_event not in ('stack_created', 'stack_deleted')))
    and (notified_event = any (w.events) or notified_group = any (w.event_groups) or (w.events = '{}' and w.event_groups = '{}'));
  if receivers is null then return; end if;
  insert into webhook_events (organization_id, organization, project, stack, stack_id, update_id, event, details)
  select o.id, o.name, p.name, s.name, s.id, notified_update, notified_event, notified_details
  from organizations o left join stacks s on s.id = notified_stack left join projects p on p.id = s.project_id
  where o.id = notified_organization
  returning id into told;
  insert into webhook_deliveries (webhook_id, event_id) select receiver, told from unnest(receivers) as receiver;
end $$;
