-- The stack with which `stack init --teams` made the grant. The grant is deleted with the stack. Null: nothing but a removal ends it.
alter table grants add column stack_id uuid;
