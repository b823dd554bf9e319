-- Up Migration

-- Webhooks are told of what holds updates back. Triggers, as in 0044, so that nothing is changed without telling it, commands of operators included.

alter table lock_waiters
  -- Webhooks were told that it waits too long, and that a freeze holds it back.
  add column is_late_told boolean not null default false,
  add column is_freeze_told boolean not null default false;

-- A freeze of a stack is told to its webhooks, too.
create function tell_of_freeze() returns trigger language plpgsql as $$
declare
  rule update_rules := coalesce(new, old);
begin
  -- Also false while the organization is being deleted.
  if not exists (select 1 from webhooks w join organizations o on o.id = w.organization_id where o.id = rule.organization_id) then
    return null;
  end if;
  perform tell_webhooks(rule.organization_id,
    (select s.id from stacks s join projects p on p.id = s.project_id
     where p.organization_id = rule.organization_id and p.name = rule.project and s.name = rule.stack and s.deleted_at is null),
    null, case when tg_op = 'DELETE' then 'freeze_lifted' else 'freeze_set' end, 'holdfast',
    json_build_object('text', rule.note, 'rule', rule.id, 'project', rule.project, 'stack', rule.stack,
      'tag', case when rule.tag_name is not null then json_build_object('name', rule.tag_name, 'value', rule.tag_value) end,
      'settings', rule.settings)::text);
  return null;
end $$;
create trigger update_rules_told after insert or update on update_rules
  for each row when (new.kind = 'freeze') execute function tell_of_freeze();
create trigger update_rules_told_of_end after delete on update_rules
  for each row when (old.kind = 'freeze') execute function tell_of_freeze();

create function tell_of_approval() returns trigger language plpgsql as $$
begin
  perform tell_webhooks(p.organization_id, new.stack_id, new.update_id,
    case when new.approved_at is null then 'approval_asked' else 'approval_given' end, 'holdfast',
    json_build_object('text', case when new.approved_at is null then new.request else new.reason end, 'approval', new.id,
      'kind', new.kind, 'commit', new.commit_id, 'askedBy', new.asked_by, 'approvedBy', new.approved_by, 'until', new.expires_at)::text)
  from stacks s join projects p on p.id = s.project_id
  where s.id = new.stack_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
-- Of a commit that is approved already, nobody has to be asked.
create trigger update_approvals_told_of_request after insert on update_approvals
  for each row execute function tell_of_approval();
create trigger update_approvals_told after update on update_approvals
  for each row when (new.approved_at is distinct from old.approved_at or (new.approved_at is null and new.asked_at > old.asked_at))
  execute function tell_of_approval();

create function tell_of_stop() returns trigger language plpgsql as $$
begin
  perform tell_webhooks(p.organization_id, u.stack_id, u.id, 'update_stopped', 'holdfast',
    json_build_object('text', new.stop_message, 'reason', new.stop_reason)::text)
  from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
  where u.id = new.update_id and exists (select 1 from webhooks w where w.organization_id = p.organization_id);
  return null;
end $$;
create trigger update_guards_told after insert on update_guards
  for each row when (new.stopped_at is not null) execute function tell_of_stop();
create trigger update_guards_told_of_stop after update of stopped_at on update_guards
  for each row when (old.stopped_at is null and new.stopped_at is not null) execute function tell_of_stop();
