-- The stack with which `stack init --teams` made the grant. The grant is by the name of that time, also after a rename, and is
-- deleted with the stack. Null: nothing but a removal ends it.
alter table grants add column stack_id uuid;
