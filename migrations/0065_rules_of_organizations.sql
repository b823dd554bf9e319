-- A change of rules wakes only waiting calls of its organization.

-- A statement or a transaction of many rows still sends one notification per organization.
create or replace function update_rules_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('holdfast_update_queue', 'rules:' || coalesce(new.organization_id, old.organization_id));
  return null;
end $$;

drop trigger update_rules_changed on update_rules;
create trigger update_rules_changed after insert or update or delete on update_rules
  for each row execute function update_rules_changed();
