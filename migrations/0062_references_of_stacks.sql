-- Without a transaction

drop index concurrently if exists stack_resources_reads_of_stack;

-- Next statement
-- What a stack reads, without its other resources.
create index concurrently stack_resources_reads_of_stack on stack_resources (stack_id, reads) where reads is not null;
