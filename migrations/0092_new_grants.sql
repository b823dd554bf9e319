-- As before, but new grants that allow do not wait for users of their organization: they end no lease, and a decision without them allows
-- less. `effective_permissions` gives no less with more of them, and roles alone give no more than it does without grants, denials and
-- defaults. Every transaction that inserts or counts grants holds the lock on people; it also orders the row of `organization_access`, which
-- is taken here without the lock of the organization.
create or replace function grants_changed() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform change_access(array(select distinct organization_id from old_rows));
  elsif tg_op = 'INSERT' then
    perform change_access(array(select distinct organization_id from new_rows where effect <> 'allow'));
    update organization_access a set version = version + 1
    where a.organization_id in (
      select organization_id from organization_access
      where organization_id in (select organization_id from new_rows where effect = 'allow') order by 1 for no key update);
  else
    perform change_access(array(select organization_id from new_rows union select organization_id from old_rows));
  end if;
  return null;
end $$;
