-- The stacks that read the outputs of another are found one by one, however many references each of them has.
-- Without a transaction

drop index concurrently if exists stack_resources_readers;

-- Next statement
create index concurrently stack_resources_readers on stack_resources (reads, stack_id) where reads is not null;

-- Next statement
-- The new one serves its statements too.
drop index concurrently if exists stack_resources_reads;
