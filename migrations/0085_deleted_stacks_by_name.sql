-- Up Migration
-- Without a transaction

drop index concurrently if exists stacks_deleted_name;

-- Next statement

-- The stack that had a name before, while it can be restored.
create index concurrently stacks_deleted_name on stacks (project_id, name, deleted_at) where restorable_until is not null;
