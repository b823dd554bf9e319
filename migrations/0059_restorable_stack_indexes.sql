-- Without a transaction

drop index concurrently if exists stacks_restorable;

-- Next statement
-- Deleted stacks of an organization that can be restored, the last deleted first.
create index concurrently stacks_restorable on stacks (restorable_in, deleted_at desc, id desc) where restorable_until is not null;

-- Next statement
drop index concurrently if exists stacks_purge_due;

-- Next statement
-- From when on the data of a deleted stack may be deleted.
create index concurrently stacks_purge_due on stacks ((coalesce(restorable_until, '-infinity'::timestamptz)), deleted_at)
  where deleted_at is not null;

-- Next statement
drop index concurrently if exists stacks_deleted_checkpoint;

-- Next statement
-- For the foreign key.
create index concurrently stacks_deleted_checkpoint on stacks (deleted_checkpoint_id) where deleted_checkpoint_id is not null;
