-- Without a transaction

-- The newest previews of a stack whose other updates are many.
drop index concurrently if exists updates_previews;

-- Next statement
create index concurrently updates_previews on updates (stack_id, number desc) where dry_run or kind = 'preview';

-- Next statement
-- Active updates that lost their lease, among many that have one.
drop index concurrently if exists updates_lost;

-- Next statement
create index concurrently updates_lost on updates (id) where status in ('not started', 'running') and end_reason is not null;
