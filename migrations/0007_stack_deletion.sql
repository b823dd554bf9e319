-- Up Migration

-- A deleted stack is hidden at once. Its data is deleted later in batches, and its row last.
alter table stacks add column deleted_at timestamptz;
alter table stacks drop constraint stacks_name_key;
create unique index stacks_name_key on stacks (project_id, name) where deleted_at is null;
create index stacks_deleted on stacks (deleted_at) where deleted_at is not null;
-- For the foreign key, because the primary key does not start with the stack.
create index former_stack_names_stack on former_stack_names (stack_id);

-- Creation order within a stack. Timestamps would be wrong after the clock was set back.
alter table updates add column number bigint;
update updates u set number = numbered.number
from (select id, row_number() over (order by created_at, stack_version nulls last, id) as number from updates) numbered
where numbered.id = u.id;
alter table updates alter column number set not null;
alter table updates alter column number add generated always as identity;
select setval(pg_get_serial_sequence('updates', 'number'), coalesce(max(number), 0) + 1, false) from updates;
drop index updates_by_creation;
create unique index updates_by_number on updates (stack_id, number desc);
-- Previews, which can be far more numerous, are excluded from this index of the history.
create index updates_history on updates (stack_id, number desc) where not dry_run and kind <> 'preview';
