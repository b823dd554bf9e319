-- Up Migration
-- Without a transaction

-- A write deletes what it supersedes, but by its snapshot it does not see the row of a write that it had to wait for. A query of a trigger
-- sees what was committed meanwhile. No row is left to delete here when no other write came in between.
create or replace function delete_superseded_checkpoint() returns trigger language plpgsql as $$
begin
  delete from checkpoints c where c.id = old.checkpoint_id and c.update_id = old.id
    and not exists (select 1 from updates u where u.checkpoint_id = c.id and u.exclusive)
    and not exists (select 1 from updates u where u.base_checkpoint_id = c.id and u.exclusive)
    and not exists (select 1 from stacks s where s.checkpoint_id = c.id)
    and not exists (select 1 from stacks s where s.deleted_checkpoint_id = c.id);
  return null;
end $$;

-- Next statement
create or replace trigger updates_checkpoint_superseded after update of checkpoint_id on updates
  for each row when (old.checkpoint_id is not null and new.checkpoint_id is not null and old.checkpoint_id <> new.checkpoint_id)
  execute function delete_superseded_checkpoint();

-- Next statement
-- Those that were left before. Nothing ever refers again to what nothing refers to, so none comes into use meanwhile.
do $$
declare
  found uuid[];
begin
  found := array(
    select c.id from (select update_id from checkpoints where update_id is not null group by update_id having count(*) > 1) m
    join checkpoints c on c.update_id = m.update_id
    where not exists (select 1 from updates u where u.checkpoint_id = c.id)
      and not exists (select 1 from updates u where u.base_checkpoint_id = c.id)
      and not exists (select 1 from stacks s where s.checkpoint_id = c.id)
      and not exists (select 1 from stacks s where s.deleted_checkpoint_id = c.id));
  for batch in 0 .. coalesce(array_length(found, 1), 0) / 500 loop
    delete from checkpoints where id = any (found[batch * 500 + 1 : (batch + 1) * 500]);
    commit;
  end loop;
end $$;
