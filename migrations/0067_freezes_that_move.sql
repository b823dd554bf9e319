-- Up Migration

-- A freeze that is changed to be for other stacks is lifted where it was: the webhooks of the stack that it was for are told.
create or replace function tell_of_freeze() returns trigger language plpgsql as $$
begin
  -- Also false while the organization is being deleted.
  if not exists (select 1 from webhooks w join organizations o on o.id = w.organization_id
                 where o.id = coalesce(new.organization_id, old.organization_id)) then
    return null;
  end if;
  if tg_op = 'DELETE' or tg_op = 'UPDATE' and
    (old.project, old.stack, old.tag_name, old.tag_value) is distinct from (new.project, new.stack, new.tag_name, new.tag_value)
  then
    perform tell_of_freeze_rule(old, 'freeze_lifted');
  end if;
  if tg_op <> 'DELETE' then
    perform tell_of_freeze_rule(new, 'freeze_set');
  end if;
  return null;
end $$;

create function tell_of_freeze_rule(rule update_rules, event text) returns void language sql as $$
  select tell_webhooks(rule.organization_id,
    (select s.id from stacks s join projects p on p.id = s.project_id
     where p.organization_id = rule.organization_id and p.name = rule.project and s.name = rule.stack and s.deleted_at is null),
    null, event, 'holdfast',
    json_build_object('text', rule.note, 'rule', rule.id, 'project', rule.project, 'stack', rule.stack,
      'tag', case when rule.tag_name is not null then json_build_object('name', rule.tag_name, 'value', rule.tag_value) end,
      'settings', rule.settings)::text);
$$;
