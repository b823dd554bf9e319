-- The state of a version changes if its journal is replayed again; the bundle follows.

-- The checkpoint of the state that the bundle has; null: not known.
alter table bundled_stacks add column checkpoint_id uuid;

-- An update notes the stack when it ends.
create trigger stacks_state_noted after update of checkpoint_id on stacks
  for each row when (old.checkpoint_id is distinct from new.checkpoint_id and old.active_update_id is null and new.active_update_id is null)
  execute function note_stack_change();
