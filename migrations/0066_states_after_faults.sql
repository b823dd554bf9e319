-- After a fault in a journal: the bundle follows a state that is replayed again, and readers of one with gaps learn what the CLI accepts.

-- The checkpoint of the state that the bundle has; null: not known.
alter table bundled_stacks add column checkpoint_id uuid;

-- An update notes the stack when it ends.
create trigger stacks_state_noted after update of checkpoint_id on stacks
  for each row when (old.checkpoint_id is distinct from new.checkpoint_id and old.active_update_id is null and new.active_update_id is null)
  execute function note_stack_change();

-- The CLI refuses a state in which a resource is not after what it needs, except to repair it.
create or replace function describe_missing_entries(missing text) returns text language sql immutable
return 'journal entries ' || missing || ' are missing. They never arrived, or were lost after they had been acknowledged, as by a restore '
  'or a fail-over of the database. Run pulumi state repair, then pulumi refresh, and compare the result with your provider. '
  'An operator then runs holdfast admin accept';
